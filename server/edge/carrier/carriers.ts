// The carriers of this node, by the device or tunnel that they serve.
import type { Duplex } from "node:stream";
import { type CarrierFacts, type CarrierListener, type Carriers, DialFailure, type DialOptions } from "../../core/ports/carriers.ts";
import { type Carrier, openCarrier } from "./session.ts";

export interface CarriersDeps {
  /** Reaches the carrier of another node; null: there is none. */
  readonly elsewhere?: ((key: string, authority: string, options: DialOptions) => Promise<Duplex | null>) | undefined;
  readonly settings?: { readonly abortByReset?: boolean; readonly bufferBytes?: number } | undefined;
}

export interface OwnCarriers extends Carriers {
  adopt(facts: CarrierFacts, connection: Duplex): void;
  /** Tells the agents to open other carriers. */
  leave(): void;
  /** On this node only, for other nodes. */
  dialHere(key: string, authority: string, options?: DialOptions): Promise<Duplex>;
}

/** All that visitors have not read yet, together. */
const BUFFER_BYTES = 268_435_456;
const MEASURE_MS = 500;

export const createCarriers = ({ elsewhere, settings = {} }: CarriersDeps): OwnCarriers => {
  const byKey = new Map<string, Carrier[]>();
  const listeners: CarrierListener[] = [];
  const turns = new Map<string, number>();
  let leaving = false;
  let measuredAt = 0;
  let isFull = false;

  const all = (): readonly Carrier[] => [...byKey.values()].flat();
  const checkMemory = (): void => {
    const now = performance.now();
    if (now - measuredAt > MEASURE_MS) {
      measuredAt = now;
      isFull = all().reduce((sum, carrier) => sum + carrier.buffered(), 0) > (settings.bufferBytes ?? BUFFER_BYTES);
    }
    if (isFull) throw new DialFailure("full");
  };
  const remove = (carrier: Carrier): void => {
    const { key } = carrier.facts;
    const left = (byKey.get(key) ?? []).filter((each) => each !== carrier);
    if (left.length > 0) byKey.set(key, left);
    else {
      byKey.delete(key);
      turns.delete(key);
    }
    for (const { closed } of listeners) closed(carrier.facts);
  };
  /** An agent that opens a second carrier has lost the first, so the newest counts; connectors take turns. */
  const choose = (key: string): Carrier | null => {
    const carriers = byKey.get(key) ?? [];
    if (carriers.length < 2 || !key.startsWith("tun_")) return carriers.at(-1) ?? null;
    const turn = turns.get(key) ?? 0;
    turns.set(key, turn + 1);
    return carriers[turn % carriers.length] ?? null;
  };
  const dialHere: OwnCarriers["dialHere"] = async (key, authority, options = {}) => {
    const carrier = choose(key);
    if (carrier === null) throw new DialFailure("offline");
    checkMemory();
    return carrier.dial(authority, options);
  };

  return {
    dialHere,
    dial: async (key, authority, options = {}) => {
      if (byKey.has(key)) return dialHere(key, authority, options);
      const found = await elsewhere?.(key, authority, options);
      if (found == null) throw new DialFailure("offline");
      return found;
    },
    has: (key) => byKey.has(key),
    list: (key) => (byKey.get(key) ?? []).map(({ facts }) => facts),
    all: () => all().map(({ facts }) => facts),
    end: (key) => {
      for (const carrier of byKey.get(key) ?? []) carrier.destroy();
    },
    listen: (listener) => void listeners.push(listener),
    figures: () => ({ carriers: all().length, streams: all().reduce((sum, { open }) => sum + open, 0) }),
    adopt: (facts, connection) => {
      const carrier = openCarrier({ facts, connection, onEnd: remove, abortByReset: settings.abortByReset });
      byKey.set(facts.key, [...(byKey.get(facts.key) ?? []), carrier]);
      for (const { opened } of listeners) opened(facts);
      if (leaving) carrier.leave();
    },
    leave: () => {
      leaving = true;
      for (const carrier of all()) carrier.leave();
    },
  };
};
