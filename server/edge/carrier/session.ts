// One carrier on the gateway's side: a client of HTTP/2 over the connection that the agent opened. Each stream is one CONNECT, so one connection.
import { type ClientHttp2Stream, connect, type Http2Session } from "node:http2";
import type { Duplex } from "node:stream";
import { CARRIER_LIMITS, CONTROL_AUTHORITY, DIAL_REASON_HEADER, DIAL_REASONS } from "../../../protocol/index.ts";
import { type CarrierFacts, DialFailure, type DialFailureReason, type DialOptions } from "../../core/ports/carriers.ts";
import { createAborts } from "./aborts.ts";
import { asConnection } from "./stream.ts";

export interface Carrier {
  readonly facts: CarrierFacts;
  readonly open: number;
  /** Bytes that have arrived for readers who do not read. */
  buffered(): number;
  dial(authority: string, options: DialOptions): Promise<Duplex>;
  /** The agent opens another carrier; what is open here may go on for a while. */
  leave(): void;
  destroy(): void;
}

export interface CarrierDeps {
  readonly facts: CarrierFacts;
  readonly connection: Duplex;
  readonly onEnd: (carrier: Carrier) => void;
  /** For the control of a test: ends streams as one must not. */
  readonly abortByReset?: boolean | undefined;
}

/** The agent's own limit, and the way to it and back. */
const DIAL_MS = CARRIER_LIMITS.dialMs + 5_000;
const SESSION_MEMORY_MB = 1_000;
const OPTIONS = {
  settings: { enablePush: false, initialWindowSize: CARRIER_LIMITS.windowBytes },
  maxSessionMemory: SESSION_MEMORY_MB,
};

const reasonOf = (given: unknown): DialFailureReason => DIAL_REASONS.find((reason) => reason === given) ?? "unreachable";

/** What has arrived on a stream that its reader holds back; the types of Node do not know it. */
const arrivedOf = (stream: ClientHttp2Stream): number => (stream.state as { readonly effectiveRecvDataLength?: number }).effectiveRecvDataLength ?? 0;

/** Watches that the peer still answers: a network that drops a connection in silence tells nobody. */
export const keepAlive = (session: Http2Session, lost: () => void): (() => void) => {
  let pong: NodeJS.Timeout | undefined;
  const every = setInterval(() => {
    if (session.destroyed) return;
    pong = setTimeout(lost, CARRIER_LIMITS.pongMs);
    const isSent = session.ping(() => clearTimeout(pong));
    if (!isSent) clearTimeout(pong);
  }, CARRIER_LIMITS.pingMs);
  return () => {
    clearInterval(every);
    clearTimeout(pong);
  };
};

export const openCarrier = ({ facts, connection, onEnd, abortByReset }: CarrierDeps): Carrier => {
  const session = connect("http://carrier", { ...OPTIONS, createConnection: () => connection });
  const streams = new Set<ClientHttp2Stream>();
  let ended = false;
  let leaving = false;
  session.on("error", () => undefined);
  session.once("connect", () => {
    if (!session.destroyed) session.setLocalWindowSize(CARRIER_LIMITS.sessionWindowBytes);
  });
  const control = session.request({ ":method": "CONNECT", ":authority": CONTROL_AUTHORITY });
  control.on("error", () => undefined);
  control.resume();
  const aborts = createAborts(control, { byReset: abortByReset === true });
  const end = (): void => {
    if (ended) return;
    ended = true;
    stop();
    aborts.close();
    session.destroy();
    connection.destroy();
    for (const stream of streams) stream.destroy();
    onEnd(carrier);
  };
  const stop = keepAlive(session, end);
  session.once("close", end);
  // A session whose connection breaks while it writes may never say that it has closed.
  connection.once("close", end);
  // Within nghttp2's reading, where callbacks of streams run, destroying a session can make Node write empty frames for ever.
  const endSoon = (): void => void setImmediate(end);
  // An agent that says goodbye unasked has gone: over TLS, Node may stop to read then, and never learn that the connection has ended.
  session.once("goaway", () => {
    if (!leaving) endSoon();
  });

  const request = (authority: string): ClientHttp2Stream => {
    if (ended || session.closed || session.destroyed) throw new DialFailure("offline");
    if (streams.size >= CARRIER_LIMITS.streams) throw new DialFailure("full");
    try {
      return session.request({ ":method": "CONNECT", ":authority": authority });
    } catch {
      // A session that has just ended throws.
      throw new DialFailure("offline");
    }
  };

  const carrier: Carrier = {
    facts,
    get open() {
      return streams.size;
    },
    buffered: () => {
      let bytes = 0;
      for (const stream of streams) if (stream.isPaused()) bytes += stream.readableLength + arrivedOf(stream);
      return bytes;
    },
    dial: async (authority, { halfOpen = false }) => {
      const inner = request(authority);
      streams.add(inner);
      inner.once("close", () => streams.delete(inner));
      return new Promise<Duplex>((resolve, reject) => {
        let isSettled = false;
        const fail = (reason: DialFailureReason): void => {
          if (isSettled) return;
          isSettled = true;
          clearTimeout(timer);
          aborts.abort(inner);
          reject(new DialFailure(reason));
        };
        const timer = setTimeout(() => fail("timeout"), DIAL_MS);
        inner.on("error", () => fail("unreachable"));
        inner.once("close", () => fail(ended || session.destroyed ? "offline" : "unreachable"));
        inner.once("response", (headers) => {
          if (headers[":status"] !== 200) return fail(reasonOf(headers[DIAL_REASON_HEADER]));
          isSettled = true;
          clearTimeout(timer);
          resolve(asConnection(inner, { halfOpen, abort: aborts.abort }));
        });
      });
    },
    leave: () => {
      if (session.destroyed || session.closed) return;
      leaving = true;
      // The control stream would keep the session open.
      session.goaway();
      const linger = setTimeout(end, CARRIER_LIMITS.lingerMs);
      session.once("close", () => clearTimeout(linger));
    },
    destroy: endSoon,
  };
  return carrier;
};
