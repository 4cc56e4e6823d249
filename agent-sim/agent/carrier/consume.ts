// The carrier of a consumer of mesh routes: this agent is the client of HTTP/2, and each connection of a program on this machine is one CONNECT.
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import type { Socket } from "node:net";
import { abortLine, CARRIER_LIMITS, CONTROL_AUTHORITY, DIAL_REASON_HEADER } from "../../../protocol/index.ts";
import { pingPeer } from "./pings.ts";
import type { ServeDeps, Served } from "./serve.ts";

export interface Consumed extends Served {
  /** Joins the program's connection to what the authority names. Tells before the first byte passes, or why there is none. */
  reach(authority: string, socket: Socket, told: (reason: string | null) => void): void;
}

/** A stream that the gateway does not end after its abort is reset. */
const RESET_AFTER_MS = 5_000;
const CANCEL = 8;

const join = (stream: ClientHttp2Stream, socket: Socket, abort: () => void): void => {
  let isWhole = false;
  stream.pipe(socket);
  socket.pipe(stream);
  stream.on("end", () => {
    // A reset ends the readable side, too, and must not look like the end of the answer.
    isWhole = !stream.aborted && (stream.rstCode ?? 0) === 0;
    if (!isWhole) socket.resetAndDestroy();
  });
  stream.on("error", () => socket.resetAndDestroy());
  stream.on("aborted", () => socket.resetAndDestroy());
  stream.on("close", () => (isWhole ? undefined : socket.destroy()));
  socket.on("error", abort);
  socket.on("close", () => (stream.writableEnded && isWhole ? undefined : abort()));
};

export const consumeCarrier = ({ connection, time, onLeave, onEnd }: Omit<ServeDeps, "dial" | "onDialed">): Consumed => {
  const session: ClientHttp2Session = connect("http://carrier", {
    createConnection: () => connection,
    settings: { enablePush: false, initialWindowSize: CARRIER_LIMITS.windowBytes },
    maxSessionMemory: 1_000,
  });
  const streams = new Set<ClientHttp2Stream>();
  let ended = false;
  session.once("connect", () => {
    if (!session.destroyed) session.setLocalWindowSize(CARRIER_LIMITS.sessionWindowBytes);
  });
  const control = session.request({ ":method": "CONNECT", ":authority": CONTROL_AUTHORITY });
  control.on("error", () => undefined);
  control.resume();

  /** By a line, because a thousand resets would end the whole carrier. */
  const abort = (stream: ClientHttp2Stream): void => {
    if (stream.closed || stream.destroyed) return;
    stream.resume();
    if (stream.id !== undefined && control.writable) control.write(abortLine(stream.id));
    stream.end();
    const cancel = time.after(RESET_AFTER_MS, () => (stream.closed ? undefined : stream.close(CANCEL)));
    stream.once("close", cancel);
  };
  const open = (authority: string): ClientHttp2Stream | null => {
    if (ended || session.closed || session.destroyed || streams.size >= CARRIER_LIMITS.streams) return null;
    try {
      return session.request({ ":method": "CONNECT", ":authority": authority });
    } catch {
      // A session that has just ended throws.
      return null;
    }
  };
  const reach: Consumed["reach"] = (authority, socket, told) => {
    const stream = open(authority);
    if (stream === null) return told(ended ? "offline" : "full");
    streams.add(stream);
    let settled = false;
    const settle = (reason: string | null): void => {
      if (settled) return;
      settled = true;
      socket.off("close", gone);
      told(reason);
      if (reason === null) join(stream, socket, () => abort(stream));
      else abort(stream);
    };
    const gone = (): void => {
      settled = true;
      abort(stream);
    };
    socket.once("close", gone);
    stream.on("error", () => settle("unreachable"));
    stream.once("close", () => {
      streams.delete(stream);
      settle("offline");
    });
    stream.once("response", (headers) => settle(headers[":status"] === 200 ? null : String(headers[DIAL_REASON_HEADER] ?? "unreachable")));
  };

  const end = (): void => {
    if (ended) return;
    ended = true;
    stopAsking();
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
    reach,
    get open() {
      return streams.size;
    },
    destroy: () => void setImmediate(end),
  };
};
