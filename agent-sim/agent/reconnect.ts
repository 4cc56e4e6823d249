// Decides when an agent reconnects after its socket ended or was refused, by the three rules of protocol/README.md. No IO.
import { CLOSE, isTerminalClose } from "../../protocol/index.ts";
import { givenWaitMs, saysStop as refusesForGood } from "./answers.ts";
import { type AgentPlan, LONGEST_WAIT_MS } from "./plan.ts";
import { between, type Random } from "./timing/random.ts";

export type ReconnectTimes = AgentPlan["reconnect"];

/** How often an agent that must stop asks REST whether it still must. A whole tenant may have to stop at one moment, so the interval is a random one. */
const ASK_MS = { least: 240_000, most: 360_000 };
/** A wait this long is reported to the machine's operator. */
const LONG_WAIT_MS = 300_000;

/** A proxy without its backend refuses the whole fleet at one moment, so the agents come back over this time. */
const FOREIGN_WINDOW_MS = 20_000;

/** `refused`: by the gateway. What a proxy answers to an upgrade is a connection that was `closed`. */
export type SessionEnd =
  | { readonly kind: "closed"; readonly code: number; readonly reason: string; readonly wasReady: boolean; readonly isForeign?: true }
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly code: string;
      readonly reason: string;
      readonly retryAfterMs: number | null;
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
  /** The one before did so, too. */
  readonly correctedBefore: boolean;
  /** The gateway refused the secret, and a rotation left another one to try. */
  readonly hasAnother: boolean;
  readonly random: Random;
}

export interface ReconnectDecision {
  /** null: only after REST has accepted the agent. */
  readonly reconnectInMs: number | null;
  /** Delay before it asks REST for the first time; null if it reconnects by itself. */
  readonly askInMs: number | null;
  /** Interval of polls meanwhile; null: none. */
  readonly pollEveryMs: number | null;
  readonly alarm: string | null;
}

/** Full jitter: random(0, min(cap, base · 2^n)), over `leastWindowMs` at least. */
export const backoffMs = (
  attempt: number,
  { baseMs, capMs, leastWindowMs = 0 }: ReconnectTimes & { readonly leastWindowMs?: number },
  random: Random,
): number => random() * Math.min(capMs, Math.max(leastWindowMs, baseMs * 2 ** Math.min(attempt, 30)));

/** `token;ra=2.5` → 2500, at most an hour. */
export const waitInReason = (reason: string): number | null => givenWaitMs(/;ra=([^;]*)/.exec(reason)?.[1]);

const requestedMs = (end: SessionEnd): number | null => (end.kind === "closed" ? waitInReason(end.reason) : end.retryAfterMs);
const saysStop = (end: SessionEnd): boolean => (end.kind === "closed" ? isTerminalClose(end.code) : refusesForGood(end));
export const nameOfEnd = (end: SessionEnd): string =>
  end.kind === "closed" ? `closed with ${end.code} ${end.reason}` : `refused with ${end.status} ${end.reason || end.code}`;

/** Waits at least as long as requested (an hour at most), plus jitter. */
const spread = (waitMs: number, { times, random }: ReconnectContext): number =>
  Math.min(LONGEST_WAIT_MS, waitMs) * between(random, 1, 1.1) + backoffMs(0, times, random);

/** After a ready session the whole fleet may be reconnecting, so the first wait is spread over the gateway's window. */
const defaultWaitMs = (end: SessionEnd, { attempt, times, random }: ReconnectContext): number =>
  end.kind === "closed" && end.wasReady && attempt === 0
    ? random() * times.firstWindowMs
    : backoffMs(attempt, end.kind === "closed" && end.isForeign ? { ...times, leastWindowMs: FOREIGN_WINDOW_MS } : times, random);

const reconnect = (reconnectInMs: number, pollEveryMs: number | null, alarm: string | null = null): ReconnectDecision => ({
  reconnectInMs,
  askInMs: null,
  pollEveryMs,
  alarm,
});

/** The gateway refused the timestamp and told the time. Once; two nodes that disagree must not keep an agent busy. */
export const isCorrection = (end: SessionEnd, { corrected, correctedBefore }: Pick<ReconnectContext, "corrected" | "correctedBefore">): boolean =>
  end.kind === "refused" && end.reason === "timestamp_skew" && corrected && !correctedBefore;

export const afterEnd = (end: SessionEnd, now: ReconnectContext): ReconnectDecision => {
  const { pollMs } = now;
  if (now.hasAnother) return reconnect(backoffMs(now.attempt, now.times, now.random), pollMs);
  if (isCorrection(end, now)) return reconnect(0, pollMs);
  if (end.kind === "closed" && end.code === CLOSE.drain.code && now.drainWaitMs !== null) return reconnect(Math.min(LONGEST_WAIT_MS, now.drainWaitMs), pollMs);
  const waitMs = requestedMs(end);
  if (waitMs !== null)
    return reconnect(
      spread(waitMs, now),
      saysStop(end) ? null : pollMs,
      waitMs >= LONG_WAIT_MS ? `${nameOfEnd(end)}; reconnects in ${Math.round(waitMs / 1_000)} s` : null,
    );
  if (saysStop(end))
    return {
      reconnectInMs: null,
      askInMs: defaultWaitMs(end, now),
      pollEveryMs: between(now.random, ASK_MS.least, ASK_MS.most),
      alarm: `${nameOfEnd(end)}; does not reconnect until REST accepts the agent`,
    };
  return reconnect(defaultWaitMs(end, now), pollMs);
};

/** The gateway refused the secret of this attempt. */
export const isRefusedSecret = (end: SessionEnd): boolean => (end.kind === "refused" ? end.reason === "bad_signature" : end.code === CLOSE.authFailed.code);
