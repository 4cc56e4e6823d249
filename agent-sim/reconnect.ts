// What an agent does after its socket has ended or was refused: one table, no IO. The rules are those of protocol/README.md.
import { CLOSE, isTerminalClose, type ReconnectPlan } from "../protocol/index.ts";
import { between, type Random } from "./random.ts";

export type ReconnectTimes = Readonly<{ [K in keyof typeof ReconnectPlan.shape]: number }>;

/** Until the first `welcome` tells the gateway's own figures. */
export const DEFAULT_RECONNECT: ReconnectTimes = { firstWindowMs: 30_000, baseMs: 1_000, capMs: 300_000, stableAfterSec: 60 };

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const REASON_POLL_MS = 5 * MINUTE;
const SUSPENDED_POLL_MS = 60 * MINUTE;
const LONG_PAUSE_MS = 15 * MINUTE;
/** So many supersessions within ten minutes mean that two agents share one identity. */
const SUPERSEDED_ALARM = 3;

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
  /** Closes by 4009 within the last ten minutes, this one included. */
  readonly superseded: number;
  /** True when the clock was just corrected by a refusal. */
  readonly corrected: boolean;
  /** In a rotation: the secret was refused, and there is another one to try. */
  readonly hasAnother: boolean;
  readonly random: Random;
}

export interface Verdict {
  /** null: not before an operator, new credentials or (`revivedByPoll`) a REST answer. */
  readonly reconnectInMs: number | null;
  /** How often REST is asked meanwhile; null: not at all. */
  readonly pollEveryMs: number | null;
  readonly revivedByPoll: boolean;
  readonly halveInFlight: boolean;
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

const come = (reconnectInMs: number, { pollMs }: Circumstances, more: Partial<Verdict> = {}): Verdict => ({
  reconnectInMs,
  pollEveryMs: pollMs,
  revivedByPoll: false,
  halveInFlight: false,
  alarm: null,
  ...more,
});
const halt = (pollEveryMs: number | null, alarm: string, revivedByPoll = true): Verdict => ({
  reconnectInMs: null,
  pollEveryMs,
  revivedByPoll,
  halveInFlight: false,
  alarm,
});

const afterBackoff = (now: Circumstances, floorMs = 0, more: Partial<Verdict> = {}): Verdict =>
  come(floorMs + backoffMs(now.attempt, now.times, now.random), now, more);
/** A session that ended through no fault of its own: the whole fleet comes back at once, so it spreads over the window. */
const overWindow = (now: Circumstances): Verdict => (now.attempt === 0 ? come(now.random() * now.times.firstWindowMs, now) : afterBackoff(now));
const asTold = (seconds: number | null, now: Circumstances): Verdict =>
  seconds === null ? afterBackoff(now) : come(seconds * SECOND * between(now.random, 1, 1.25) + backoffMs(0, now.times, now.random), now);

const afterSuperseded = (now: Circumstances): Verdict =>
  now.superseded >= SUPERSEDED_ALARM
    ? come(LONG_PAUSE_MS, now, { alarm: "superseded again and again: another agent uses this identity" })
    : come(between(now.random, 30 * SECOND, 60 * SECOND), now);

export const afterClose = ({ code, reason, wasReady }: Extract<End, { kind: "closed" }>, now: Circumstances): Verdict => {
  switch (code) {
    case CLOSE.drain.code:
      return come(now.drainMs ?? now.random() * now.times.firstWindowMs, now);
    case CLOSE.tryLater.code:
    case CLOSE.rateLimited.code:
      return asTold(retryAfterOf(reason), now);
    case CLOSE.protocolError.code:
      return afterBackoff(now, 30 * SECOND, { alarm: `the gateway reports a protocol error: ${reason}` });
    case CLOSE.slowConsumer.code:
      return afterBackoff(now, 0, { halveInFlight: true });
    case CLOSE.superseded.code:
      return afterSuperseded(now);
    case CLOSE.sessionExpired.code:
      return come(between(now.random, 0, 10 * SECOND), now);
    case CLOSE.secretRotated.code:
      return now.attempt === 0 ? come(0, now) : afterBackoff(now);
    case CLOSE.authFailed.code:
      return halt(REASON_POLL_MS, "the gateway does not accept the proof");
    case CLOSE.deviceRevoked.code:
      return halt(null, "the device was revoked; only an operator can pair it again", false);
    case CLOSE.tenantSuspended.code:
      return halt(SUSPENDED_POLL_MS, "the tenant is suspended");
    case CLOSE.protocolUnsupported.code:
      return halt(now.pollMs, "the gateway does not speak this agent's protocol", false);
    case CLOSE.duplicateIdentity.code:
      return come(LONG_PAUSE_MS, now, { alarm: "another agent with this identity is connected" });
    default:
      if (isTerminalClose(code)) return halt(REASON_POLL_MS, `closed for good: ${code} ${reason}`);
      return wasReady && code < 4000 ? overWindow(now) : afterBackoff(now);
  }
};

/** A refused upgrade: the reason decides, not the status alone. Credentials are kept whatever the answer. */
export const afterRefusal = ({ status, reason, code, retryAfterSec }: Extract<End, { kind: "refused" }>, now: Circumstances): Verdict => {
  if (status === 429 || status === 503) return asTold(retryAfterSec, now);
  if (status === 426) return halt(now.pollMs, "the gateway does not speak this agent's protocol", false);
  if (status === 403)
    return code === "TENANT_SUSPENDED" ? halt(SUSPENDED_POLL_MS, "the tenant is suspended") : halt(REASON_POLL_MS, `refused: ${reason || code}`);
  if (status !== 401) return afterBackoff(now);
  if (reason === "timestamp_skew") return now.corrected && now.attempt === 0 ? come(0, now) : afterBackoff(now);
  if (reason === "replayed") return afterBackoff(now);
  return halt(REASON_POLL_MS, `refused: ${reason || code}`);
};

/** The gateway does not accept the secret that this was tried with. */
export const isRefusedSecret = (end: End): boolean =>
  end.kind === "refused" ? end.status === 401 && end.reason === "bad_signature" : end.code === CLOSE.authFailed.code;

export const afterEnd = (end: End, now: Circumstances): Verdict => (now.hasAnother ? afterBackoff(now) : afterJudged(end, now));
const afterJudged = (end: End, now: Circumstances): Verdict => (end.kind === "closed" ? afterClose(end, now) : afterRefusal(end, now));
