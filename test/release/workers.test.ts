// Several gateway processes on one port, as `npm start -- --workers N` starts them.
import { Agent, request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { built, createSandbox, type Env, type GatewayProcess, node, processesOf, type Sandbox, startGatewayProcess } from "../flows/processes.ts";
import { onSharedServer } from "../flows/shared-server.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { freePort } from "../kit/net/free-port.ts";
import { startRedis, type TestRedis } from "../kit/stores/redis.ts";

/** A process starts slowly on a machine that runs other tests. */
const START_MS = 60_000;
const command = (workers: string) => [process.execPath, built("server/main.js"), "--workers", workers];

let redis: TestRedis;
let sandbox: Sandbox;
let env: Env;
let gateway: GatewayProcess;
let token: string;
let internalPorts: readonly number[];

beforeAll(async () => {
  redis = await startRedis();
  sandbox = await createSandbox(
    await onSharedServer({
      REDIS_URL: redis.url,
      ADMIN_USERS: "op",
      NODE_ID: "w",
      SHUTDOWN_SECONDS: "20",
      LEAVE_NOTICE_SECONDS: "1",
      DRAIN_WINDOW_SECONDS: "1",
      INTERNAL_TOKEN: "a token for this test",
    }),
  );
  const internalPort = await freePort(4);
  internalPorts = [internalPort, internalPort + 2];
  // Beside the internal port, as by default.
  env = { ...sandbox.env, INTERNAL_PORT: String(internalPort), EDGE_PORT: String(internalPort + 1) };
  gateway = await startGatewayProcess(env, command("2"));
  token = (JSON.parse((await node("server/cli.js", ["token", "--user", "op", "--json"], { env })).stdout) as { token: string }).token;
}, 60_000);
afterAll(async () => {
  await sandbox.remove();
  await redis.close();
});

/** One call without any retry. */
const raw = (url: string, agent: Agent): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const asked = request(url, { agent }, (response) =>
      response
        .resume()
        .once("end", () => resolve(response.statusCode))
        .once("error", reject),
    );
    asked.once("error", reject).end();
  });

interface Listed {
  readonly nodeId: string;
  readonly pid: number;
}
const listed = async (): Promise<readonly Listed[]> => {
  const response = await fetch(`${gateway.url}/v1/admin/nodes`, { headers: { authorization: `Bearer ${token}`, connection: "close" } });
  return ((await response.json()) as { data: readonly Listed[] }).data;
};

describe("workers", () => {
  test("workers share one port, register as separate nodes and have internal ports of their own", async () => {
    const nodes = await listed();
    expect(nodes.map(({ nodeId }) => nodeId).sort()).toEqual(["w-0", "w-1"]);
    expect(new Set([gateway.pid, ...nodes.map(({ pid }) => pid)]).size).toBe(3);
    const internal = await Promise.all(
      internalPorts.map(async (port) => {
        const answer = await fetch(`http://127.0.0.1:${port}/internal/node`, {
          headers: { authorization: "Bearer a token for this test" },
        });
        return ((await answer.json()) as { nodeId: string }).nodeId;
      }),
    );
    expect(internal).toEqual(["w-0", "w-1"]);
  });

  test(
    "a worker that dies is started again while the port is served",
    async () => {
      const [victim] = await listed();
      if (victim === undefined) throw new Error("nobody is listed");
      process.kill(victim.pid, "SIGKILL");
      const again = await eventually(async () => {
        const found = (await listed()).find(({ nodeId }) => nodeId === victim.nodeId);
        if (found === undefined || found.pid === victim.pid) throw new Error("not yet");
        return found;
      }, START_MS);
      expect(again.pid).not.toBe(victim.pid);
    },
    2 * START_MS,
  );

  test("SIGHUP replaces the workers one after another without a failed call", async () => {
    const before = await listed();
    const failures: unknown[] = [];
    let calls = 0;
    let over = false;
    const caller = async (agent: Agent): Promise<void> => {
      while (!over) {
        calls += 1;
        await raw(`${gateway.url}/v1/health/live`, agent).catch((error: unknown) => failures.push(error));
      }
      agent.destroy();
    };
    const callers = [1, 2, 3].map(() => caller(new Agent({ keepAlive: true, maxSockets: 1 })));
    process.kill(gateway.pid, "SIGHUP");
    const after = await eventually(async () => {
      const found = await listed();
      expect(found.map(({ nodeId }) => nodeId).sort()).toEqual(["w-0-1", "w-1-1"]);
      return found;
    }, 120_000);
    over = true;
    await Promise.all(callers);
    expect(failures).toEqual([]);
    expect(calls).toBeGreaterThan(50);
    expect(after.map(({ pid }) => pid).filter((pid) => before.some((old) => old.pid === pid))).toEqual([]);
    const answer = await fetch(`http://127.0.0.1:${env["INTERNAL_PORT"]}/internal/node`, { headers: { authorization: "Bearer a token for this test" } });
    expect(((await answer.json()) as { nodeId: string }).nodeId).toBe("w-0-1");
  }, 150_000);

  test("another gateway cannot listen on the workers' port", async () => {
    const intruder = await node("server/main.js", ["--workers", "2"], { env: { ...env, DATA_DIR: `${sandbox.dir}/other` } });
    expect(intruder.code).toBe(1);
    expect(intruder.stderr.trim().split("\n").at(-1)).toMatch(/^cannot listen on 127\.0\.0\.1:\d+: the port is taken\. /);
  });
});

test.each([
  ["SIGTERM", 0],
  ["SIGKILL", null],
] as const)(
  "when the parent ends by %s, its workers end",
  async (signal, code) => {
    const own = await createSandbox(await onSharedServer({ SHUTDOWN_SECONDS: "5" }));
    try {
      const parent = await startGatewayProcess(own.env, command("2"));
      expect(parent.output.stderr).toContain("Without REDIS_URL");
      const workers = async () => (await processesOf(own.dir)).filter(({ command: line }) => line.includes("--worker ")).map(({ pid }) => pid);
      expect((await workers()).length).toBe(2);
      expect((await parent.end(signal)).code).toBe(code);
      await eventually(async () => expect(await workers()).toEqual([]));
    } finally {
      await own.remove();
    }
  },
  2 * START_MS,
);

test.each([
  [["--workers", "two"], {}, "--workers: must be a number"],
  [["--workers", "2"], { PORT: "0" }, "PORT: several workers share one port"],
  [["--workers", "20"], {}, "DATABASE_POOL: with 20 workers"],
])("%j with %j is refused with the reason", async (args, more, words) => {
  // The embedded database has fewer connections than 20 workers need.
  const { DATABASE_URL: _, ...embedded } = sandbox.env;
  const { code, stderr } = await node("server/main.js", args, { env: { ...embedded, ...more } });
  expect([code, stderr]).toEqual([1, expect.stringContaining(words)]);
});
