// One leased endpoint in memory: what waits to be sent, in order per subject, at the endpoint's pace, and what is not yet written.

import type { DueRow, Health, Leased, Wanted } from "../store/work.ts";
import type { Endpoint, Sending } from "./attempt.ts";

export interface Waiting extends Sending {
  readonly subjectId: string;
  readonly tries: number;
}

/** What changes with the webhook's row. */
export interface EndpointState extends Endpoint {
  readonly epoch: number;
  readonly maxPerSecond: number;
  /** False: disabled or deleted. */
  readonly isOpen: boolean;
}

const CONCURRENCY = 4;
const WINDOW = 100;
/** Reads on before the last of the window is sent. */
const LOW = 25;

const toWaiting = (row: DueRow): Waiting => ({
  deliveryId: row.delivery_id,
  eventId: row.event_id,
  eventType: row.event_type,
  subjectId: row.subject_id,
  body: row.body,
  traceparent: row.traceparent,
  attemptsBefore: row.attempt_count,
  tries: row.tries,
  trigger: row.trigger as Waiting["trigger"], // as: the column holds nothing else
});

export const createRunner = ({ webhook_id: webhookId, tenant_id: tenantId, fence, consecutive_failures, failing_since }: Leased, leasedUntilMs: number) => {
  let waiting: Waiting[] = [];
  /** Subjects with a request under way. */
  const sending = new Set<string>();
  /** Results of a subject that are not written yet. */
  const unwritten = new Map<string, number>();
  /** Subjects that the last read has left out. */
  let leftOut: ReadonlySet<string> = new Set();
  /** There may be more than the read under way finds. */
  let isStirred = false;
  let consecutiveFailures = consecutive_failures;
  let failingSince = failing_since;
  let tokens = 1;
  let filledAtMs = 0;

  const refill = (state: EndpointState, atMs: number): void => {
    tokens = Math.min(Math.max(1, state.maxPerSecond / 10), tokens + ((atMs - filledAtMs) / 1_000) * state.maxPerSecond);
    filledAtMs = atMs;
  };
  const firstFree = (): number => waiting.findIndex(({ subjectId }) => !sending.has(subjectId));

  const runner = {
    webhookId,
    tenantId,
    fence,
    state: null as EndpointState | null,
    /** True once a read found nothing more that is due. */
    isDry: false,
    /** In ticks. */
    idleTicks: 0,
    isStopped: false,
    /** It is being given back: whoever holds it next reads what comes now. */
    isLeaving: false,
    /** By this process's clock: a node that cannot renew its lease begins nothing after it. */
    leasedUntilMs,

    isEmpty: (): boolean => waiting.length === 0 && sending.size === 0 && unwritten.size === 0,
    wants: (): boolean =>
      !runner.isStopped && !runner.isLeaving && !runner.isDry && (waiting.length < LOW || (sending.size < CONCURRENCY && firstFree() === -1)),
    /** Rows of a subject that is named here would come twice, or too early. */
    wanted: (): Wanted => {
      isStirred = false;
      leftOut = new Set([...waiting.map(({ subjectId }) => subjectId), ...sending, ...unwritten.keys()]);
      return { webhookId, places: WINDOW, busy: [...leftOut] };
    },
    loaded: (rows: readonly DueRow[]): void => {
      if (runner.isStopped) return;
      waiting.push(...rows.map(toWaiting));
      if (rows.length < WINDOW && !isStirred) runner.isDry = true;
    },
    /** There may be more to read. */
    stir: (): void => {
      runner.isDry = false;
      isStirred = true;
    },
    /** Milliseconds until the pace allows the next request; null when there is none that may go. */
    pause: (atMs: number): number | null => {
      const { state } = runner;
      if (runner.isStopped || atMs >= runner.leasedUntilMs || state === null || !state.isOpen || sending.size >= CONCURRENCY || firstFree() === -1) return null;
      refill(state, atMs);
      return tokens >= 1 ? 0 : ((1 - tokens) / state.maxPerSecond) * 1_000;
    },
    /** After `pause` was 0. */
    take: (): Waiting | undefined => {
      const [next] = waiting.splice(firstFree(), 1);
      if (next !== undefined) sending.add(next.subjectId);
      tokens -= 1;
      return next;
    },
    /** A later event of the subject must not overtake the failed one: they are read again once they may go. */
    ended: ({ subjectId }: Waiting, succeeded: boolean): void => {
      sending.delete(subjectId);
      unwritten.set(subjectId, (unwritten.get(subjectId) ?? 0) + 1);
      if (!succeeded) waiting = waiting.filter((each) => each.subjectId !== subjectId);
    },
    dropped: ({ subjectId }: Waiting): void => void sending.delete(subjectId),
    written: (subjectId: string): void => {
      const left = (unwritten.get(subjectId) ?? 1) - 1;
      if (left > 0) unwritten.set(subjectId, left);
      else unwritten.delete(subjectId);
      // What is left of the subject can be read as soon as nothing of it is here.
      if (left <= 0 && leftOut.has(subjectId) && !sending.has(subjectId) && !waiting.some((each) => each.subjectId === subjectId)) runner.stir();
    },
    stopSending: (): void => {
      if (runner.state !== null) runner.state = { ...runner.state, isOpen: false };
      waiting = [];
    },
    stop: (): void => {
      runner.isStopped = true;
      waiting = [];
    },
    /** True when a row of failures ends here. */
    noteSuccess: (failingAfter: number): boolean => {
      const hasRecovered = consecutiveFailures >= failingAfter;
      consecutiveFailures = 0;
      failingSince = null;
      return hasRecovered;
    },
    noteFailure: (now: Date): { readonly consecutiveFailures: number; readonly failingSince: Date } => {
      consecutiveFailures += 1;
      failingSince ??= now;
      return { consecutiveFailures, failingSince };
    },
    health: (): Omit<Health, "succeeded" | "failed"> => ({ webhookId, fence, consecutiveFailures, failingSince }),
  };
  return runner;
};
export type Runner = ReturnType<typeof createRunner>;
