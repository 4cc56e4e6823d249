// The devices that are offline, those that went last first.
import { limitsValue, withinLimits } from "../../../core/access.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

export interface OfflineDevice {
  readonly device_id: string;
  readonly name: string;
  readonly tags: readonly string[];
  readonly reason: string | null;
  readonly last_seen_at: Date | null;
  /** How many are offline in all. */
  readonly total: number;
}

// Without those in maintenance: somebody knows why.
const LIST_OFFLINE = statement<OfflineDevice>(
  "devices.listOffline",
  `select d.device_id, coalesce(d.name, d.hostname, d.device_id) as name, d.tags, d.offline_reason as reason, p.last_seen_at, (count(*) over ())::int as total
     from devices d join device_presence p on p.device_id = d.device_id
    where d.tenant_id = $1 and d.deleted_at is null and d.status = 'offline' and ${withinLimits("d", "$2")}
      and not coalesce((d.maintenance ->> 'enabled')::boolean and coalesce((d.maintenance ->> 'until')::timestamptz > $3, true), false)
    order by p.last_seen_at desc nulls last, d.device_id limit $4`,
);
export const listOffline = (sql: SqlTx, scope: SystemScope, now: Date, limit: number): Promise<readonly OfflineDevice[]> =>
  sql.query(LIST_OFFLINE, [scope.tenantId, limitsValue(scope), now, limit]);
