// When devices were last heard, for live views.
import type { DeviceId, DeviceStatus, TenantId } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { DeviceRef } from "../../../core/ports/delivery.ts";
import { notDeleted } from "../../../core/rows/not-deleted.ts";
import { statement } from "../../../core/statements.ts";

/** A report may name anything; a figure is a number of percent. */
const percent = (name: string): string =>
  `case when jsonb_typeof(p.metrics -> '${name}') = 'number' then case when (p.metrics ->> '${name}')::numeric between 0 and 100 then (p.metrics ->> '${name}')::float8 end end as ${name}`;

interface SeenRow {
  readonly tenant_id: TenantId;
  readonly device_id: DeviceId;
  readonly status: DeviceStatus;
  readonly connectivity: "realtime" | "polling" | "none";
  readonly last_seen_at: Date | null;
  readonly last_heartbeat_at: Date | null;
  readonly cpu: number | null;
  readonly memory: number | null;
  readonly disk: number | null;
}

const FIND_SEEN = statement<SeenRow>(
  "devices.findSeen",
  `select d.tenant_id, d.device_id, d.status, case when p.connectivity = 'realtime' and p.session_id is null then 'none' else p.connectivity end as connectivity,
     p.last_seen_at, p.last_heartbeat_at, ${["cpu", "memory", "disk"].map(percent).join(", ")}
     from unnest($1::text[], $2::text[]) as v(tenant_id, device_id) join devices d on d.tenant_id = v.tenant_id and d.device_id = v.device_id
     join device_presence p on p.device_id = d.device_id where ${notDeleted("d")}`,
);

export const findSeen = async (sql: SqlTx, devices: readonly DeviceRef[]) => {
  const rows = await sql.query(FIND_SEEN, [devices.map(({ tenantId }) => tenantId), devices.map(({ deviceId }) => deviceId)]);
  return rows.map(({ tenant_id: tenantId, device_id: deviceId, status, connectivity, last_seen_at, last_heartbeat_at, cpu, memory, disk }) => ({
    tenantId,
    seen: {
      deviceId,
      status,
      connectivity,
      lastSeen: last_seen_at?.toISOString() ?? null,
      lastHeartbeatAt: last_heartbeat_at?.toISOString() ?? null,
      metrics: { cpu, memory, disk },
    },
  }));
};
