// What the rules see: one statement per metric finds, for all rules of all tenants at once, the targets where something may change, however many there are.
import type { AlertMetric } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import { matchesAnyRule } from "../../../core/people/fleet-rules.ts";
import { type Statement, statement } from "../../../core/statements.ts";
import { FLAP_CALM_SECONDS, type TargetPhase } from "../model.ts";
import { backupValues, UNPRUNED } from "./backup-values.ts";

const FIND_METRICS = statement<{ readonly metric: string }>("alerts.findMetrics", "select distinct r.metric from alert_rules r where r.enabled");
/** A metric that this release does not know is left alone. */
export const findMetrics = async (tx: SqlTx): Promise<readonly AlertMetric[]> =>
  (await tx.query(FIND_METRICS)).map(({ metric }) => metric as AlertMetric).filter((metric) => metric in OBSERVE); // as: just checked

interface StateRow {
  readonly phase: TargetPhase | null;
  readonly since: Date | null;
  readonly alert_id: string | null;
  readonly changes: number | null;
  readonly changes_since: Date | null;
  readonly flapping: boolean | null;
}
interface KeyRow {
  readonly tenant_id: string;
  readonly rule_id: string;
  readonly target_id: string;
  readonly at: Date;
}
export interface Observation extends StateRow, KeyRow {
  readonly is_device: boolean;
  readonly name: string | null;
  readonly tags: readonly string[];
  readonly value: number;
  readonly breached: boolean;
  readonly cleared: boolean;
  readonly rule_name: string;
  readonly type: string;
  readonly severity: string;
  readonly for_seconds: number;
  readonly clear_for_seconds: number;
  readonly cooldown_seconds: number;
}

const RULES = `select r.tenant_id, r.rule_id, r.name as rule_name, coalesce(r.event_type, r.metric) as type, r.operator, r.threshold, r.clear_threshold, r.for_seconds,
     r.clear_for_seconds, r.cooldown_seconds, r.window_seconds, r.severity, r.scope || jsonb_build_object('rules', coalesce((select jsonb_agg(f.selector) from fleets f
       where f.tenant_id = r.tenant_id and f.selector is not null and r.scope -> 'fleetIds' ? f.fleet_id), '[]'::jsonb)) as scope
   from alert_rules r`;
const IN_SCOPE = `(r.scope is null or r.scope -> 'deviceIds' ? d.device_id or r.scope -> 'tags' ?| d.tags or r.scope -> 'fleetIds' ?| d.fleet_ids
     or ${matchesAnyRule("d", "r.scope -> 'rules'")})`;
const MAINTAINED = `coalesce((d.maintenance ->> 'enabled')::boolean and coalesce((d.maintenance ->> 'until')::timestamptz > now(), true), false)`;
const DEVICES = `from r join devices d on d.tenant_id = r.tenant_id and d.deleted_at is null and not ${MAINTAINED} and ${IN_SCOPE}`;

/** What of `r` and its target comes with every value. */
const valuesFrom = (value: string, from: string): string =>
  `select r.*, d.device_id as target_id, true as is_device, coalesce(d.name, d.hostname) as name, d.tags, ${value} as value ${from}`;

const BREACHED = `case v.operator when 'gt' then v.value > v.threshold when 'gte' then v.value >= v.threshold when 'lt' then v.value < v.threshold
     when 'lte' then v.value <= v.threshold when 'eq' then v.value = v.threshold else v.value <> v.threshold end`;
const BACK = "case when v.operator like 'g%' then v.value <= v.clear_threshold when v.operator like 'l%' then v.value >= v.clear_threshold else true end";

const observing = (metric: AlertMetric, values: string, more = ""): string =>
  `with r as materialized (${RULES} join tenants t on t.tenant_id = r.tenant_id and t.status = 'active' where r.enabled and r.metric = '${metric}')${more},
     v as (${values}),
     o as (select v.*, ${BREACHED} as breached, not (${BREACHED}) and ${BACK} as cleared from v where v.value is not null)
     select o.tenant_id, o.rule_id, o.target_id, now() as at, o.is_device, o.name, o.tags, o.value, o.breached, o.cleared, o.rule_name, o.type, o.severity, o.for_seconds,
       o.clear_for_seconds, o.cooldown_seconds, s.phase, s.since, s.alert_id, s.changes, s.changes_since, s.flapping
     from o left join alert_states s on s.tenant_id = o.tenant_id and s.rule_id = o.rule_id and s.target_id = o.target_id
     where case coalesce(s.phase, 'calm') when 'calm' then o.breached
       when 'pending' then not o.breached or s.since <= now() - make_interval(secs => o.for_seconds)
       when 'firing' then o.cleared
       else not o.cleared or s.since <= now() - make_interval(secs => case when s.flapping then greatest(o.clear_for_seconds, ${FLAP_CALM_SECONDS}) else o.clear_for_seconds end) end
     limit $1`;

// The longest time between two heartbeats, and some.
const FRESH = "p.last_heartbeat_at > now() - interval '6 minutes'";
/** A report may name anything; a figure is a number of percent. */
const reported = (name: "cpu" | "memory" | "disk"): string =>
  observing(
    `device.${name}`,
    valuesFrom(
      `case when jsonb_typeof(p.metrics -> '${name}') = 'number' then case when (p.metrics ->> '${name}')::numeric between 0 and 100 then (p.metrics ->> '${name}')::float8 end end`,
      `${DEVICES} join device_presence p on p.device_id = d.device_id and ${FRESH}`,
    ),
  );

const OFFLINE = "case when d.status = 'online' then 0 when d.status = 'offline' then extract(epoch from now() - p.last_seen_at)::float8 end";
const FAILED = "status in ('failed', 'rejected', 'timed_out', 'expired', 'undeliverable')";
/** Fewer say nothing. */
const MIN_ENDED = 5;

const OF_BACKUPS = backupValues(IN_SCOPE, `not ${MAINTAINED}`);
const APP_METRICS = Object.keys(OF_BACKUPS)
  .map((metric) => `'${metric}'`)
  .join(", ");
const ofBackups = (metric: keyof typeof OF_BACKUPS): string => observing(metric, OF_BACKUPS[metric].values, OF_BACKUPS[metric].more);
const NOTICE_ID = "n.budget_id || ' ' || n.month || ' ' || n.percent || ' ' || n.basis";
// The last day of a month is added up on the first of the next.
const OF_THIS_MONTH = "n.reached_at >= date_trunc('month', now() at time zone 'utc') at time zone 'utc'";
const ENDED = "('completed', 'failed', 'aborted', 'rolled_back', 'draft')";
const rolloutsFrom = (value: string): string =>
  `select r.*, o.rollout_id as target_id, false as is_device, o.name, '{}'::text[] as tags, ${value} as value
     from r join rollouts o on o.tenant_id = r.tenant_id and o.status not in ${ENDED} where r.scope is null`;

const OBSERVE: Readonly<Record<AlertMetric, Statement<Observation>>> = {
  "device.offline_seconds": statement<Observation>(
    "alerts.observeOffline",
    observing("device.offline_seconds", valuesFrom(OFFLINE, `${DEVICES} join device_presence p on p.device_id = d.device_id`)),
  ),
  "device.cpu": statement<Observation>("alerts.observeCpu", reported("cpu")),
  "device.memory": statement<Observation>("alerts.observeMemory", reported("memory")),
  "device.disk": statement<Observation>("alerts.observeDisk", reported("disk")),
  "command.queue_depth": statement<Observation>(
    "alerts.observeQueueDepth",
    observing(
      "command.queue_depth",
      valuesFrom("coalesce(q.depth, 0)::float8", `${DEVICES} left join q on q.device_id = d.device_id`),
      ",\n     q as (select c.device_id, count(*) as depth from command_queue c where c.tenant_id in (select tenant_id from r) group by c.device_id)",
    ),
  ),
  "command.failure_rate": statement<Observation>(
    "alerts.observeFailureRate",
    observing(
      "command.failure_rate",
      valuesFrom(
        `case when q.ended >= ${MIN_ENDED} then q.failed * 100.0::float8 / q.ended else 0 end`,
        `${DEVICES} left join q on q.rule_id = r.rule_id and q.device_id = d.device_id`,
      ),
      `,
     recent as materialized (select c.tenant_id, c.device_id, c.status, c.finished_at from commands c
       where c.finished_at > now() - interval '1 hour' and c.status <> 'canceled' and c.tenant_id in (select tenant_id from r)),
     q as (select r.rule_id, recent.device_id, count(*) as ended, count(*) filter (where ${FAILED}) as failed from r
       join recent on recent.tenant_id = r.tenant_id and recent.finished_at > now() - make_interval(secs => r.window_seconds) group by r.rule_id, recent.device_id)`,
    ),
  ),
  "certificate.days_left": statement<Observation>(
    "alerts.observeCertificates",
    observing(
      "certificate.days_left",
      `select r.*, c.domain_id as target_id, false as is_device, c.hostname as name, '{}'::text[] as tags, (extract(epoch from c.cert_not_after - now()) / 86400)::float8 as value
     from r join custom_domains c on c.tenant_id = r.tenant_id and c.cert_not_after is not null where r.scope is null`,
    ),
  ),
  "backup.age_hours": statement<Observation>("alerts.observeBackupAges", ofBackups("backup.age_hours")),
  "backup.failed": statement<Observation>("alerts.observeFailedBackups", ofBackups("backup.failed")),
  "backup.verification_failed": statement<Observation>("alerts.observeDamagedBackups", ofBackups("backup.verification_failed")),
  "backup.prune_failed": statement<Observation>(
    "alerts.observeFailedPrunes",
    observing("backup.prune_failed", valuesFrom("coalesce(q.value, 0)::float8", `${DEVICES} left join q on q.device_id = d.device_id`), UNPRUNED),
  ),
  "rollout.stopped": statement<Observation>(
    "alerts.observeStoppedRollouts",
    observing(
      "rollout.stopped",
      rolloutsFrom("case when o.status = 'paused' and o.status_reason in ('THRESHOLD_EXCEEDED', 'PHASE_FAILED') then 1 else 0 end::float8"),
    ),
  ),
  "rollout.waiting_seconds": statement<Observation>(
    "alerts.observeWaitingRollouts",
    observing(
      "rollout.waiting_seconds",
      rolloutsFrom(
        `case when o.status <> 'paused' and o.waiting_for in ('freezing', 'device_elsewhere', 'quota', 'offline', 'approval', 'devices')
          then extract(epoch from now() - o.waiting_since) else 0 end::float8`,
      ),
    ),
  ),
  "tunnel.down": statement<Observation>(
    "alerts.observeTunnels",
    observing(
      "tunnel.down",
      `select r.*, t.tunnel_id as target_id, false as is_device, t.name, '{}'::text[] as tags, case when t.health = 'down' then 1 else 0 end::float8 as value
     from r join tunnels t on t.tenant_id = r.tenant_id and t.status <> 'stopped' where r.scope is null`,
    ),
  ),
  "cost.budget": statement<Observation>(
    "alerts.observeBudgets",
    observing(
      "cost.budget",
      `select r.*, ${NOTICE_ID} as target_id, false as is_device, b.name || ': ' || n.percent || ' % ' || case n.basis when 'actual' then 'spent' else 'expected' end || ' in ' || n.month as name,
       '{}'::text[] as tags, n.percent::float8 as value
     from r join cost_budget_notices n on n.tenant_id = r.tenant_id and ${OF_THIS_MONTH} join cost_budgets b on b.tenant_id = n.tenant_id and b.budget_id = n.budget_id where r.scope is null`,
    ),
  ),
  event: statement<Observation>(
    "alerts.observeEvents",
    observing(
      "event",
      `select r.*, k.target_id, d.device_id is not null as is_device, coalesce(d.name, d.hostname) as name, coalesce(d.tags, '{}') as tags,
       coalesce(q.times, 0)::float8 as value
     from r join (select rule_id, target_id from q union select s.rule_id, s.target_id from alert_states s join r using (rule_id)) k on k.rule_id = r.rule_id
       left join q on q.rule_id = k.rule_id and q.target_id = k.target_id
       left join devices d on d.tenant_id = r.tenant_id and d.device_id = k.target_id where r.scope is null or (d.device_id is not null and ${IN_SCOPE})`,
      `,
     q as (select r.rule_id, g.target_id, count(*) as times from r
       join alert_signals g on g.tenant_id = r.tenant_id and g.type = r.type and g.at > now() - make_interval(secs => r.window_seconds) group by r.rule_id, g.target_id)`,
    ),
  ),
};

/** At most `limit`; those that come next are found again after the states are written. */
export const observeMetric = (tx: SqlTx, metric: AlertMetric, limit: number): Promise<readonly Observation[]> => tx.query(OBSERVE[metric], [limit]);

export interface Orphan extends StateRow, KeyRow {
  readonly phase: TargetPhase;
}
const FIND_ORPHANS = statement<Orphan>(
  "alerts.findOrphans",
  `with r as materialized (${RULES} where r.enabled)
   select s.tenant_id, s.rule_id, s.target_id, now() as at, s.phase, s.since, s.alert_id, s.changes, s.changes_since, s.flapping from alert_states s
     left join r on r.tenant_id = s.tenant_id and r.rule_id = s.rule_id left join apps a on a.tenant_id = s.tenant_id and a.app_id = s.target_id and a.removed_at is null and r.type in (${APP_METRICS})
     left join devices d on d.tenant_id = s.tenant_id and d.device_id = coalesce(a.device_id, s.target_id)
    where s.phase <> 'calm' and (r.rule_id is null or (d.device_id is null and s.target_id like 'dev\\_%') or (d.device_id is not null and (d.deleted_at is not null or not ${IN_SCOPE}))
      or (r.type in (${APP_METRICS}) and a.app_id is null)
      or (r.type = 'certificate.days_left' and not exists (select from custom_domains c where c.tenant_id = s.tenant_id and c.domain_id = s.target_id and c.cert_not_after is not null))
      or (r.type in ('rollout.stopped', 'rollout.waiting_seconds') and not exists (select from rollouts o where o.tenant_id = s.tenant_id and o.rollout_id = s.target_id
        and o.status not in ${ENDED}))
      or (r.type = 'cost.budget' and not exists (select from cost_budget_notices n where n.tenant_id = s.tenant_id and ${NOTICE_ID} = s.target_id and ${OF_THIS_MONTH}))
      or (r.type = 'tunnel.down' and not exists (select from tunnels t where t.tenant_id = s.tenant_id and t.tunnel_id = s.target_id and t.status <> 'stopped')))
    limit $1`,
);
/** States of rules that are gone or off, of devices and apps that are gone or no longer in the rule's scope, of domains without a certificate, of rollouts that have ended, of tunnels that are stopped, and of the budgets of past months. */
export const findOrphans = (tx: SqlTx, limit: number): Promise<readonly Orphan[]> => tx.query(FIND_ORPHANS, [limit]);

export interface StateChange {
  readonly tenant_id: string;
  readonly rule_id: string;
  readonly target_id: string;
  /** Null: forget it. */
  readonly phase: TargetPhase | null;
  readonly since: Date;
  readonly alert_id: string | null;
  readonly changes: number;
  readonly changes_since: Date;
  readonly flapping: boolean;
}

const WRITE_STATES = statement(
  "alerts.writeStates",
  `with n as (select * from jsonb_to_recordset($1::jsonb) as n(tenant_id text, rule_id text, target_id text, phase text, since timestamptz, alert_id text, changes int,
       changes_since timestamptz, flapping boolean)),
   gone as (delete from alert_states s using n where n.phase is null and s.tenant_id = n.tenant_id and s.rule_id = n.rule_id and s.target_id = n.target_id)
   insert into alert_states (tenant_id, rule_id, target_id, phase, since, alert_id, changes, changes_since, flapping)
   select tenant_id, rule_id, target_id, phase, since, alert_id, changes, changes_since, flapping from n where n.phase is not null order by 1, 2, 3
   on conflict (tenant_id, rule_id, target_id) do update set phase = excluded.phase, since = excluded.since, alert_id = excluded.alert_id, changes = excluded.changes,
     changes_since = excluded.changes_since, flapping = excluded.flapping`,
);
export const writeStates = async (tx: SqlTx, changes: readonly StateChange[]): Promise<void> => {
  if (changes.length > 0) await tx.query(WRITE_STATES, [JSON.stringify(changes)]);
};

const FORGET_CALM = statement("alerts.forgetCalm", "delete from alert_states where phase = 'calm' and since < now() - interval '1 day'");
/** The longest cooldown is over by then. */
export const forgetCalm = (tx: SqlTx): Promise<unknown> => tx.query(FORGET_CALM);
