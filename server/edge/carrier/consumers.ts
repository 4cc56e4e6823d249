// Carriers of consumers of mesh routes: the agent is the client of HTTP/2, and each stream is a CONNECT to what it wants to reach.
import { performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import { CARRIER_LIMITS, CONTROL_AUTHORITY, DIAL_REASON_HEADER, readAbort } from "../../../protocol/index.ts";
import { type CarrierFacts, DialFailure } from "../../core/ports/carriers.ts";
import type { ConnectMesh, MeshConnection } from "../../core/ports/mesh.ts";
import type { OwnCarriers } from "./carriers.ts";
import { keepAlive } from "./session.ts";

export interface ConsumerCarriers extends Pick<OwnCarriers, "adopt" | "leave"> {
  /** Open connections. */
  readonly open: number;
}

const STATUS: ReadonlyMap<string, number> = new Map([
  ["unknown", 404],
  ["not_allowed", 403],
  ["timeout", 504],
  ["full", 503],
  ["offline", 503],
]);
const BAD_GATEWAY = 502;
const GONE = 503;
const MAX_LINE = 64;

/** The peer of both, until both directions have ended; a broken side breaks the other. */
const join = (stream: ServerHttp2Stream, { stream: inner, passed }: MeshConnection): void => {
  stream.on("data", (chunk: Buffer) => passed(chunk.length, 0));
  inner.on("data", (chunk: Buffer) => passed(0, chunk.length));
  stream.pipe(inner);
  inner.pipe(stream);
  let isWhole = false;
  inner.on("end", () => {
    isWhole = true;
  });
  // An end would look like a whole answer. Not within the reading of a session, where a reset can make Node write for ever.
  inner.on("close", () => setImmediate(() => (isWhole || stream.destroyed ? undefined : stream.destroy(new Error("the connection broke")))));
  stream.on("aborted", () => inner.destroy());
  stream.on("close", () => inner.destroy());
};

export const createConsumerCarriers = ({ connect }: { readonly connect: ConnectMesh }): ConsumerCarriers => {
  const sessions = new Set<ServerHttp2Session>();
  let open = 0;

  const serve = (facts: CarrierFacts, connection: Duplex): ServerHttp2Session => {
    const owner = { tenantId: facts.tenantId, deviceId: facts.key };
    const joined = new Map<number, Duplex>();
    let asked = 0;
    const refuse = (stream: ServerHttp2Stream, reason: string): void => {
      if (stream.destroyed || stream.closed) return;
      stream.respond({ ":status": STATUS.get(reason) ?? BAD_GATEWAY, [DIAL_REASON_HEADER]: reason }, { endStream: true });
      stream.resume();
    };
    const begin = async (stream: ServerHttp2Stream, authority: string): Promise<void> => {
      if (asked >= CARRIER_LIMITS.streams) return refuse(stream, "full");
      asked += 1;
      open += 1;
      stream.once("close", () => {
        asked -= 1;
        open -= 1;
        joined.delete(stream.id ?? 0);
      });
      try {
        const found = await connect(owner, authority);
        if (stream.destroyed || stream.closed || stream.writableEnded) return void found.stream.destroy();
        joined.set(stream.id ?? 0, found.stream);
        stream.respond({ ":status": 200 });
        join(stream, found);
      } catch (error) {
        refuse(stream, error instanceof DialFailure ? error.reason : "unreachable");
      }
    };
    const abort = (stream: ServerHttp2Stream): void => {
      joined.get(stream.id ?? 0)?.destroy();
      joined.delete(stream.id ?? 0);
      if (stream.destroyed) return;
      stream.resume();
      if (!stream.headersSent) stream.respond({ ":status": GONE }, { endStream: true });
      else if (!stream.writableEnded) stream.end();
    };
    const streams = new Map<number, ServerHttp2Stream>();
    const readOrders = (control: ServerHttp2Stream): void => {
      control.respond({ ":status": 200 });
      control.setEncoding("latin1");
      let rest = "";
      control.on("data", (text: string) => {
        const lines = (rest + text).split("\n");
        rest = (lines.pop() ?? "").slice(0, MAX_LINE);
        for (const line of lines) {
          const stream = streams.get(readAbort(line) ?? -1);
          if (stream !== undefined) abort(stream);
        }
      });
    };
    const session = performServerHandshake(connection, {
      maxSessionMemory: 1_000,
      settings: { maxConcurrentStreams: CARRIER_LIMITS.streams + 2, initialWindowSize: CARRIER_LIMITS.windowBytes },
    });
    session.setLocalWindowSize(CARRIER_LIMITS.sessionWindowBytes);
    session.on("stream", (stream, headers) => {
      stream.on("error", () => undefined);
      const authority = headers[":authority"] ?? "";
      if (headers[":method"] !== "CONNECT") return void stream.respond({ ":status": 405 }, { endStream: true });
      if (authority === CONTROL_AUTHORITY) return readOrders(stream);
      streams.set(stream.id ?? 0, stream);
      stream.once("close", () => streams.delete(stream.id ?? 0));
      void begin(stream, authority);
    });
    const end = (): void => {
      stop();
      session.destroy();
      connection.destroy();
      for (const inner of joined.values()) inner.destroy();
      sessions.delete(session);
    };
    const stop = keepAlive(session, end);
    session.on("error", () => undefined);
    connection.on("error", () => undefined);
    session.once("goaway", () => setImmediate(end));
    session.once("close", end);
    connection.once("close", end);
    return session;
  };

  return {
    get open() {
      return open;
    },
    adopt: (facts, connection) => void sessions.add(serve(facts, connection)),
    leave: () => {
      for (const session of sessions) if (!session.destroyed && !session.closed) session.goaway();
    },
  };
};
