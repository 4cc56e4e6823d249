// Statements of the metrics. Presence keeps each device's newest report; once a minute the roll-up adds these up in batches, so heartbeats pay nothing.
import type { DispatchedEvent, SqlTx } from "../../../core/events.ts";
import { deleteByTime, type ExpiryBatch, type ExpiryStep, runExpiry } from "../../../core/rows/retention.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

export interface RollUpProgress {
  readonly step: number;
  readonly at: Date;
  /** Null: complete. */
  readonly after: string | null;
}

const READ_PROGRESS = statement<RollUpProgress>("metrics.readProgress", `select step_seconds as step, at, after_device as after from metric_progress`);
export const readProgress = (tx: SqlTx): Promise<readonly RollUpProgress[]> => tx.query(READ_PROGRESS);

const WRITE_PROGRESS = statement(
  "metrics.writeProgress",
  `insert into metric_progress (step_seconds, at, after_device) values ($1, $2, $3) on conflict (step_seconds) do update set at = $2, after_device = $3`,
);
export const writeProgress = (tx: SqlTx, { step, at, after }: RollUpProgress): Promise<unknown> => tx.query(WRITE_PROGRESS, [step, at, after]);

export interface Batch {
  readonly found: number;
  readonly last: string | null;
}

const FIGURES = ["cpu", "memory", "disk"] as const;
const COLUMNS = FIGURES.flatMap((name) => [`${name}_avg`, `${name}_max`]).join(", ");
/** A report may name anything; a figure is a number of percent. */
const percent = (name: string): string =>
  `case when jsonb_typeof(metrics -> '${name}') = 'number' then case when (metrics ->> '${name}')::numeric between 0 and 100 then (metrics ->> '${name}')::real end end`;
const average = (name: string): string => `sum(${name}_avg::float8 * samples) / nullif(sum(samples) filter (where ${name}_avg is not null), 0)`;
const ADDED_UP = FIGURES.map((name) => `(${average(name)})::real, max(${name}_max)`).join(", ");

const SAMPLE_DEVICES = statement<Batch>(
  "metrics.sampleDevices",
  `with beats as (
     select tenant_id, device_id, ${FIGURES.map((name) => `${percent(name)} as ${name}`).join(", ")} from device_presence
      where device_id > $2 and last_heartbeat_at > now() - interval '60 seconds' order by device_id limit $3),
   kept as (
     insert into device_metrics (tenant_id, device_id, step_seconds, at, samples, ${COLUMNS})
     select tenant_id, device_id, 60, $1, 1, ${FIGURES.map((name) => `${name}, ${name}`).join(", ")} from beats on conflict do nothing)
   select count(*)::int as found, max(device_id) as last from beats`,
);

/** Writes one minute's row for the next devices that sent a heartbeat in the last minute. */
export const sampleDevices = async (tx: SqlTx, batch: { readonly at: Date; readonly after: string; readonly limit: number }): Promise<Batch> =>
  (await tx.query(SAMPLE_DEVICES, [batch.at, batch.after, batch.limit]))[0] ?? { found: 0, last: null };

const ROLL_UP_DEVICES = statement<Batch>(
  "metrics.rollUpDevices",
  `with batch as (select tenant_id, device_id from device_presence where device_id > $5 order by device_id limit $6),
   kept as (
     insert into device_metrics (tenant_id, device_id, step_seconds, at, samples, ${COLUMNS})
     select m.tenant_id, m.device_id, $1::int, $2::timestamptz, sum(samples)::int, ${ADDED_UP} from batch s
       join device_metrics m on m.tenant_id = s.tenant_id and m.device_id = s.device_id and m.step_seconds = $4 and m.at >= $2 and m.at < $3
      group by m.tenant_id, m.device_id on conflict do nothing)
   select count(*)::int as found, max(device_id) as last from batch`,
);

export interface Span {
  readonly step: number;
  readonly from: Date;
  readonly until: Date;
  /** The step whose rows are added up. */
  readonly source: number;
}

/** Adds up the finer rows of the next devices. */
export const rollUpDevices = async (
  tx: SqlTx,
  { step, from, until, source }: Span,
  batch: { readonly after: string; readonly limit: number },
): Promise<Batch> => (await tx.query(ROLL_UP_DEVICES, [step, from, until, source, batch.after, batch.limit]))[0] ?? { found: 0, last: null };

const replaceFigures = ["samples", "devices", ...COLUMNS.split(", ")].map((column) => `${column} = excluded.${column}`).join(", ");

const SUM_TENANTS = statement(
  "metrics.sumTenants",
  `insert into tenant_metrics (tenant_id, step_seconds, at, samples, devices, ${COLUMNS})
   select tenant_id, 60, $1::timestamptz, sum(samples)::int, count(*)::int, ${ADDED_UP} from device_metrics where step_seconds = 60 and at = $1
    group by tenant_id order by tenant_id on conflict (tenant_id, step_seconds, at) do update set ${replaceFigures}`,
);

/** After the last device of a minute. */
export const sumTenants = (tx: SqlTx, at: Date): Promise<unknown> => tx.query(SUM_TENANTS, [at]);

const ROLL_UP_TENANTS = statement(
  "metrics.rollUpTenants",
  `insert into tenant_metrics (tenant_id, step_seconds, at, samples, devices, events, ${COLUMNS})
   select tenant_id, $1::int, $2::timestamptz, sum(samples)::int, max(devices), sum(events)::int, ${ADDED_UP} from tenant_metrics
    where step_seconds = $4 and at >= $2 and at < $3 group by tenant_id order by tenant_id
   on conflict (tenant_id, step_seconds, at) do update set ${replaceFigures}, events = excluded.events`,
);

export const rollUpTenants = (tx: SqlTx, { step, from, until, source }: Span): Promise<unknown> => tx.query(ROLL_UP_TENANTS, [step, from, until, source]);

const COUNT_EVENTS = statement(
  "metrics.countEvents",
  `insert into tenant_metrics (tenant_id, step_seconds, at, events)
   select tenant_id, 60, date_trunc('minute', now()), count(*)::int from unnest($1::text[]) as t(tenant_id) group by tenant_id order by tenant_id
   on conflict (tenant_id, step_seconds, at) do update set events = tenant_metrics.events + excluded.events`,
);

/** One statement for all events of a round of the relay. */
export const countEvents = (tx: SqlTx, events: readonly DispatchedEvent[]): Promise<unknown> =>
  tx.query(COUNT_EVENTS, [events.map(({ tenantId }) => tenantId)]);

const forget = (table: string): string => deleteByTime({ table, time: "at", of: "step_seconds = $3", before: "now() - make_interval(secs => $4)" });
const FORGET = {
  devices: statement<ExpiryStep>("metrics.forgetDevices", forget("device_metrics")),
  tenants: statement<ExpiryStep>("metrics.forgetTenants", forget("tenant_metrics")),
};

export interface OldMetrics {
  readonly of: keyof typeof FORGET;
  readonly step: number;
  readonly keepSeconds: number;
}
export const forgetMetrics = (tx: SqlTx, { of, step, keepSeconds }: OldMetrics, batch: ExpiryBatch): Promise<ExpiryStep> =>
  runExpiry(tx, FORGET[of], batch, [step, keepSeconds]);

/** Rows of one step, from and until a time. */
export interface Source {
  readonly step: number;
  readonly from: Date;
  readonly until: Date;
}

export interface MetricRow {
  readonly bucket: number;
  readonly samples: number;
  readonly cpu_avg: number | null;
  readonly cpu_max: number | null;
  readonly memory_avg: number | null;
  readonly memory_max: number | null;
  readonly disk_avg: number | null;
  readonly disk_max: number | null;
}
export interface TenantMetricRow extends MetricRow {
  readonly devices: number;
  readonly events: number;
}

const SHOWN = FIGURES.map((name) => `(${average(name)})::float8 as ${name}_avg, max(${name}_max)::float8 as ${name}_max`).join(", ");
const read = (table: string, more: string, condition: string): string =>
  `select floor(extract(epoch from m.at - $1::timestamptz) / $2::float8)::int as bucket, sum(samples)::int as samples, ${more}${SHOWN}
   from unnest($3::int[], $4::timestamptz[], $5::timestamptz[]) as s(step, since, until)
     join ${table} m on m.tenant_id = $6 and ${condition} m.step_seconds = s.step and m.at >= s.since and m.at < s.until
   group by 1`;
const READ_TENANT = statement<TenantMetricRow>("metrics.readTenant", read("tenant_metrics", "max(devices)::int as devices, sum(events)::int as events, ", ""));
const READ_SELECTED = statement<TenantMetricRow>(
  "metrics.readSelected",
  read("device_metrics", "count(distinct m.device_id)::int as devices, 0 as events, ", "m.device_id = any($7::text[]) and"),
);
const READ_DEVICE = statement<MetricRow>("metrics.readDevice", read("device_metrics", "", "m.device_id = $7 and"));

export interface MetricReading {
  readonly from: Date;
  readonly bucketSeconds: number;
  readonly sources: readonly Source[];
}
const valuesOf = ({ from, bucketSeconds, sources }: MetricReading, tenantId: string): readonly unknown[] => [
  from,
  bucketSeconds,
  sources.map(({ step }) => step),
  sources.map((source) => source.from),
  sources.map(({ until }) => until),
  tenantId,
];

export const readTenantMetrics = (db: SqlTx, { tenantId }: SystemScope, reading: MetricReading): Promise<readonly TenantMetricRow[]> =>
  db.query(READ_TENANT, valuesOf(reading, tenantId));
/** What these devices alone reported; nobody counts their events. */
export const readMetricsOf = (
  db: SqlTx,
  { tenantId }: SystemScope,
  deviceIds: readonly string[],
  reading: MetricReading,
): Promise<readonly TenantMetricRow[]> => db.query(READ_SELECTED, [...valuesOf(reading, tenantId), deviceIds]);
export const readDeviceMetrics = (db: SqlTx, { tenantId }: SystemScope, deviceId: string, reading: MetricReading): Promise<readonly MetricRow[]> =>
  db.query(READ_DEVICE, [...valuesOf(reading, tenantId), deviceId]);
