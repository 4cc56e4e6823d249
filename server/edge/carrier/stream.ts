// One stream of a carrier as a connection: bytes pass at once in both directions, as fast as the slower side reads, and destroying it aborts the stream.
import type { ClientHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";

export interface StreamDeps {
  readonly halfOpen: boolean;
  readonly abort: (inner: ClientHttp2Stream) => void;
}

class Broken extends Error {
  override readonly name = "CarrierBroken";
  readonly code = "ECONNRESET";
}

/** What node:http asks of a socket. The carrier itself is kept alive and without delay. */
interface SocketManners {
  setKeepAlive(): void;
  setNoDelay(): void;
  setTimeout(): void;
  ref(): void;
  unref(): void;
}
const MANNERS: SocketManners = {
  setKeepAlive: () => undefined,
  setNoDelay: () => undefined,
  setTimeout: () => undefined,
  ref: () => undefined,
  unref: () => undefined,
};

export const asConnection = (inner: ClientHttp2Stream, { halfOpen, abort }: StreamDeps): Duplex => {
  let ended = false;
  const outer = new Duplex({
    allowHalfOpen: halfOpen,
    highWaterMark: 65_536,
    read: () => void inner.resume(),
    write: (chunk: Buffer, _encoding, done) => {
      if (inner.destroyed || inner.closed) done(new Broken("the carrier has ended"));
      else inner.write(chunk, done);
    },
    final: (done) => {
      if (inner.destroyed || inner.closed) done();
      else inner.end(() => done());
    },
    destroy: (error, done) => {
      inner.removeAllListeners("data");
      if (!ended || !inner.writableEnded) abort(inner);
      done(error);
    },
  });
  // The holder of the connection sees its close; an error that nobody hears would end the process.
  outer.on("error", () => undefined);
  inner.on("data", (chunk: Buffer) => {
    if (!outer.push(chunk)) inner.pause();
  });
  inner.on("end", () => {
    // A reset and the end of the whole carrier end the readable side, too, and must not look like the end of the answer.
    if (inner.destroyed || inner.aborted || (inner.rstCode !== 0 && inner.rstCode !== undefined))
      return void outer.destroy(new Broken("the service broke off"));
    ended = true;
    outer.push(null);
  });
  inner.on("error", () => void outer.destroy(new Broken("the carrier broke")));
  inner.on("close", () => {
    if (!ended || inner.rstCode !== 0) outer.destroy(ended ? undefined : new Broken("the carrier broke"));
  });
  return Object.assign(outer, MANNERS);
};
