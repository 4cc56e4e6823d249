// What the rules see of backups: the values of the metrics `backup.*`, about an app each, or about a device whose repository was not pruned.
import { goodBackup } from "../../../core/rows/good-backup.ts";

const GOOD = goodBackup("b");

/** The `value` of `q` for each of its apps, and 0 for one that was looked at before and is none of them any longer. */
const ofApps = (inScope: string, notMaintained: string): string =>
  `select r.*, a.app_id as target_id, false as is_device, a.name, d.tags, coalesce(q.value, 0)::float8 as value
     from r join (select rule_id, app_id from q union select s.rule_id, s.target_id from alert_states s join r using (rule_id)) k on k.rule_id = r.rule_id
       join apps a on a.tenant_id = r.tenant_id and a.app_id = k.app_id and a.removed_at is null
       join devices d on d.tenant_id = a.tenant_id and d.device_id = a.device_id and d.deleted_at is null and ${notMaintained} and ${inScope}
       left join q on q.rule_id = k.rule_id and q.app_id = k.app_id`;

const withGood = (q: string): string =>
  `,
     good as materialized (select b.tenant_id, b.app_id, max(b.completed_at) as at, max(b.created_at) as ordered_at from backups b
       where ${GOOD} and b.tenant_id in (select tenant_id from r) group by b.tenant_id, b.app_id),
     q as (${q})`;

// An app of which there is no good backup yet waits for it since its policy, or it, was made.
const AGES = `select r.rule_id, i.app_id, max(extract(epoch from now() - coalesce(good.at, greatest(p.created_at, a.created_at))) / 3600) as value
       from r join backup_policies p on p.tenant_id = r.tenant_id and p.enabled
       join lateral (select n.run_id from backup_runs n where n.tenant_id = p.tenant_id and n.policy_id = p.policy_id order by n.scheduled_for desc limit 1) n on true
       join backup_run_items i on i.tenant_id = r.tenant_id and i.run_id = n.run_id
       join apps a on a.tenant_id = r.tenant_id and a.app_id = i.app_id
       left join good on good.tenant_id = r.tenant_id and good.app_id = i.app_id group by r.rule_id, i.app_id`;
const FAILURES = `select r.rule_id, b.app_id, count(*) as value from r join backups b on b.tenant_id = r.tenant_id and b.status in ('failed', 'partially_failed')
       left join good on good.tenant_id = b.tenant_id and good.app_id = b.app_id
       where b.created_at > coalesce(good.ordered_at, '-infinity') group by r.rule_id, b.app_id`;
const DAMAGED = `select r.rule_id, b.app_id, count(*) as value from r join backups b on b.tenant_id = r.tenant_id and b.status in ('completed', 'partially_failed')
       and b.verification ->> 'status' = 'failed' group by r.rule_id, b.app_id`;

interface Values {
  readonly values: string;
  /** Common table expressions that the values need. */
  readonly more: string;
}
export const backupValues = (inScope: string, notMaintained: string) => {
  const values = ofApps(inScope, notMaintained);
  return {
    "backup.age_hours": { values, more: withGood(AGES) },
    "backup.failed": { values, more: withGood(FAILURES) },
    "backup.verification_failed": { values, more: `,\n     q as (${DAMAGED})` },
  } satisfies Readonly<Record<string, Values>>;
};

/** The repositories of a device whose last prune failed. */
export const UNPRUNED = `,
     q as (select p.device_id, count(*) as value from backup_repositories p
       where p.prune_failed_at > coalesce(p.last_pruned_at, '-infinity') and p.tenant_id in (select tenant_id from r) group by p.device_id)`;
