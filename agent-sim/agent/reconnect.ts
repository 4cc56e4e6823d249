// Decides when an agent reconnects after its socket ended or was refused, by the three rules of protocol/README.md. No IO.
import { CLOSE, isTerminalClose } from "../../protocol/index.ts";
import { type AgentPlan, LONGEST_WAIT_MS } from "./plan.ts";
import { between, type Random } from "./random.ts";

export type ReconnectTimes = AgentPlan["reconnect"];

const SECOND = 1_000;
/** How often an agent that must stop asks REST whether it still must. */
const ASK_MS = 300 * SECOND;
/** A wait this long is reported to the machine's operator. */
const LONG_WAIT_SEC = 300;

export type SessionEnd =
  | { readonly kind: "closed"; readonly code: number; readonly reason: string; readonly wasReady: boolean }
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly code: string;
      readonly reason: string;
      readonly retryAfterSec: number | null;
      readonly serverTimeMs: number | null;
    };

export interface ReconnectContext {
  /** Attempts since the last stable session. */
  readonly attempt: number;
  readonly times: ReconnectTimes;
  readonly pollMs: number;
  /** Wait that the last `drain` asked for. */
  readonly drainWaitMs: number | null;
  /** The last refusal corrected the clock. */
  readonly corrected: boolean;
  /** The gateway refused the secret, and a rotation left another one to try. */
  readonly hasAnother: boolean;
  readonly random: Random;
}

export interface ReconnectDecision {
  /** null: only after REST has accepted the agent. */
  readonly reconnectInMs: number | null;
  /** Interval of polls meanwhile; null: none. */
  readonly pollEveryMs: number | null;
  readonly alarm: string | null;
}

/** Full jitter: random(0, min(cap, base · 2^n)). */
export const backoffMs = (attempt: number, { baseMs, capMs }: ReconnectTimes, random: Random): number =>
  random() * Math.min(capMs, baseMs * 2 ** Math.min(attempt, 30));

/** `token;ra=5` → 5. */
export const retryAfterOf = (reason: string): number | null => {
  const match = /;ra=(\d{1,6})(?:$|;)/.exec(reason);
  return match?.[1] === undefined ? null : Number(match[1]);
};

const requestedSec = (end: SessionEnd): number | null => (end.kind === "closed" ? retryAfterOf(end.reason) : end.retryAfterSec);
/** A status that a retry would not change. */
const isFinal = (status: number): boolean => status >= 400 && status < 500;
const saysStop = (end: SessionEnd): boolean => (end.kind === "closed" ? isTerminalClose(end.code) : isFinal(end.status));
const nameOf = (end: SessionEnd): string =>
  end.kind === "closed" ? `closed with ${end.code} ${end.reason}` : `refused with ${end.status} ${end.reason || end.code}`;

/** Waits at least as long as requested (an hour at most), plus jitter. */
const spread = (waitMs: number, { times, random }: ReconnectContext): number =>
  Math.min(LONGEST_WAIT_MS, waitMs) * between(random, 1, 1.1) + backoffMs(0, times, random);

/** After a ready session the whole fleet may be reconnecting, so the first wait is spread over the gateway's window. */
const defaultWaitMs = (end: SessionEnd, { attempt, times, random }: ReconnectContext): number =>
  end.kind === "closed" && end.wasReady && attempt === 0 ? random() * times.firstWindowMs : backoffMs(attempt, times, random);

const reconnect = (reconnectInMs: number, pollEveryMs: number | null, alarm: string | null = null): ReconnectDecision => ({
  reconnectInMs,
  pollEveryMs,
  alarm,
});

export const afterEnd = (end: SessionEnd, now: ReconnectContext): ReconnectDecision => {
  const { pollMs } = now;
  if (now.hasAnother) return reconnect(backoffMs(now.attempt, now.times, now.random), pollMs);
  if (end.kind === "refused" && end.reason === "timestamp_skew" && now.corrected && now.attempt === 0) return reconnect(0, pollMs);
  if (end.kind === "closed" && end.code === CLOSE.drain.code && now.drainWaitMs !== null) return reconnect(Math.min(LONGEST_WAIT_MS, now.drainWaitMs), pollMs);
  const seconds = requestedSec(end);
  if (seconds !== null)
    return reconnect(
      spread(seconds * SECOND, now),
      saysStop(end) ? null : pollMs,
      seconds >= LONG_WAIT_SEC ? `${nameOf(end)}; reconnects in ${seconds} s` : null,
    );
  if (saysStop(end)) return { reconnectInMs: null, pollEveryMs: ASK_MS, alarm: `${nameOf(end)}; does not reconnect until REST accepts the agent` };
  return reconnect(defaultWaitMs(end, now), pollMs);
};

/** The gateway refused the secret of this attempt. */
export const isRefusedSecret = (end: SessionEnd): boolean =>
  end.kind === "refused" ? end.status === 401 && end.reason === "bad_signature" : end.code === CLOSE.authFailed.code;
