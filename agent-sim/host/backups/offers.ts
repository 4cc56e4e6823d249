// Backups that this device offers for a download: the first stream of the carrier that asks for one gets it as a tar archive.
import { Duplex, Writable } from "node:stream";
import { noop, type ServiceConnection, type Time } from "../../agent/index.ts";

/** Writes the archive and resolves once it is whole. `signal`: nobody reads it any more. */
export type SendArchive = (into: Writable, signal: AbortSignal) => Promise<void>;

export interface Offer {
  readonly downloadId: string;
  readonly seconds: number;
  readonly send: SendArchive;
}

export interface Offers {
  add(offer: Offer): void;
  /** Null: the authority names no download. `not_allowed`: it was given already. */
  dial(authority: string): ServiceConnection | "unknown" | "not_allowed" | null;
  /** An offer stands, or an archive is on its way. */
  readonly needsCarrier: boolean;
  /** Called after each new offer. */
  onAdded(listener: () => void): void;
}

const PREFIX = "download:";
const MAX_OFFERS = 32;

/** What the carrier takes for a connection to a service: it gives the archive and ignores what comes in. */
class Archive extends Duplex implements ServiceConnection {
  connecting = true;
  #resume = noop;

  constructor(send: SendArchive) {
    super({ allowHalfOpen: true });
    const gone = new AbortController();
    this.once("close", () => gone.abort());
    process.nextTick(() => {
      if (this.destroyed) return;
      this.connecting = false;
      this.emit("connect");
      const sink = new Writable({
        write: (chunk: Buffer, _encoding, done) => {
          if (this.push(chunk)) done();
          else this.#resume = done;
        },
      });
      this.once("close", () => sink.destroy());
      sink.on("error", noop);
      send(sink, gone.signal).then(
        () => this.push(null),
        (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
      );
    });
  }
  override _read(): void {
    const resume = this.#resume;
    this.#resume = noop;
    resume();
  }
  override _write(_chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    done();
  }
  setNoDelay(): this {
    return this;
  }
  resetAndDestroy(): this {
    return this.destroy();
  }
}

interface Kept {
  /** Null once it is given. */
  send: SendArchive | null;
  readonly withdraw: () => void;
}

export const createOffers = (time: Time): Offers => {
  const offers = new Map<string, Kept>();
  let sending = 0;
  let added = noop;
  return {
    onAdded: (listener) => {
      added = listener;
    },
    add: ({ downloadId, seconds, send }) => {
      // The order came again.
      if (offers.has(downloadId)) return;
      const [oldest] = offers.values();
      if (offers.size >= MAX_OFFERS) oldest?.withdraw();
      const cancel = time.after(seconds * 1_000, () => void offers.delete(downloadId));
      const withdraw = (): void => {
        cancel();
        offers.delete(downloadId);
      };
      offers.set(downloadId, { send, withdraw });
      added();
    },
    dial: (authority) => {
      if (!authority.startsWith(PREFIX)) return null;
      const offer = offers.get(authority.slice(PREFIX.length));
      if (offer === undefined) return "unknown";
      const { send } = offer;
      if (send === null) return "not_allowed";
      offer.send = null;
      sending += 1;
      const archive = new Archive(send);
      archive.once("close", () => (sending -= 1));
      return archive;
    },
    get needsCarrier() {
      return sending > 0 || [...offers.values()].some(({ send }) => send !== null);
    },
  };
};
