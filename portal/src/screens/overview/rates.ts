// Commands that ended, by the second: those read when the page began, and since then one by one from events.
import type { LiveEvent } from "@mooring/client";
import { isBeginning } from "../../api/live.ts";
import { gatewayNow } from "../../ui/clock.ts";
import type { Ended } from "./ended.ts";

export const SPAN_SECONDS = 120;

const GOOD_ENDS: ReadonlySet<string> = new Set(["succeeded", "delivered"]);
const BAD_ENDS: ReadonlySet<string> = new Set(["failed", "rejected", "undeliverable", "expired", "timed_out"]);
export const isFailure = (status: string): boolean => BAD_ENDS.has(status);

const secondOf = (at: string): number => Math.floor(Date.parse(at) / 1_000);

type Counts = Map<number, { good: number; bad: number }>;
const count = (counts: Counts, second: number, status: string): void => {
  const known = counts.get(second) ?? { good: 0, bad: 0 };
  if (GOOD_ENDS.has(status)) known.good += 1;
  if (BAD_ENDS.has(status)) known.bad += 1;
  counts.set(second, known);
};

export interface RateSeries {
  readonly times: readonly number[];
  readonly good: readonly (number | null)[];
  readonly bad: readonly (number | null)[];
}

export const createRates = () => {
  let counts: Counts = new Map();
  /** The second of the first event; what was read counts up to it. */
  let first: number | null = null;
  let seen = new Set<string>();

  const receive = (events: readonly LiveEvent[]): void => {
    for (const event of events) {
      // What was read is about to be read again, and contains everything until now.
      if (isBeginning(event)) [counts, first, seen] = [new Map(), null, new Set()];
      const { status, finishedAt } = event.data as { status?: string; finishedAt?: string | null };
      if (!event.type.startsWith("command.") || status === undefined || finishedAt == null) continue;
      const second = secondOf(finishedAt);
      first ??= second;
      if (second <= first) seen.add(event.subjectId);
      count(counts, second, status);
    }
    const oldest = Math.floor(gatewayNow() / 1_000) - 2 * SPAN_SECONDS;
    for (const second of counts.keys()) if (second < oldest) counts.delete(second);
  };

  /** The seconds that have passed, with some time for their last events to arrive. Nothing is known of those before the oldest row of an incomplete read. */
  const series = (now: number, ended: Ended | undefined): RateSeries => {
    const before: Counts = new Map();
    let oldest = ended === undefined ? (first ?? now) : Number.NEGATIVE_INFINITY;
    for (const { commandId, status, finishedAt } of ended?.items ?? []) {
      if (finishedAt == null || status === undefined) continue;
      const second = secondOf(finishedAt);
      if (ended?.isComplete === false) oldest = oldest === Number.NEGATIVE_INFINITY ? second : Math.min(oldest, second);
      if (first === null || (second <= first && !seen.has(commandId))) count(before, second, status);
    }
    const times = Array.from({ length: SPAN_SECONDS }, (_, at) => now - 1 - SPAN_SECONDS + at);
    const line = (kind: "good" | "bad") =>
      times.map((second) => (second < oldest ? null : (before.get(second)?.[kind] ?? 0) + (counts.get(second)?.[kind] ?? 0)));
    return { times, good: line("good"), bad: line("bad") };
  };
  return { receive, series };
};
