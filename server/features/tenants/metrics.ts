// History of what devices report and of what happens, for a tenant and for one device: the roll-up, its retention, and the answers in buckets.

import type { contract, DeviceId, DeviceMetrics } from "../../../protocol/index.ts";
import { isLimited } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import { becomeLeader } from "../../core/leader-election.ts";
import { inRounds } from "../../core/rows/retention.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Consumer } from "../../platform/outbox/outbox.ts";
import type { DeviceStates } from "./dashboard.ts";
import { DAY, HOUR, type MetricRetention, MINUTE, nextProgress, readingOf, STEPS, spanOf } from "./metrics-rules.ts";
import {
  countEvents,
  forgetMetrics,
  type MetricRow,
  type RollUpProgress,
  readDeviceMetrics,
  readMetricsOf,
  readProgress,
  readTenantMetrics,
  rollUpDevices,
  rollUpTenants,
  sampleDevices,
  sumTenants,
  type TenantMetricRow,
  writeProgress,
} from "./store/metrics.ts";

export type { MetricRetention } from "./metrics-rules.ts";

export interface MetricsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly deviceStates: (scope: SystemScope) => Promise<DeviceStates>;
  /** All devices that the caller sees. */
  readonly deviceIds: (scope: SystemScope) => Promise<readonly string[]>;
  readonly metricRetention?: MetricRetention;
}

/** Enough for a chart of 60 buckets from each step. */
const RETENTION: MetricRetention = { [MINUTE]: 60 * HOUR, [HOUR]: 60 * DAY, [DAY]: 400 * DAY };
const ROLL_EVERY_MS = 15_000;
const DEVICES_PER_ROUND = 5_000;
const DEVICES_PER_HOUR_ROUND = 1_000;
const FORGET_EVERY_MS = 600_000;
const FORGET_ROWS = 10_000;

export const createMetricHistory = ({ db, clock, deviceStates, deviceIds, metricRetention = RETENTION }: MetricsDeps) => {
  const handlers: Pick<Handlers<typeof contract.tenants>, "metrics"> = {
    metrics: async ({ scope, fail }, { tenantId, metric, range }) => {
      if (tenantId !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId });
      const reading = readingOf(range, clock.now(), metricRetention);
      if (metric === "activity" && isLimited(scope)) throw new AppError("FORBIDDEN", { details: { reason: "limited_access", metric } });
      const rows = isLimited(scope) ? await readMetricsOf(db, scope, await deviceIds(scope), reading) : await readTenantMetrics(db, scope, reading);
      const buckets = toBuckets(reading, rows, COUNTS[metric]);
      return {
        metric,
        tenantId,
        range,
        buckets,
        summary: { bucketSeconds: reading.bucketSeconds, ...(await summaryOf(metric, rows, () => deviceStates(scope))) },
      };
    },
  };
  const retention = (["devices", "tenants"] as const).flatMap((of) =>
    STEPS.map((step) => inRounds(FORGET_ROWS, (batch) => forgetMetrics(db, { of, step, keepSeconds: metricRetention[step] }, batch))),
  );
  const jobs: readonly Job[] = [
    // One batch in one transaction; true asks for the next at once.
    {
      name: "metrics.roll-up",
      everyMs: ROLL_EVERY_MS,
      run: () =>
        db.sqlTx(async (tx) => {
          if (!(await becomeLeader(tx, "metricsRollUp"))) return false;
          const next = nextProgress(await readProgress(tx), clock.now());
          if (next === null) return false;
          const { found, last } = await runBatch(tx, next);
          const isComplete = last === null || found < batchSize(next);
          if (isComplete) await (next.step === MINUTE ? sumTenants(tx, next.at) : rollUpTenants(tx, spanOf(next)));
          await writeProgress(tx, { ...next, after: isComplete ? null : last });
          return true;
        }),
    },
    {
      name: "metrics.retention",
      everyMs: FORGET_EVERY_MS,
      run: async () => {
        let more = false;
        for (const runBatch of retention) more = (await runBatch()) || more;
        return more;
      },
    },
  ];
  const consumer: Consumer = async (tx, events) => void (await countEvents(tx, events));
  return {
    handlers,
    jobs,
    consumer,
    ofDevice: async (scope: SystemScope, deviceId: DeviceId, range: string): Promise<DeviceMetrics> => {
      const reading = readingOf(range, clock.now(), metricRetention);
      const buckets = toBuckets(reading, await readDeviceMetrics(db, scope, deviceId, reading), ({ samples }) => samples);
      return { deviceId, range, bucketSeconds: reading.bucketSeconds, buckets };
    },
  };
};

const batchSize = ({ step }: RollUpProgress): number => (step === MINUTE ? DEVICES_PER_ROUND : DEVICES_PER_HOUR_ROUND);
const runBatch = (tx: Parameters<typeof sampleDevices>[0], next: RollUpProgress) => {
  const batch = { at: next.at, after: next.after ?? "", limit: batchSize(next) };
  return next.step === MINUTE ? sampleDevices(tx, batch) : rollUpDevices(tx, spanOf(next), batch);
};

const figure = (name: string, avg: number | null, max: number | null) =>
  avg === null || max === null ? {} : { [name]: { avg: Math.round(avg * 100) / 100, max: Math.round(max * 100) / 100 } };

const figuresOf = (row: MetricRow) => ({
  ...figure("cpu", row.cpu_avg, row.cpu_max),
  ...figure("memory", row.memory_avg, row.memory_max),
  ...figure("disk", row.disk_avg, row.disk_max),
});

/** Every bucket of the range, those without rows too. */
const toBuckets = <R extends MetricRow>({ from, bucketSeconds, count }: ReturnType<typeof readingOf>, rows: readonly R[], countOf: (row: R) => number) => {
  const byBucket = new Map(rows.map((row) => [row.bucket, row]));
  return Array.from({ length: count }, (_, index) => {
    const row = byBucket.get(index);
    const timestamp = new Date(from.getTime() + index * bucketSeconds * 1_000).toISOString();
    return row === undefined ? { timestamp, count: 0 } : { timestamp, count: countOf(row), ...figuresOf(row) };
  });
};

type Metric = "health" | "activity" | "resources";
const COUNTS: Readonly<Record<Metric, (row: TenantMetricRow) => number>> = {
  health: ({ devices }) => devices,
  activity: ({ events }) => events,
  resources: ({ samples }) => samples,
};

const summaryOf = async (metric: Metric, rows: readonly TenantMetricRow[], deviceStates: () => Promise<DeviceStates>): Promise<Record<string, unknown>> => {
  if (metric === "activity") return { events: rows.reduce((total, { events }) => total + events, 0) };
  if (metric === "health") return { devices: await deviceStates() };
  const newest = rows.reduce<TenantMetricRow | null>((last, row) => (row.samples > 0 && row.bucket >= (last?.bucket ?? 0) ? row : last), null);
  return { samples: rows.reduce((total, { samples }) => total + samples, 0), newest: newest === null ? {} : figuresOf(newest) };
};
