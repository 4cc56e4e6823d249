// Serves the streams of one carrier: each CONNECT becomes a connection to a service of this device, and bytes pass both ways as fast as both sides read.
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import { CARRIER_LIMITS, CONTROL_AUTHORITY, DIAL_REASON_HEADER, type DialReason, readAbort } from "../../../protocol/index.ts";
import type { Time } from "../timing/time.ts";
import { beginHttp2 } from "./handshake.ts";
import { pingPeer } from "./pings.ts";

/** A socket, or what behaves as one. */
export interface ServiceConnection extends Duplex {
  readonly connecting: boolean;
  setNoDelay(on: boolean): unknown;
  resetAndDestroy(): unknown;
}

/** Begins to connect to what the authority names, or says why not. */
export type DialService = (authority: string) => ServiceConnection | DialReason;

export interface ServeDeps {
  readonly connection: Duplex;
  readonly dial: DialService;
  readonly time: Time;
  /** Each try to reach a service, and how it went; null: it is connected. */
  readonly onDialed?: ((authority: string, reason: DialReason | null) => void) | undefined;
  /** The gateway asks for another carrier; this one may finish. */
  readonly onLeave: () => void;
  readonly onEnd: () => void;
}

export interface Served {
  readonly open: number;
  destroy(): void;
}

const STATUS: Readonly<Record<DialReason, number>> = { unknown: 404, not_allowed: 403, refused: 502, unreachable: 502, timeout: 504, full: 503 };
const MAX_LINE = 64;
/** The code of an error of a socket that was about to connect to where it must not. */
export const ADDRESS_REFUSED = "ENOTALLOWED";

const reasonOf = (error: Error & { readonly code?: string }): DialReason =>
  error.code === ADDRESS_REFUSED ? "not_allowed" : error.code === "ECONNREFUSED" || error.code === "ENOENT" ? "refused" : "unreachable";

/** The peer of both, until both directions have ended; a broken side breaks the other. */
const join = (stream: ServerHttp2Stream, socket: ServiceConnection): void => {
  stream.pipe(socket);
  socket.pipe(stream);
  // Closing the stream with a code would end it first, and an end looks like a whole answer.
  socket.on("error", (error) => void stream.destroy(error));
  stream.on("error", () => socket.destroy());
  stream.on("aborted", () => socket.destroy());
  stream.on("close", () => socket.destroy());
};

export const serveCarrier = ({ connection, dial, time, onDialed, onLeave, onEnd }: ServeDeps): Served => {
  const sockets = new Map<number, { readonly stream: ServerHttp2Stream; readonly socket: ServiceConnection }>();
  let ended = false;

  const refuse = (stream: ServerHttp2Stream, authority: string, reason: DialReason): void => {
    onDialed?.(authority, reason);
    if (stream.destroyed || stream.closed) return;
    stream.respond({ ":status": STATUS[reason], [DIAL_REASON_HEADER]: reason }, { endStream: true });
    stream.resume();
  };

  const connectTo = (stream: ServerHttp2Stream, authority: string): void => {
    const socket = sockets.size >= CARRIER_LIMITS.streams ? "full" : dial(authority);
    if (typeof socket === "string") {
      refuse(stream, authority, socket);
      return;
    }
    const { id = 0 } = stream;
    sockets.set(id, { stream, socket });
    stream.once("close", () => sockets.delete(id));
    const give = (reason: DialReason): void => {
      cancel();
      socket.destroy();
      refuse(stream, authority, reason);
    };
    const cancel = time.after(CARRIER_LIMITS.dialMs, () => give("timeout"));
    const failed = (error: Error): void => give(reasonOf(error));
    socket.once("error", failed);
    // The visitor has gone while we were connecting.
    stream.once("close", () => {
      cancel();
      socket.destroy();
    });
    socket.once("encrypted" in socket ? "secureConnect" : "connect", () => {
      cancel();
      socket.off("error", failed);
      onDialed?.(authority, null);
      if (stream.destroyed || stream.closed) return socket.destroy();
      socket.setNoDelay(true);
      stream.respond({ ":status": 200 });
      return join(stream, socket);
    });
  };

  /** Ends a connection at once without a reset of its stream: thousands of those would end the whole carrier. */
  const abort = (id: number): void => {
    const found = sockets.get(id);
    if (found === undefined) return;
    const { stream, socket } = found;
    socket.unpipe(stream);
    stream.unpipe(socket);
    socket.removeAllListeners("error").on("error", () => undefined);
    if ("encrypted" in socket || socket.connecting) socket.destroy();
    else socket.resetAndDestroy();
    stream.resume();
    if (!stream.headersSent && !stream.destroyed) stream.respond({ ":status": 503 }, { endStream: true });
    else if (!stream.writableEnded) stream.end();
  };

  const readOrders = (stream: ServerHttp2Stream): void => {
    stream.respond({ ":status": 200 });
    let rest = "";
    stream.setEncoding("latin1");
    stream.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = (lines.pop() ?? "").slice(0, MAX_LINE);
      for (const line of lines) {
        const id = readAbort(line);
        if (id !== null) abort(id);
      }
    });
    stream.on("error", () => undefined);
  };

  const session: ServerHttp2Session = beginHttp2(connection, {
    maxSessionMemory: 1_000,
    settings: { maxConcurrentStreams: CARRIER_LIMITS.streams + 2, initialWindowSize: CARRIER_LIMITS.windowBytes },
  });
  session.setLocalWindowSize(CARRIER_LIMITS.sessionWindowBytes);
  session.on("stream", (stream, headers) => {
    stream.on("error", () => undefined);
    const authority = headers[":authority"] ?? "";
    if (headers[":method"] !== "CONNECT") stream.respond({ ":status": 405 }, { endStream: true });
    else if (authority === CONTROL_AUTHORITY) readOrders(stream);
    else connectTo(stream, authority);
  });

  const end = (): void => {
    if (ended) return;
    ended = true;
    stopAsking();
    for (const { socket } of sockets.values()) socket.destroy();
    session.destroy();
    connection.destroy();
    onEnd();
  };
  const stopAsking = pingPeer(session, time, end);
  session.on("goaway", onLeave);
  session.on("error", () => undefined);
  connection.on("error", () => undefined);
  session.once("close", end);
  connection.once("close", end);
  return {
    get open() {
      return sockets.size;
    },
    destroy: end,
  };
};
