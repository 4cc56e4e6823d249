// Keeps one carrier open: opens it, opens the next when the gateway drains, and comes back with backoff when it breaks.

import type { DialReason } from "../../../protocol/index.ts";
import { NoAnswer, ownAnswer, retryAfterMs } from "../answers.ts";
import { between, type Random } from "../timing/random.ts";
import type { Time } from "../timing/time.ts";
import { CarrierRefused, type Opening, openRaw, openWebSocket } from "./connect.ts";
import { type DialService, type ServeDeps, type Served, serveCarrier } from "./serve.ts";

export interface CarrierOptions {
  /** URL of the carrier itself; read at each try. */
  readonly url: () => string;
  /** Headers that prove who opens it, made anew for each try. */
  readonly headers: (url: string) => Readonly<Record<string, string>>;
  readonly dial: DialService;
  readonly time: Time;
  readonly random: Random;
  /** What happens within the carrier. Default: it serves the gateway's streams. */
  readonly serve?: (deps: ServeDeps) => Served;
  readonly onDialed?: (authority: string, reason: DialReason | null) => void;
  readonly on?: { readonly open?: () => void; readonly down?: (why: string) => void };
  /** `websocket`: never try the raw upgrade. */
  readonly only?: "websocket";
}

export interface CarrierClient {
  start(): void;
  stop(): void;
  readonly isOpen: boolean;
  /** Connections to services that are open. */
  readonly streams: number;
}

const BACKOFF = { baseMs: 500, capMs: 60_000 };
/** A carrier that lasted this long resets the backoff. */
const STABLE_MS = 30_000;

/** A proxy that does not know the upgrade answers by itself, or cuts the connection. */
const isForeign = (error: unknown): boolean => {
  if (!(error instanceof CarrierRefused)) return true;
  try {
    ownAnswer(error);
    return false;
  } catch (cause) {
    return cause instanceof NoAnswer;
  }
};

const waitOf = (error: unknown): number | null => {
  if (!(error instanceof CarrierRefused) || isForeign(error)) return null;
  return retryAfterMs(ownAnswer(error));
};

export const createCarrier = ({ url, headers, dial, time, random, onDialed, on, only, serve = serveCarrier }: CarrierOptions): CarrierClient => {
  let running = false;
  let attempt = 0;
  let asWebSocket = only === "websocket";
  let current: Served | null = null;
  const served = new Set<Served>();
  let cancel = (): void => undefined;

  const retry = (why: string, waitMs: number | null = null): void => {
    if (!running) return;
    on?.down?.(why);
    const backoff = random() * Math.min(BACKOFF.capMs, BACKOFF.baseMs * 2 ** Math.min(attempt, 10));
    attempt += 1;
    cancel();
    cancel = time.after(waitMs === null ? backoff : waitMs * between(random, 1, 1.1) + backoff, () => void open());
  };

  const adopt = (connection: ServeDeps["connection"]): void => {
    const openedAt = time.elapsedMs();
    let left = false;
    const one = serve({
      connection,
      dial,
      time,
      onDialed,
      onLeave: () => {
        if (left) return;
        left = true;
        attempt = 0;
        if (running && current === one) void open();
      },
      onEnd: () => {
        served.delete(one);
        if (current !== one) return;
        current = null;
        if (time.elapsedMs() - openedAt > STABLE_MS) attempt = 0;
        if (!left) retry("the carrier ended");
      },
    });
    served.add(one);
    current = one;
    on?.open?.();
  };

  const open = async (): Promise<void> => {
    const target = url();
    const opening: Opening = { url: target, headers: headers(target) };
    try {
      const connection = await (asWebSocket ? openWebSocket(opening) : openRaw(opening));
      if (running) adopt(connection);
      else connection.destroy();
    } catch (error) {
      // Whatever stands between may know one of both.
      if (only === undefined && isForeign(error)) asWebSocket = !asWebSocket;
      retry(error instanceof Error ? error.message : String(error), waitOf(error));
    }
  };

  return {
    start: () => {
      if (running) return;
      running = true;
      attempt = 0;
      void open();
    },
    stop: () => {
      running = false;
      cancel();
      for (const each of served) each.destroy();
    },
    get isOpen() {
      return current !== null;
    },
    get streams() {
      return [...served].reduce((sum, { open: streams }) => sum + streams, 0);
    },
  };
};
