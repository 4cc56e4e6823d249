// What an app used over the last day, in buckets.
import { type AppMetrics, type contract, rangeSeconds } from "../../../protocol/index.ts";
import type { Handlers } from "../../core/feature.ts";
import type { FeatureKit } from "../kit.ts";
import { unknownApp } from "./handlers/changes.ts";
import { readFigures, SLOT_SECONDS } from "./store/app-figures.ts";
import { findApp } from "./store/apps.ts";

type Slot = Awaited<ReturnType<typeof readFigures>>[number];
type Figure = "cpuPercent" | "memoryBytes" | "responseMs";

const SLOT_MS = SLOT_SECONDS * 1_000;
const rounded = (value: number): number => Math.round(value * 100) / 100;
const figure = (name: Figure, samples: number, { sum, max }: { readonly sum: number; readonly max: number }) =>
  samples === 0 ? {} : { [name]: { avg: rounded(sum / samples), max: rounded(max) } };

const figuresOf = (slot: Slot) => ({
  ...figure("cpuPercent", slot.cpuSamples, { sum: slot.cpuSum, max: slot.cpuMax }),
  ...figure("memoryBytes", slot.memorySamples, { sum: slot.memorySum, max: slot.memoryMax }),
  ...figure("responseMs", slot.responseSamples, { sum: slot.responseSum, max: slot.responseMax }),
});

/** Every bucket of the range, the newest of which contains now; those without samples too. */
const toBuckets = (slots: readonly Slot[], from: Date, count: number): AppMetrics["buckets"] => {
  const byTime = new Map(slots.map((slot) => [slot.at.getTime(), slot]));
  return Array.from({ length: count }, (_, index) => {
    const atMs = from.getTime() + index * SLOT_MS;
    const slot = byTime.get(atMs);
    const timestamp = new Date(atMs).toISOString();
    return slot === undefined ? { timestamp, count: 0 } : { timestamp, count: slot.samples, ...figuresOf(slot) };
  });
};

export const createAppMetrics = ({ db, clock }: Pick<FeatureKit, "db" | "clock">): Pick<Handlers<typeof contract.apps>, "metrics"> => ({
  metrics: async ({ scope }, { appId, range }) => {
    if ((await findApp(db, scope, appId)) === null) throw unknownApp(appId);
    const count = Math.ceil(rangeSeconds(range) / SLOT_SECONDS);
    const from = new Date((Math.floor(clock.now().getTime() / SLOT_MS) - count + 1) * SLOT_MS);
    return { appId, range, bucketSeconds: SLOT_SECONDS, buckets: toBuckets(await readFigures(db, scope, appId, from), from, count) };
  },
});
