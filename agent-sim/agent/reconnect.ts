// When an agent comes back after its socket has ended or was refused: three rules, no IO. protocol/README.md tells them.
import { CLOSE, isTerminalClose } from "../../protocol/index.ts";
import { LONGEST_WAIT_MS, type Plan } from "./plan.ts";
import { between, type Random } from "./random.ts";

export type ReconnectTimes = Plan["reconnect"];

const SECOND = 1_000;
/** How often an agent that was told to stop asks REST whether that still holds. */
const ASK_MS = 300 * SECOND;
/** To be kept away for so long is worth telling the machine's operator. */
const LONG_WAIT_SEC = 300;

export type End =
  | { readonly kind: "closed"; readonly code: number; readonly reason: string; readonly wasReady: boolean }
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly code: string;
      readonly reason: string;
      readonly retryAfterSec: number | null;
      readonly serverTimeMs: number | null;
    };

export interface Circumstances {
  /** Attempts since the last stable session. */
  readonly attempt: number;
  readonly times: ReconnectTimes;
  readonly pollMs: number;
  /** What the last `drain` asked for. */
  readonly drainMs: number | null;
  /** True when the clock was just corrected by a refusal. */
  readonly corrected: boolean;
  /** In a rotation: the secret was refused, and there is another one to try. */
  readonly hasAnother: boolean;
  readonly random: Random;
}

export interface Verdict {
  /** null: not before REST has answered. */
  readonly reconnectInMs: number | null;
  /** How often REST is polled meanwhile; null: not at all. */
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

const toldSec = (end: End): number | null => (end.kind === "closed" ? retryAfterOf(end.reason) : end.retryAfterSec);
/** An answer that no repetition would change. */
const isFinal = (status: number): boolean => status >= 400 && status < 500;
const saysStop = (end: End): boolean => (end.kind === "closed" ? isTerminalClose(end.code) : isFinal(end.status));
const nameOf = (end: End): string => (end.kind === "closed" ? `closed with ${end.code} ${end.reason}` : `refused with ${end.status} ${end.reason || end.code}`);

/** Not before the time that was asked for, unless that is absurd, and not all at the same moment after it. */
const spread = (waitMs: number, { times, random }: Circumstances): number =>
  Math.min(LONGEST_WAIT_MS, waitMs) * between(random, 1, 1.1) + backoffMs(0, times, random);

/** After a session that was ready the whole fleet may be coming back, so the first wait is the gateway's window. */
const unasked = (end: End, { attempt, times, random }: Circumstances): number =>
  end.kind === "closed" && end.wasReady && attempt === 0 ? random() * times.firstWindowMs : backoffMs(attempt, times, random);

const come = (reconnectInMs: number, pollEveryMs: number | null, alarm: string | null = null): Verdict => ({ reconnectInMs, pollEveryMs, alarm });

export const afterEnd = (end: End, now: Circumstances): Verdict => {
  const { pollMs } = now;
  if (now.hasAnother) return come(backoffMs(now.attempt, now.times, now.random), pollMs);
  if (end.kind === "refused" && end.reason === "timestamp_skew" && now.corrected && now.attempt === 0) return come(0, pollMs);
  if (end.kind === "closed" && end.code === CLOSE.drain.code && now.drainMs !== null) return come(Math.min(LONGEST_WAIT_MS, now.drainMs), pollMs);
  const seconds = toldSec(end);
  if (seconds !== null)
    return come(spread(seconds * SECOND, now), saysStop(end) ? null : pollMs, seconds >= LONG_WAIT_SEC ? `${nameOf(end)}: back in ${seconds} s` : null);
  if (saysStop(end)) return { reconnectInMs: null, pollEveryMs: ASK_MS, alarm: `${nameOf(end)}: stays away until REST answers` };
  return come(unasked(end, now), pollMs);
};

/** The gateway does not accept the secret that this was tried with. */
export const isRefusedSecret = (end: End): boolean =>
  end.kind === "refused" ? end.status === 401 && end.reason === "bad_signature" : end.code === CLOSE.authFailed.code;
