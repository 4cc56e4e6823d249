// Where applications are installed: the first apps of each, and how many there are.
import type { AppId, AppStatus, DeviceId } from "../../../../protocol/index.ts";
import { limitsValue, withinLimits } from "../../../core/access.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

export interface InstalledRow {
  readonly app_type: string;
  readonly app_id: AppId;
  readonly name: string;
  readonly status: AppStatus;
  readonly template_version: string;
  readonly device_id: DeviceId;
  readonly device_name: string | null;
  /** All apps of the application. */
  readonly count: number;
}

const FIND_INSTALLED = statement<InstalledRow>(
  "apps.findInstalled",
  `select f.app_type, f.app_id, f.name, f.status, f.template_version, f.device_id, f.device_name, f.count from (
     select a.app_type, a.app_id, a.name, a.status, a.template_version, a.device_id, coalesce(d.name, d.hostname) as device_name,
       (count(*) over (partition by a.app_type))::int as count, row_number() over (partition by a.app_type order by a.app_id) as place
     from apps a join devices d on d.tenant_id = a.tenant_id and d.device_id = a.device_id
     where a.tenant_id = $1 and a.removed_at is null and a.app_type = any($3::text[]) and ${withinLimits("d", "$2")}) f
   where f.place <= $4 order by f.app_type, f.place`,
);

/** One read for a page of applications. */
export const findInstalled = (sql: SqlTx, scope: SystemScope, templateIds: readonly string[], most: number): Promise<readonly InstalledRow[]> =>
  sql.query(FIND_INSTALLED, [scope.tenantId, limitsValue(scope), templateIds, most]);
