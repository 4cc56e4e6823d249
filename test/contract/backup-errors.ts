// Provokes the error codes of backups, destinations, policies and volumes.
import type { ErrorCode } from "../../protocol/index.ts";
import { newId } from "../../server/core/ids.ts";
import { asBearer, type Caller, type CallOptions, type World } from "../kit/gateway/world.ts";
import { newApp } from "./samples/apps.ts";
import { BACKUP_SAMPLES, newBackup, newVolume } from "./samples/backups.ts";
import type { Probe, Send } from "./scenario.ts";
import type { Stock } from "./stock.ts";

interface At {
  readonly world: World;
  readonly stock: Stock;
}
type BackupScenario = (at: At, probe: Probe) => Promise<void>;

const as =
  (world: World, caller: Caller, [method, path]: readonly [string, string], options: CallOptions = {}): Send =>
  (prefix, headers) =>
    world.call(caller, method, `${prefix}${path}`, { ...options, headers: { ...options.headers, ...headers } });
const own = ({ world, stock }: At, method: string, path: string, body?: object): Send =>
  as(world, stock.owner, [method, path], body === undefined ? {} : { body });
const run = ({ world }: At, sql: string, values: readonly unknown[]) => world.sql.query(sql, [...values]);
const policy = (more: object) => ({ name: "p", schedule: "0 2 * * *", target: {}, retention: { keepLast: 1 }, allowEmpty: true, ...more });
const backUp = async (at: At) => {
  const { appId, deviceId } = await newApp(at.stock);
  return { appId, deviceId, send: own(at, "POST", `/devices/${deviceId}/backups`, { appId }) };
};

export const BACKUP_ERRORS = {
  BACKUP_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/backups/bak_unknown")),
  RESTORE_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/restores/rst_unknown")),
  BACKUP_DESTINATION_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/backup-destinations/bkd_unknown")),
  BACKUP_POLICY_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/backup-policies/bpl_unknown")),
  VOLUME_NOT_FOUND: (at, probe) => probe(own(at, "GET", `/devices/${at.stock.device.deviceId}/volumes/unknown`)),
  BACKUP_IN_PROGRESS: async (at, probe) => {
    const { send } = await backUp(at);
    await send("/v1", {});
    await probe(send);
  },
  BACKUP_RETAINED: async (at, probe) => {
    const { backupId } = await newBackup(at.stock);
    await run(at, "update backups set retain_until = now() + interval '1 day' where backup_id = $1", [backupId]);
    await probe(own(at, "DELETE", `/backups/${backupId}`));
  },
  BACKUP_NOT_RESTORABLE: async (at, probe) => {
    const { backupId } = await newBackup(at.stock, { status: "failed" });
    await probe(own(at, "POST", `/backups/${backupId}/restore`, {}));
  },
  BACKUP_ENGINE_MISSING: async (at, probe) => {
    const { deviceId, send } = await backUp(at);
    await run(at, `update devices set inventory = '{"resticVersion":null}' where device_id = $1`, [deviceId]);
    await probe(send);
  },
  BACKUP_DESTINATION_IN_USE: async (at, probe) => {
    const { backupId } = await newBackup(at.stock);
    const { rows } = await run(at, "select destination_id from backups where backup_id = $1", [backupId]);
    await probe(own(at, "DELETE", `/backup-destinations/${rows[0]?.destination_id}`));
  },
  BACKUP_LIMIT_REACHED: async ({ world }, probe) => {
    const tenant = await world.tenant();
    const owner = await tenant.user("owner");
    await world.sql.query(
      `insert into backup_destinations (destination_id, tenant_id, name, kind, settings, created_by)
       select 'bkd_' || $2 || n, $1, 'd', 'local', '{}', 'u' from generate_series(1, 500) as n`,
      [tenant.tenantId, newId("n")],
    );
    await probe(as(world, owner, ["POST", "/backup-destinations"], { body: { name: "one more", kind: "local" } }));
  },
  BACKUP_DESTINATION_INVALID: (at, probe) => probe(own(at, "POST", "/backup-destinations", { name: "s3", kind: "s3" })),
  BACKUP_DESTINATION_UNREACHABLE: (at, probe) => probe(own(at, "POST", "/backup-destinations", { name: "here", kind: "gateway" })),
  RESTORE_TARGET_EXISTS: async (at, probe) => {
    const { backupId, appId } = await newBackup(at.stock);
    await run(at, "update apps set reported = '{}' where app_id = $1", [appId]);
    await probe(own(at, "POST", `/backups/${backupId}/restore`, {}));
  },
  RESTORE_INCOMPATIBLE: async (at, probe) => {
    const { backupId } = await newBackup(at.stock);
    await probe(own(at, "POST", `/backups/${backupId}/restore`, { targetDeviceId: at.stock.device.deviceId }));
  },
  CHECKSUM_MISMATCH: async (at, probe) => {
    const { deviceId, as: agent } = at.stock.device;
    const { backupId } = await newBackup(at.stock, { deviceId, trigger: "agent" });
    await probe(as(at.world, agent, ["PATCH", `/backups/${backupId}`], { body: { checksum: "b".repeat(64) } }));
  },
  CRON_INVALID: (at, probe) => probe(own(at, "POST", "/backup-policies", policy({ schedule: "0 0 30 2 *" }))),
  CRON_TOO_FREQUENT: async ({ world }, probe) => {
    // The API creates tenants with the limits of their plan, bootstrap without limits.
    const userId = newId("usr");
    const owner = asBearer((await world.app.mint({ userId, ttlSeconds: 600 })).token);
    const made = await world.call(owner, "POST", "/v1/tenants", { body: { name: "Often", slug: "often-backed-up", userId } });
    const headers = { "x-svc-tenant-id": made.body.data.tenantId };
    await probe(as(world, owner, ["POST", "/backup-policies"], { body: policy({ schedule: "@hourly" }), headers }));
  },
  RETENTION_INVALID: (at, probe) => probe(own(at, "POST", "/backup-policies", policy({ retention: { keepLast: 0 } }))),
  TARGET_EMPTY: (at, probe) => probe(own(at, "POST", "/backup-policies", policy({ allowEmpty: false, target: { tags: ["nobody:has:this"] } }))),
  VOLUME_IN_USE: async (at, probe) => {
    const { deviceId, name } = await newVolume(at.stock);
    await run(at, "update volumes set app_id = 'app_00000000000000000000' where name = $1", [name]);
    await probe(own(at, "DELETE", `/devices/${deviceId}/volumes/${name}?confirm=${name}`));
  },
  VOLUME_NOT_CONFIRMED: async (at, probe) => {
    const { deviceId, name } = await newVolume(at.stock);
    await probe(own(at, "DELETE", `/devices/${deviceId}/volumes/${name}?confirm=other`));
  },
  VOLUME_SCAN_RUNNING: async (at, probe) => {
    const { deviceId } = await BACKUP_SAMPLES["volumes.refresh"](at.stock);
    const send = own(at, "POST", `/devices/${deviceId}/volumes/refresh`);
    await send("/v1", {});
    await probe(send);
  },
} as const satisfies Partial<Record<ErrorCode, BackupScenario>>;
