// Alerts as the evaluation opens, grows and ends them: statements over many alerts at once.
import type { SqlTx } from "../../../core/events.ts";
import { statement } from "../../../core/statements.ts";

/** Targets that fire so much later still belong to the alert. */
export const JOIN_SECONDS = 600;
/** From an alert's beginning to its notification, so that one tells of all who fire at about the same time. */
export const GROUP_SECONDS = 60;
/** Between two notifications of an alert that grows. */
const GROWTH_SECONDS = 300;

export interface AlertRow {
  readonly alert_id: string;
  readonly tenant_id: string;
  readonly rule_id: string;
  readonly rule_name: string;
  readonly type: string;
  readonly severity: string;
  readonly status: string;
  readonly occurrences: number;
  readonly target_id: string;
  readonly target_count: number;
}
const ALERT = ["alert_id", "tenant_id", "rule_id", "rule_name", "type", "severity", "status", "occurrences", "target_id", "target_count"]
  .map((column) => `a.${column}`)
  .join(", ");

export interface Candidate {
  readonly alert_id: string;
  readonly rule_id: string;
  readonly resolved_at: Date | null;
  /** Still takes in targets. */
  readonly is_young: boolean;
}
const FIND_CANDIDATES = statement<Candidate>(
  "alerts.findCandidates",
  `select a.alert_id, a.rule_id, a.resolved_at, a.status = 'open' and a.started_at > now() - interval '${JOIN_SECONDS} seconds' as is_young from alerts a
    where a.alert_id = any($1::text[]) or (a.tenant_id = any($2::text[]) and a.rule_id = any($3::text[]) and a.resolved_at is null and a.status = 'open')
    order by a.alert_id for no key update`,
);
/** The alerts that these targets were part of, and the open ones of these rules. Locked, so that nobody resolves one meanwhile. */
export const findCandidates = (
  tx: SqlTx,
  asked: { readonly alertIds: readonly string[]; readonly tenantIds: readonly string[]; readonly ruleIds: readonly string[] },
): Promise<readonly Candidate[]> => tx.query(FIND_CANDIDATES, [asked.alertIds, asked.tenantIds, asked.ruleIds]);

export interface NewAlert {
  readonly alert_id: string;
  readonly tenant_id: string;
  readonly rule_id: string;
  readonly rule_name: string;
  readonly type: string;
  readonly severity: string;
  readonly target_id: string;
  readonly value: number;
}
const INSERT_ALERTS = statement(
  "alerts.insert",
  `insert into alerts (alert_id, tenant_id, rule_id, rule_name, type, severity, target_id, value, notify_at, updated_at)
   select alert_id, tenant_id, rule_id, rule_name, type, severity, target_id, value, now() + interval '${GROUP_SECONDS} seconds', now()
     from jsonb_to_recordset($1::jsonb) as n(alert_id text, tenant_id text, rule_id text, rule_name text, type text, severity text, target_id text, value float8)`,
);
export const insertAlerts = async (tx: SqlTx, alerts: readonly NewAlert[]): Promise<void> => {
  if (alerts.length > 0) await tx.query(INSERT_ALERTS, [JSON.stringify(alerts)]);
};

const REOPEN = statement(
  "alerts.reopen",
  `update alerts a set status = 'open', resolved_at = null, resolved_by = null, acknowledged_at = null, acknowledged_by = null, occurrences = a.occurrences + 1,
     notified_at = null, notify_at = now() + make_interval(secs => n.cooldown_seconds), version = a.version + 1, updated_at = now()
   from jsonb_to_recordset($1::jsonb) as n(alert_id text, cooldown_seconds int) where a.alert_id = n.alert_id`,
);
/** Told only if it stays open as long as its cooldown: what comes and goes pages nobody again. */
export const reopenAlerts = async (tx: SqlTx, alerts: readonly { readonly alert_id: string; readonly cooldown_seconds: number }[]): Promise<void> => {
  if (alerts.length > 0) await tx.query(REOPEN, [JSON.stringify(alerts)]);
};

export interface AffectedTarget {
  readonly tenant_id: string;
  readonly alert_id: string;
  readonly target_id: string;
  readonly is_device: boolean;
  readonly name: string | null;
  readonly tags: readonly string[];
  readonly value: number;
}
const ADD_MEMBERS = statement(
  "alerts.addTargets",
  `insert into alert_targets (tenant_id, alert_id, target_id, device_id, name, tags, value)
   select tenant_id, alert_id, target_id, case when is_device then target_id end, name, array(select jsonb_array_elements_text(tags)), value
     from jsonb_to_recordset($1::jsonb) as n(tenant_id text, alert_id text, target_id text, is_device boolean, name text, tags jsonb, value float8) order by 1, 2, 3
   on conflict (tenant_id, alert_id, target_id) do update set active = true, cleared_at = null, value = excluded.value, name = excluded.name, tags = excluded.tags`,
);
export const addMembers = async (tx: SqlTx, members: readonly AffectedTarget[]): Promise<void> => {
  if (members.length > 0) await tx.query(ADD_MEMBERS, [JSON.stringify(members)]);
};

const CLEAR_MEMBERS = statement(
  "alerts.clearTargets",
  `update alert_targets t set active = false, silenced = false, cleared_at = now() from jsonb_to_recordset($1::jsonb) as n(tenant_id text, alert_id text, target_id text)
    where t.tenant_id = n.tenant_id and t.alert_id = n.alert_id and t.target_id = n.target_id and t.active`,
);
export const clearMembers = async (tx: SqlTx, members: readonly Pick<AffectedTarget, "tenant_id" | "alert_id" | "target_id">[]): Promise<void> => {
  if (members.length > 0) await tx.query(CLEAR_MEMBERS, [JSON.stringify(members)]);
};

const RECOUNT = statement<AlertRow>(
  "alerts.recount",
  `update alerts a set target_count = c.targets, active_count = c.active, last_seen_at = now(), updated_at = now(), flapping = a.flapping or a.alert_id = any($3::text[]),
     notify_at = case when a.alert_id = any($3::text[]) then null
       when a.alert_id = any($2::text[]) and a.status = 'open' and a.notify_at is null and a.notified_at is not null and c.targets > a.target_count
         then greatest(now(), a.notified_at + interval '${GROWTH_SECONDS} seconds')
       else a.notify_at end
   from (select t.alert_id, count(*) as targets, count(*) filter (where t.active) as active from alert_targets t join alerts g on g.tenant_id = t.tenant_id and g.alert_id = t.alert_id
     where g.alert_id = any($1::text[]) group by t.alert_id) c
   where a.alert_id = c.alert_id returning ${ALERT}`,
);
/** `grown` have new targets; `flapping` are told to nobody while they flap. */
export const recountAlerts = async (
  tx: SqlTx,
  { all, grown, flapping }: { readonly all: readonly string[]; readonly grown: readonly string[]; readonly flapping: readonly string[] },
): Promise<readonly AlertRow[]> => (all.length === 0 ? [] : tx.query(RECOUNT, [all, grown, flapping]));

const RESOLVE_IDLE = statement<AlertRow & { readonly was_told: boolean }>(
  "alerts.resolveIdle",
  `update alerts a set status = 'resolved', resolved_at = now(), resolved_by = 'auto', flapping = false, silenced = false, notify_at = null, version = a.version + 1, updated_at = now()
    where a.alert_id = any($1::text[]) and a.resolved_at is null and a.active_count = 0
      and not exists (select from alert_rules r where r.tenant_id = a.tenant_id and r.rule_id = a.rule_id and r.enabled and not r.auto_resolve)
   returning ${ALERT}, a.notified_at is not null as was_told`,
);
/** Ends those of the alerts that are true for no target any more. */
export const resolveIdle = async (tx: SqlTx, alertIds: readonly string[]): Promise<readonly (AlertRow & { readonly was_told: boolean })[]> =>
  alertIds.length === 0 ? [] : tx.query(RESOLVE_IDLE, [alertIds]);

const TOUCH = statement(
  "alerts.touch",
  "update alerts set last_seen_at = now() where resolved_at is null and active_count > 0 and last_seen_at < now() - interval '1 minute'",
);
export const touchActive = (tx: SqlTx): Promise<unknown> => tx.query(TOUCH);

export interface SilenceRow {
  readonly tenant_id: string;
  readonly matchers: unknown;
}
const ACTIVE_SILENCES = statement<SilenceRow>(
  "alerts.activeSilences",
  "select s.tenant_id, s.matchers from alert_silences s where s.starts_at <= now() and s.ends_at > now() and ($1::text is null or s.tenant_id = $1)",
);
export const activeSilences = (tx: SqlTx, tenantId: string | null): Promise<readonly SilenceRow[]> => tx.query(ACTIVE_SILENCES, [tenantId]);

export interface Silenceable {
  readonly tenant_id: string;
  readonly alert_id: string;
  readonly target_id: string;
  readonly silenced: boolean;
  readonly is_device: boolean;
  readonly name: string | null;
  readonly tags: readonly string[];
  readonly rule_id: string;
  readonly rule_name: string;
  readonly type: string;
  readonly severity: string;
}
const FIND_SILENCEABLE = statement<Silenceable>(
  "alerts.findSilenceable",
  `select t.tenant_id, t.alert_id, t.target_id, t.silenced, t.device_id is not null as is_device, t.name, t.tags, a.rule_id, a.rule_name, a.type, a.severity
     from alerts a join alert_targets t on t.tenant_id = a.tenant_id and t.alert_id = a.alert_id
    where a.resolved_at is null and t.active and (a.tenant_id = any($1::text[]) or (t.silenced and ($2::text is null or a.tenant_id = $2))) limit $3`,
);
/** The active targets of these tenants, and all that are silenced: a silence may be over. */
export const findSilenceable = (tx: SqlTx, tenantIds: readonly string[], only: string | null, limit: number): Promise<readonly Silenceable[]> =>
  tx.query(FIND_SILENCEABLE, [tenantIds, only, limit]);

const WRITE_SILENCED = statement<{ readonly alert_id: string }>(
  "alerts.writeSilenced",
  `with n as (select * from jsonb_to_recordset($1::jsonb) as n(tenant_id text, alert_id text, target_id text, silenced boolean))
   update alert_targets t set silenced = n.silenced from n where t.tenant_id = n.tenant_id and t.alert_id = n.alert_id and t.target_id = n.target_id returning t.alert_id`,
);
const RECOUNT_SILENCED = statement(
  "alerts.recountSilenced",
  `update alerts a set silenced = c.silenced from (select t.alert_id, bool_and(t.silenced) as silenced from alert_targets t join alerts g on g.tenant_id = t.tenant_id and g.alert_id = t.alert_id
     where g.resolved_at is null and g.alert_id = any($1::text[]) and t.active group by t.alert_id) c where a.alert_id = c.alert_id and a.silenced <> c.silenced`,
);
/** `also` have other targets than before. */
export const writeSilenced = async (
  tx: SqlTx,
  changed: readonly Pick<Silenceable, "tenant_id" | "alert_id" | "target_id" | "silenced">[],
  also: readonly string[],
): Promise<void> => {
  const rows = changed.length === 0 ? [] : await tx.query(WRITE_SILENCED, [JSON.stringify(changed)]);
  const touched = [...new Set([...rows.map(({ alert_id }) => alert_id), ...also])];
  if (touched.length > 0) await tx.query(RECOUNT_SILENCED, [touched]);
};
