// An agent on a bare TCP connection: as far into the protocol as asked, and from there on every byte is the scenario's own.
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { type PairedDevice, systemTime as time, until } from "../../agent-sim/agent/index.ts";
import { CONNECT_PATHS, ServerFrame, SUBPROTOCOL, sign, signedHeaders } from "../../protocol/index.ts";
import { inLanes } from "./calls.ts";
import { readFrame } from "./frames.ts";

export const OP = { text: 0x1, ping: 0x9, pong: 0xa } as const;
const LAST = 0x80;
const MASKED = 0x80;
const HEADER_END = "\r\n\r\n";

/** tcp: nothing sent yet · opening: upgraded and welcomed, but no hello sent · ready: an authenticated agent. */
export type Stage = "tcp" | "opening" | "ready";

export interface RawAgent {
  readonly openedAtMs: number;
  /** When the stage was reached; null while it is not. */
  readonly reachedAtMs: number | null;
  /** When the peer ended it; null while it is open. */
  readonly closedAtMs: number | null;
  write(bytes: Buffer | string): void;
  destroy(): void;
}

/** The head of a client's frame with a mask of zeros, which leaves the payload as it is. */
export const frameHead = (opcode: number, length: number, last = true): Buffer => {
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = (last ? LAST : 0) | opcode;
  head[1] = MASKED | (length < 126 ? length : length < 65_536 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, Buffer.alloc(4)]);
};
export const frameOf = (opcode: number, payload: Buffer | string): Buffer => {
  const bytes = Buffer.from(payload);
  return Buffer.concat([frameHead(opcode, bytes.length), bytes]);
};

export const upgradeHead = (member: PairedDevice): string => {
  const headers = {
    Host: "chaos",
    Connection: "Upgrade",
    Upgrade: "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": randomBytes(16).toString("base64"),
    "Sec-WebSocket-Protocol": SUBPROTOCOL,
    ...signedHeaders(member, "", new Date(time.wallMs())),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`GET ${CONNECT_PATHS[0]} HTTP/1.1`, ...lines].join("\r\n") + HEADER_END;
};

/** Always the same instance: who comes a second time is the same machine, not a twin. */
export const helloOf = (member: PairedDevice, nonce: string): string => {
  const timestamp = new Date(time.wallMs()).toISOString();
  const data = { proof: { timestamp, signature: sign(member.secret, nonce, timestamp) }, instanceId: member.deviceId, capabilities: ["journal.v1"] };
  return JSON.stringify({ op: "hello", id: "1", data });
};

/** Reads the head of the answer to the upgrade, then calls for each text; pings are answered. A refusal ends the connection from this side. */
const reader = (socket: Socket, onText: (text: string) => void) => {
  let rest = Buffer.alloc(0);
  let upgraded = false;
  return (chunk: Buffer): void => {
    rest = Buffer.concat([rest, chunk]);
    if (!upgraded) {
      const end = rest.indexOf(HEADER_END);
      if (end < 0) return;
      if (!rest.subarray(0, end).toString("latin1").startsWith("HTTP/1.1 101")) return void socket.destroy();
      upgraded = true;
      rest = rest.subarray(end + HEADER_END.length);
    }
    for (let frame = readFrame(rest); frame; frame = readFrame(rest)) {
      if (frame.text !== null) onText(frame.text);
      else if (((rest[0] ?? 0) & 0x0f) === OP.ping) socket.write(frameOf(OP.pong, ""));
      rest = rest.subarray(frame.bytes);
    }
  };
};

export const heartbeatOf = (n: number): Buffer =>
  frameOf(OP.text, JSON.stringify({ op: "heartbeat", id: String(n + 2), data: { status: "online", metrics: {} } }));

/** Begins at once; how far it has come shows in what it answers. */
export const openRaw = (port: number, member: PairedDevice, stage: Stage): RawAgent => {
  const state: { openedAtMs: number; reachedAtMs: number | null; closedAtMs: number | null } = {
    openedAtMs: time.elapsedMs(),
    reachedAtMs: null,
    closedAtMs: null,
  };
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const reached = (at: Stage): void => {
    if (at === stage) state.reachedAtMs ??= time.elapsedMs();
  };
  const ended = (): void => {
    state.closedAtMs ??= time.elapsedMs();
  };
  const take = (text: string): void => {
    const frame = ServerFrame.parse(JSON.parse(text));
    if (frame.op === "welcome") {
      reached("opening");
      if (stage === "ready") socket.write(frameOf(OP.text, helloOf(member, frame.data.nonce)));
    }
    if (frame.op === "ready") reached("ready");
  };
  socket.on("connect", () => {
    state.openedAtMs = time.elapsedMs();
    reached("tcp");
    if (stage !== "tcp") socket.write(upgradeHead(member));
  });
  socket.on("data", reader(socket, take));
  // A half-closed line ends it as well as a close frame does.
  for (const sign of ["end", "error", "close"] as const) socket.on(sign, ended);
  return {
    get openedAtMs() {
      return state.openedAtMs;
    },
    get reachedAtMs() {
      return state.reachedAtMs;
    },
    get closedAtMs() {
      return state.closedAtMs;
    },
    write: (bytes) => {
      if (!socket.destroyed && socket.writable) socket.write(bytes);
    },
    destroy: () => void socket.destroy(),
  };
};

/** So many of them at once; throws when one does not get there. */
export const connectAll = async (port: number, members: readonly PairedDevice[], stage: Stage, withinMs = 30_000): Promise<readonly RawAgent[]> => {
  const agents: RawAgent[] = [];
  await inLanes(members, 32, async (member) => {
    const agent = openRaw(port, member, stage);
    agents.push(agent);
    if (!(await until(time, () => agent.reachedAtMs !== null || agent.closedAtMs !== null, { everyMs: 10, withinMs })) || agent.reachedAtMs === null)
      throw new Error(`an agent did not become ${stage}`);
  });
  return agents;
};
