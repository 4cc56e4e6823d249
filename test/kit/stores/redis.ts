// A Redis for one test: a direct child on a free port that a test can kill, freeze, restart empty and query.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../checks/eventually.ts";
import { freePort } from "../net/free-port.ts";
import { folderPrefix } from "../setup/run-mark.ts";

/** Sends one command over a new connection; enough for errors, integers and short strings. */
const ask = async (port: number, words: readonly string[]): Promise<string> => {
  const socket = net.connect(port, "127.0.0.1");
  socket.setTimeout(2_000, () => socket.destroy(new Error("Redis is silent")));
  try {
    await once(socket, "connect");
    socket.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`);
    const [chunk] = (await once(socket, "data")) as [Buffer];
    return chunk.toString().trim();
  } finally {
    socket.destroy();
  }
};

export const startRedis = async () => {
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), folderPrefix("redis")));
  const state: { child: ChildProcess | null } = { child: null };

  const start = async (): Promise<void> => {
    const child = spawn("redis-server", ["--port", String(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no"], { stdio: "ignore" });
    child.once("error", (error) => {
      throw error;
    });
    state.child = child;
    await eventually(async () => {
      if ((await ask(port, ["PING"])) !== "+PONG") throw new Error("not yet");
    });
  };
  const kill = async (): Promise<void> => {
    const { child } = state;
    state.child = null;
    if (child === null || child.exitCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };

  await start();
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    start,
    kill,
    freeze: () => void state.child?.kill("SIGSTOP"),
    thaw: () => void state.child?.kill("SIGCONT"),
    ask: (...words: readonly string[]) => ask(port, words),
    close: async () => {
      await kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
};
export type TestRedis = Awaited<ReturnType<typeof startRedis>>;

/** A proxy to Redis that can go deaf: it swallows what Redis sends on subscribed connections, and no connection breaks. Frozen, it forwards nothing at all. */
export const startDeafProxy = async (target: number) => {
  const pairs = new Set<{ readonly client: net.Socket; readonly server: net.Socket; listens: boolean; deaf: boolean }>();
  const state = { frozen: false };
  const listener = net
    .createServer((client) => {
      const pair = { client, server: net.connect(target, "127.0.0.1"), listens: false, deaf: false };
      pairs.add(pair);
      const end = (): void => {
        pairs.delete(pair);
        pair.client.destroy();
        pair.server.destroy();
      };
      client
        .on("data", (chunk: Buffer) => {
          pair.listens ||= chunk.toString("latin1").toLowerCase().includes("subscribe");
          if (!state.frozen) pair.server.write(chunk);
        })
        .on("close", end)
        .on("error", end);
      pair.server
        .on("data", (chunk: Buffer) => {
          if (!pair.deaf && !state.frozen) client.write(chunk);
        })
        .on("close", end)
        .on("error", end);
    })
    .listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return {
    url: `redis://127.0.0.1:${address.port}`,
    /** Deafens the connections that are subscribed now, not later ones. Returns how many. */
    deafen: (): number => {
      const listening = [...pairs].filter(({ listens }) => listens);
      for (const pair of listening) pair.deaf = true;
      return listening.length;
    },
    /** From now on the proxy swallows every byte, also on later connections. */
    freeze: (): void => {
      state.frozen = true;
    },
    /** Swallowed bytes stay lost. */
    thaw: (): void => {
      state.frozen = false;
    },
    close: async () => {
      for (const { client, server } of pairs) {
        client.destroy();
        server.destroy();
      }
      listener.close();
      await once(listener, "close");
    },
  };
};
