// One TCP connection of a conformance case: the opening handshake, writes cut as the case says, and what comes back, in order.
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { faultOf, OP, readFrame } from "./frames.ts";

/** What the peer said: a whole message, or an answer to a ping. */
export interface Heard {
  readonly kind: "text" | "binary" | "pong";
  /** Bytes as latin1, so that they compare. */
  readonly data: string;
}

export interface Wire {
  readonly heard: readonly Heard[];
  /** Undefined: no close frame; null: one without a code. */
  readonly closeCode: number | null | undefined;
  readonly fault: string | null;
  readonly ended: boolean;
  /** In pieces of `chop` bytes, each a write of its own. */
  write(bytes: Buffer, chop?: number): Promise<void>;
  /** True when it came true within the time, false when the time or the connection ended before. */
  until(isTrue: () => boolean, ms: number): Promise<boolean>;
  destroy(): void;
}

const WEBSOCKET_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export const openWire = async (port: number, path: string): Promise<Wire> => {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const state = { heard: [] as Heard[], closeCode: undefined as number | null | undefined, fault: null as string | null, ended: false };
  let [rest, message, watchers]: [Buffer, { binary: boolean; parts: Buffer[] } | null, (() => void)[]] = [Buffer.alloc(0), null, []];
  const changed = (): void => {
    const waiting = watchers;
    watchers = [];
    for (const wake of waiting) wake();
  };
  const take = (opcode: number, payload: Buffer, fin: boolean): void => {
    if (state.closeCode !== undefined) state.fault ??= "a frame after the close frame";
    if (opcode === OP.pong) state.heard.push({ kind: "pong", data: payload.toString("latin1") });
    else if (opcode === OP.close) state.closeCode = payload.length >= 2 ? payload.readUInt16BE(0) : null;
    else if (opcode !== OP.ping) {
      if ((opcode === OP.continuation) !== (message !== null)) state.fault ??= "fragments out of order";
      message ??= { binary: opcode === OP.binary, parts: [] };
      message.parts.push(payload);
      if (!fin) return;
      state.heard.push({ kind: message.binary ? "binary" : "text", data: Buffer.concat(message.parts).toString("latin1") });
      message = null;
    }
  };
  const onData = (chunk: Buffer): void => {
    rest = Buffer.concat([rest, chunk]);
    for (let read = readFrame(rest); read !== null; read = readFrame(rest)) {
      state.fault ??= faultOf(read);
      rest = rest.subarray(read.size);
      take(read.frame.opcode, read.frame.payload, read.frame.fin);
    }
    changed();
  };
  const onEnd = (): void => {
    state.ended = true;
    changed();
  };
  socket.on("error", onEnd);
  socket.on("close", onEnd);
  onData(await handshake(socket, path));
  socket.on("data", onData);

  return {
    get heard() {
      return state.heard;
    },
    get closeCode() {
      return state.closeCode;
    },
    get fault() {
      return state.fault;
    },
    get ended() {
      return state.ended;
    },
    write: async (bytes, chop = bytes.length) => {
      for (let at = 0; at < bytes.length && !state.ended; at += chop) {
        socket.write(bytes.subarray(at, at + chop));
        // Two turns of the event loop have one look at the network between them.
        await nextTurn();
        await nextTurn();
      }
    },
    until: async (isTrue, ms) => {
      const tooLate = sleep(ms, "late" as const, { ref: false });
      while (!isTrue()) {
        if (state.ended) return false;
        const came = await Promise.race([new Promise<"news">((resolve) => watchers.push(() => resolve("news"))), tooLate]);
        if (came === "late") return isTrue();
      }
      return true;
    },
    destroy: () => void socket.destroy(),
  };
};

/** Answers what came after the head of the response. */
const handshake = async (socket: ReturnType<typeof connect>, path: string): Promise<Buffer> => {
  await once(socket, "connect");
  const key = randomBytes(16).toString("base64");
  const head = [
    `GET ${path} HTTP/1.1`,
    "Host: conformance",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${key}`,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  let bytes = Buffer.alloc(0);
  while (!bytes.includes("\r\n\r\n")) bytes = Buffer.concat([bytes, ((await once(socket, "data")) as [Buffer])[0]]);
  const end = bytes.indexOf("\r\n\r\n");
  const answer = bytes.subarray(0, end).toString("latin1").toLowerCase();
  const accept = createHash("sha1").update(`${key}${WEBSOCKET_GUID}`).digest("base64").toLowerCase();
  if (!answer.startsWith("http/1.1 101") || !answer.includes(`sec-websocket-accept: ${accept}`)) throw new Error(`no WebSocket: ${answer}`);
  return bytes.subarray(end + 4);
};
