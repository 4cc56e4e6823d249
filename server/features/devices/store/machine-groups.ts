// The devices that a caller sees, grouped by what decides which applications they can run.
import { APP_KINDS, ARCHITECTURE_OF } from "../../../../protocol/index.ts";
import { limitsValue, withinLimits } from "../../../core/access.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { MachineGroup, MachineSteps } from "../../../core/ports/machine-groups.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

interface GroupRow {
  readonly arch: string | null;
  readonly process: boolean | null;
  readonly compose: boolean | null;
  readonly memory: number | null;
  readonly disk: number | null;
  readonly devices: number;
  readonly device_id: string;
  readonly name: string | null;
}
// Only known words are told apart, so that there are few groups whatever machines report.
const GROUP = statement<GroupRow>(
  "devices.groupMachines",
  `select case when d.arch is null or d.arch = any($3::text[]) then d.arch else 'other' end as arch, d.runtimes ? 'process' as process, d.runtimes ? 'compose' as compose,
     width_bucket((d.hardware ->> 'memoryBytes')::float8, $4::float8[]) as memory, width_bucket((d.hardware ->> 'diskBytes')::float8, $5::float8[]) as disk,
     count(*)::int as devices, min(d.device_id) as device_id, min(coalesce(d.name, d.hostname)) as name
   from devices d where d.tenant_id = $1 and d.deleted_at is null and ${withinLimits("d", "$2")} group by 1, 2, 3, 4, 5`,
);

/** One read, however many devices and applications there are. */
export const groupMachines = async (sql: SqlTx, scope: SystemScope, { memory, disk }: MachineSteps): Promise<readonly MachineGroup[]> => {
  const reached = (steps: readonly number[], count: number | null): number | null => (count === null ? null : (steps[count - 1] ?? 0));
  const rows = await sql.query(GROUP, [scope.tenantId, limitsValue(scope), [...ARCHITECTURE_OF.keys()], memory, disk]);
  return rows.map((row) => ({
    arch: row.arch,
    runtimes: row.process === null ? null : APP_KINDS.filter((kind) => row[kind]),
    hardware: { memoryBytes: reached(memory, row.memory), diskBytes: reached(disk, row.disk) },
    devices: row.devices,
    first: { deviceId: row.device_id, name: row.name },
  }));
};
