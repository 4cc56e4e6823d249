// What devices reported in the past, for a rule that is tried. The history keeps a row per device and minute for two days and more.
import type { AlertScope, METRICS_WITH_HISTORY } from "../../../../protocol/index.ts";
import { limitsValue, withinLimits } from "../../../core/access.ts";
import type { SqlTx } from "../../../core/events.ts";
import { matchesAnyRule } from "../../../core/people/fleet-rules.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { type Statement, statement } from "../../../core/statements.ts";

type Metric = (typeof METRICS_WITH_HISTORY)[number];
type Reported = Exclude<Metric, "device.offline_seconds">;

export interface Sample {
  readonly device_id: string;
  readonly name: string | null;
  readonly at: Date;
  readonly value: number;
}
export interface Near {
  readonly device_id: string;
  readonly name: string | null;
}

const SCOPE = `s as (select $2::jsonb || jsonb_build_object('rules', coalesce((select jsonb_agg(f.selector) from fleets f
     where f.tenant_id = $1 and f.selector is not null and $2::jsonb -> 'fleetIds' ? f.fleet_id), '[]'::jsonb)) as scope),
   d as (select d.device_id, coalesce(d.name, d.hostname) as name from devices d cross join s where d.tenant_id = $1 and d.deleted_at is null and ${withinLimits("d", "$3")}
     and (s.scope is null or s.scope -> 'deviceIds' ? d.device_id or s.scope -> 'tags' ?| d.tags or s.scope -> 'fleetIds' ?| d.fleet_ids or ${matchesAnyRule("d", "s.scope -> 'rules'")}))`;
const MINUTES = "m.tenant_id = $1 and m.device_id = d.device_id and m.step_seconds = 60 and m.at > now() - make_interval(hours => $4::int)";

const nearOf = (column: string): string =>
  `with ${SCOPE} select d.device_id, d.name from d where exists (select from device_metrics m where ${MINUTES}
       and case $5::text when 'gt' then m.${column} > $6::float8 when 'gte' then m.${column} >= $6::float8 when 'lt' then m.${column} < $6::float8 when 'lte' then m.${column} <= $6::float8
         when 'eq' then m.${column} = $6::float8 else m.${column} <> $6::float8 end) order by d.device_id limit $7`;
const samplesOf = (column: string): string =>
  `select d.device_id, coalesce(d.name, d.hostname) as name, m.at, m.${column}::float8 as value from devices d join device_metrics m on ${MINUTES.replace("$4", "$3")}
      where d.tenant_id = $1 and d.device_id = any($2::text[]) and m.${column} is not null order by d.device_id, m.at`;
const NEAR: Readonly<Record<Reported, Statement<Near>>> = {
  "device.cpu": statement<Near>("alerts.previewCpuNear", nearOf("cpu_avg")),
  "device.memory": statement<Near>("alerts.previewMemoryNear", nearOf("memory_avg")),
  "device.disk": statement<Near>("alerts.previewDiskNear", nearOf("disk_avg")),
};
const SAMPLES: Readonly<Record<Reported, Statement<Sample>>> = {
  "device.cpu": statement<Sample>("alerts.previewCpu", samplesOf("cpu_avg")),
  "device.memory": statement<Sample>("alerts.previewMemory", samplesOf("memory_avg")),
  "device.disk": statement<Sample>("alerts.previewDisk", samplesOf("disk_avg")),
};

export interface Tried {
  readonly metric: Metric;
  readonly operator: string;
  readonly threshold: number;
  readonly scope: AlertScope | null;
  readonly hours: number;
}
const jsonOf = (scope: AlertScope | null): string | null => (scope === null ? null : JSON.stringify(scope));

/** The devices that were beyond the threshold at least once. */
export const findNear = (sql: SqlTx, scope: SystemScope, tried: Tried & { readonly metric: Reported }, limit: number): Promise<readonly Near[]> =>
  sql.query(NEAR[tried.metric], [scope.tenantId, jsonOf(tried.scope), limitsValue(scope), tried.hours, tried.operator, tried.threshold, limit]);

export const readSamples = (
  sql: SqlTx,
  scope: SystemScope,
  { metric, hours, deviceIds }: { readonly metric: Reported; readonly hours: number; readonly deviceIds: readonly string[] },
): Promise<readonly Sample[]> => sql.query(SAMPLES[metric], [scope.tenantId, deviceIds, hours]);

export interface Silence extends Near {
  readonly from: Date;
  /** Null: it is silent still. */
  readonly until: Date | null;
}
const FIND_SILENT = statement<Silence>(
  "alerts.previewSilent",
  `with ${SCOPE},
   g as (select d.device_id, d.name, m.at as "from", lead(m.at) over (partition by d.device_id order by m.at) as until from d join device_metrics m on ${MINUTES})
   select g.device_id, g.name, g."from", g.until from g where coalesce(g.until, now()) - g."from" > make_interval(secs => $5::float8 + 60) order by g."from" desc limit $6`,
);
/** Pauses in what devices reported that lasted for longer, newest first. */
export const findSilent = (sql: SqlTx, scope: SystemScope, tried: Tried & { readonly seconds: number }, limit: number): Promise<readonly Silence[]> =>
  sql.query(FIND_SILENT, [scope.tenantId, jsonOf(tried.scope), limitsValue(scope), tried.hours, tried.seconds, limit]);
