// An agent on a bare TCP connection: it follows the protocol to a given stage, and from there the scenario writes every byte.
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { type PairedDevice, systemTime as time, until } from "../../../agent-sim/agent/index.ts";
import { CONNECT_PATHS, ServerFrame, SUBPROTOCOL, sign, signedHeaders } from "../../../protocol/index.ts";
import { inLanes } from "./calls.ts";
import { readTextFrame } from "./frames.ts";

export const OPCODE = { text: 0x1, ping: 0x9, pong: 0xa } as const;
const LAST = 0x80;
const MASKED = 0x80;
const HEADER_END = "\r\n\r\n";

/** tcp: nothing sent yet · opening: upgraded and welcomed, no hello sent · ready: authenticated. */
export type ConnectStage = "tcp" | "opening" | "ready";

export interface RawAgent {
  readonly openedAtMs: number;
  /** When the agent reached its stage; null before. */
  readonly reachedAtMs: number | null;
  /** When the peer closed the connection; null while it is open. */
  readonly closedAtMs: number | null;
  write(bytes: Buffer | string): void;
  destroy(): void;
}

/** The head of a client frame with a mask of zeros, which leaves the payload unchanged. */
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

/** A hello with a fixed instance id, so that a second session is the same machine and not a twin. */
export const rawHelloOf = (member: PairedDevice, nonce: string): string => {
  const timestamp = new Date(time.wallMs()).toISOString();
  const data = { proof: { timestamp, signature: sign(member.secret, nonce, timestamp) }, instanceId: member.deviceId, capabilities: ["journal.v1"] };
  return JSON.stringify({ op: "hello", id: "1", data });
};

/** Reads the answer to the upgrade, then calls `onText` for each text and answers pings. It closes the connection on a refusal. */
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
    for (let frame = readTextFrame(rest); frame; frame = readTextFrame(rest)) {
      if (frame.text !== null) onText(frame.text);
      else if (((rest[0] ?? 0) & 0x0f) === OPCODE.ping) socket.write(frameOf(OPCODE.pong, ""));
      rest = rest.subarray(frame.bytes);
    }
  };
};

export const heartbeatOf = (n: number): Buffer =>
  frameOf(OPCODE.text, JSON.stringify({ op: "heartbeat", id: String(n + 2), data: { status: "online", metrics: {} } }));

/** Starts to connect at once; the returned agent shows its progress. */
export const openRawAgent = (port: number, member: PairedDevice, stage: ConnectStage): RawAgent => {
  const state: { openedAtMs: number; reachedAtMs: number | null; closedAtMs: number | null } = {
    openedAtMs: time.elapsedMs(),
    reachedAtMs: null,
    closedAtMs: null,
  };
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const reached = (at: ConnectStage): void => {
    if (at === stage) state.reachedAtMs ??= time.elapsedMs();
  };
  const ended = (): void => {
    state.closedAtMs ??= time.elapsedMs();
  };
  const take = (text: string): void => {
    const frame = ServerFrame.parse(JSON.parse(text));
    if (frame.op === "welcome") {
      reached("opening");
      if (stage === "ready") socket.write(frameOf(OPCODE.text, rawHelloOf(member, frame.data.nonce)));
    }
    if (frame.op === "ready") reached("ready");
  };
  socket.on("connect", () => {
    state.openedAtMs = time.elapsedMs();
    reached("tcp");
    if (stage !== "tcp") socket.write(upgradeHead(member));
  });
  socket.on("data", reader(socket, take));
  // A half-closed connection counts as closed, like a close frame.
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

/** Connects all members; throws if one does not reach the stage. */
export const connectAll = async (port: number, members: readonly PairedDevice[], stage: ConnectStage, withinMs = 30_000): Promise<readonly RawAgent[]> => {
  const agents: RawAgent[] = [];
  await inLanes(members, 32, async (member) => {
    const agent = openRawAgent(port, member, stage);
    agents.push(agent);
    if (!(await until(time, () => agent.reachedAtMs !== null || agent.closedAtMs !== null, { everyMs: 10, withinMs })) || agent.reachedAtMs === null)
      throw new Error(`an agent did not become ${stage}`);
  });
  return agents;
};
