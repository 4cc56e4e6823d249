// Negative controls inside the timed window: under full load the gateway still refuses what it must refuse and accepts what it must accept.
import { once } from "node:events";
import { WebSocket } from "ws";
import { z } from "zod";
import type { PairedDevice } from "../../agent-sim/agent/index.ts";
import { CLOSE, CONNECT_PATHS, SUBPROTOCOL, sign, signedHeaders } from "../../protocol/index.ts";

const WITHIN_MS = 20_000;
const STALE_MS = 600_000;
const OVERSIZE = 140_000;

type Headers = Readonly<Record<string, string>>;
const Frame = z.object({ op: z.string(), ref: z.string().optional(), data: z.looseObject({ nonce: z.string().optional(), code: z.string().optional() }) });
type Frame = z.output<typeof Frame>;

const open = (url: string, headers: Headers): WebSocket => {
  const socket = new WebSocket(`${url.replace("http", "ws")}${CONNECT_PATHS[0]}`, [SUBPROTOCOL], {
    headers,
    perMessageDeflate: false,
    handshakeTimeout: WITHIN_MS,
  });
  socket.on("error", () => socket.terminate());
  return socket;
};

/** The status of a refused upgrade, 101 for an accepted one. */
const tryUpgrade = async (url: string, headers: Headers): Promise<number> => {
  const socket = open(url, headers);
  try {
    return await Promise.race([
      once(socket, "unexpected-response").then(([, response]: { statusCode?: number }[]) => response?.statusCode ?? 0),
      once(socket, "open").then(() => 101),
    ]);
  } finally {
    socket.terminate();
  }
};

/** Connects an agent through its hello and records every frame that it receives. */
const enter = async (url: string, member: PairedDevice) => {
  const socket = open(url, signedHeaders(member, "", new Date()));
  const frames: Frame[] = [];
  const listeners = new Set<() => void>();
  socket.on("message", (bytes) => {
    frames.push(Frame.parse(JSON.parse(String(bytes))));
    for (const listener of listeners) listener();
  });
  const hear = (wanted: (frame: Frame) => boolean): Promise<Frame> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = frames.find(wanted);
        if (found === undefined) return;
        clearTimeout(late);
        listeners.delete(look);
        resolve(found);
      };
      const late = setTimeout(() => reject(new Error(`no such frame: ${wanted}`)), WITHIN_MS);
      listeners.add(look);
      look();
    });
  const send = (frame: object | string): void => socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  const { data } = await hear(({ op }) => op === "welcome");
  const timestamp = new Date().toISOString();
  send({ op: "hello", id: "1", data: { proof: { timestamp, signature: sign(member.secret, data.nonce ?? "", timestamp) }, capabilities: ["journal.v1"] } });
  await hear(({ op }) => op === "ready");
  return { socket, frames, hear, send };
};

const isAck = (id: string) => (frame: Frame) => frame.op === "heartbeat_ack" && frame.ref === id;

const checkUpgrades = async (url: string, member: PairedDevice): Promise<readonly string[]> => {
  const good = signedHeaders(member, "", new Date());
  const used = signedHeaders(member, "", new Date(Date.now() - 1));
  const first = await tryUpgrade(url, used);
  const statuses = {
    "bad signature": await tryUpgrade(url, { ...good, "x-svc-signature": "0".repeat(64) }),
    "stale timestamp": await tryUpgrade(url, signedHeaders(member, "", new Date(Date.now() - STALE_MS))),
    "replayed headers": await tryUpgrade(url, used),
  };
  const accepted = Object.entries(statuses).flatMap(([what, status]) => (status === 401 ? [] : [`${what}: ${status}`]));
  return first === 101 ? accepted : [...accepted, `good headers: ${first}`];
};

const checkFrames = async (url: string, member: PairedDevice): Promise<readonly string[]> => {
  const { socket, frames, hear, send } = await enter(url, member);
  const beat = { status: "online", metrics: { cpu: 1 } };
  send(`{"data":{"metrics":{"memory":1,"cpu":2},"status":"online"},"id":"2","op":"heartbeat"}`);
  await hear(isAck("2"));
  send({ op: "heartbeat", id: "2", data: beat });
  send({ op: "heartbeat", id: "9", data: beat });
  await hear(isAck("9"));
  const repeated = frames.filter(isAck("2")).length;
  send(`{"op":"heartbeat","id":"10","data":{`);
  await hear(({ op, data }) => op === "error" && data.code === "VALIDATION_FAILED");
  const closed = once(socket, "close") as Promise<[number]>;
  send({ op: "heartbeat", id: "11", data: { ...beat, metrics: { text: "x".repeat(OVERSIZE) } } });
  const [code] = await closed;
  return [
    ...(repeated === 1 ? [] : ["the gateway answered a repeated heartbeat"]),
    ...(code === CLOSE.frameTooBig.code ? [] : [`oversize: closed with ${code}`]),
  ];
};

/** The problems in words; empty if every control behaved as expected. */
export const checkRefusals = async (url: string, member: PairedDevice): Promise<readonly string[]> => {
  try {
    return [...(await checkUpgrades(url, member)), ...(await checkFrames(url, member))];
  } catch (error) {
    return [`the controls failed: ${String(error)}`];
  }
};
