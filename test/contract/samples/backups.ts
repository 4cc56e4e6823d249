// Backups, destinations, policies and volumes for samples, as people and agents would have left them.
import { newId } from "../../../server/core/ids.ts";
import type { Stock } from "../stock.ts";
import { CONTENT, newApp } from "./apps.ts";

const nothing = async () => ({});
const CHECKSUM = `sha256:${"a".repeat(64)}`;
const KEPT = JSON.stringify({ appName: "sample", template: "key-value", templateVersion: "1.0.0", revision: 1, configuration: JSON.parse(CONTENT[0] ?? "{}") });

/** Nothing is there and nothing is the default. */
export const newDestination = async ({ world, tenant }: Stock): Promise<string> => {
  const destinationId = newId("bkd");
  await world.sql.query(
    `insert into backup_destinations (destination_id, tenant_id, name, kind, settings, created_by)
     values ($1, $2, 'sample', 'local', '{"path":null,"endpoint":null,"bucket":null,"prefix":null,"region":null,"url":null}', 'user:u')`,
    [destinationId, tenant.tenantId],
  );
  return destinationId;
};

interface Made {
  readonly status?: string;
  readonly trigger?: string;
  readonly deviceId?: string;
}
/** Of an app that no agent has reported, so nothing is there that a restore could replace. */
export const newBackup = async (
  stock: Stock,
  { status = "completed", trigger = "manual", deviceId = "" }: Made = {},
): Promise<{ backupId: string; appId: string; deviceId: string }> => {
  const app = await newApp(stock, { deviceId });
  const [backupId, destinationId] = [newId("bak"), trigger === "agent" ? null : await newDestination(stock)];
  const isDone = status === "completed";
  await stock.world.sql.query(
    `insert into backups (backup_id, tenant_id, device_id, app_id, destination_id, name, type, trigger, status, checksum, size, content, spec, verification, command_id,
       completed_at, created_by)
     values ($1, $2, $3, $4, $5, 'sample', 'full', $6, $7, $8, $9, $10, $11, '{"status":"unverified","mode":null,"verifiedAt":null,"failure":null}', $12,
       case when $7 = 'completed' then now() end, 'user:u')`,
    [
      backupId,
      stock.tenant.tenantId,
      app.deviceId,
      app.appId,
      destinationId,
      trigger,
      status,
      isDone ? CHECKSUM : null,
      isDone ? 5 : null,
      KEPT,
      CONTENT[1],
      newId("cmd"),
    ],
  );
  return { backupId, ...app };
};
const aBackup =
  (more: Record<string, unknown> = {}, made: Made = {}) =>
  async (stock: Stock) => ({ backupId: (await newBackup(stock, made)).backupId, ...more });

const newRestore = async (stock: Stock): Promise<{ restoreId: string }> => {
  const { backupId, appId, deviceId } = await newBackup(stock);
  const restoreId = newId("rst");
  await stock.world.sql.query(
    `insert into restores (restore_id, tenant_id, device_id, backup_id, target_app_id, restore_type, overwrite_existing, dry_run, command_id, created_by)
     values ($1, $2, $3, $4, $5, 'full', false, false, $6, 'user:u')`,
    [restoreId, stock.tenant.tenantId, deviceId, backupId, appId, newId("cmd")],
  );
  return { restoreId };
};

const POLICY = { name: "sample", schedule: "0 2 * * *", target: {}, retention: { keepLast: 3 }, allowEmpty: true };
const newPolicy = async (stock: Stock, appIds: readonly string[] = []): Promise<{ policyId: string }> => {
  const policyId = newId("bpl");
  await stock.world.sql.query(
    `insert into backup_policies (policy_id, tenant_id, name, schedule, timezone, jitter_seconds, missed_run, target, type, retention, consistency, timeout_seconds, next_run_at, created_by)
     values ($1, $2, 'sample', '0 2 * * *', 'UTC', 0, 'skip', $3, 'full', '{"keepLast":3,"keepHourly":null,"keepDaily":null,"keepWeekly":null,"keepMonthly":null,"keepYearly":null,"keepWithin":null,"maxAgeDays":null,"maxTotalGB":null}',
       'template', 3600, now() + interval '1 day', 'user:u')`,
    [policyId, stock.tenant.tenantId, JSON.stringify({ appIds, deviceIds: [], fleetIds: [], tags: [] })],
  );
  return { policyId };
};
const aPolicy =
  (more: Record<string, unknown> = {}) =>
  async (stock: Stock) => ({ ...(await newPolicy(stock)), ...more });

export const newVolume = async (stock: Stock): Promise<{ deviceId: string; name: string }> => {
  const { deviceId } = await newApp(stock);
  const name = newId("volume");
  await stock.world.sql.query(
    "insert into volumes (tenant_id, device_id, name, driver, mountpoint, size_state) values ($1, $2, $3, 'local', '/var/lib/sample', 'unknown')",
    [stock.tenant.tenantId, deviceId, name],
  );
  return { deviceId, name };
};

/** What the stock's agent was ordered to do, and has not done. */
const ordered = async (stock: Stock): Promise<{ backupId: string; commandId: string }> => {
  const { deviceId } = stock.device;
  const { appId } = await newApp(stock, { deviceId });
  const made = await stock.world.call(stock.owner, "POST", `/v1/devices/${deviceId}/backups`, { body: { appId } });
  if (made.status !== 201) throw new Error(`setup failed with ${made.status}: ${JSON.stringify(made.body)}`);
  return made.body.data;
};
const tested = async (stock: Stock): Promise<{ destinationId: string; commandId: string }> => {
  const destinationId = await newDestination(stock);
  const made = await stock.world.call(stock.owner, "POST", `/v1/backup-destinations/${destinationId}/test`, { body: { deviceId: stock.device.deviceId } });
  if (made.status !== 200) throw new Error(`setup failed with ${made.status}: ${JSON.stringify(made.body)}`);
  return made.body.data;
};
const aDestination =
  (more: Record<string, unknown> = {}) =>
  async (stock: Stock) => ({ destinationId: await newDestination(stock), ...more });

const onlineBackup = async (stock: Stock): Promise<{ backupId: string }> => {
  const { backupId, deviceId } = await newBackup(stock);
  await stock.world.sql.query("update devices set status = 'online' where device_id = $1", [deviceId]);
  return { backupId };
};

export const BACKUP_SAMPLES = {
  "backups.list": nothing,
  "backups.listOfDevice": async ({ device }: Stock) => ({ deviceId: device.deviceId }),
  "backups.listOfTenant": async ({ tenant }: Stock) => ({ tenantId: tenant.tenantId }),
  "backups.get": aBackup(),
  "backups.wait": aBackup({ status: ["completed"], timeout: 0 }),
  "backups.create": async (stock: Stock) => newApp(stock),
  "backups.report": async (stock: Stock) => ({
    ...(await newApp(stock, { deviceId: stock.device.deviceId })),
    backupId: newId("bak"),
    status: "completed",
    size: 5,
    checksum: CHECKSUM,
  }),
  "backups.change": aBackup({ name: "renamed" }),
  "backups.reportChange": async (stock: Stock) => ({
    backupId: (await newBackup(stock, { deviceId: stock.device.deviceId, trigger: "agent", status: "in_progress" })).backupId,
    status: "completed",
    size: 6,
  }),
  "backups.remove": aBackup({}, { status: "failed" }),
  "backups.cancel": aBackup({}, { status: "in_progress" }),
  "backups.verify": aBackup(),
  "backups.download": onlineBackup,
  "backups.restore": aBackup(),
  "backups.listRestores": nothing,
  "backups.getRestore": newRestore,
  "backups.waitRestore": async (stock: Stock) => ({ ...(await newRestore(stock)), status: ["pending"], timeout: 0 }),
  "backups.cancelRestore": newRestore,
  "backups.access": async (stock: Stock) => {
    const { backupId, commandId } = await ordered(stock);
    return { backupId, commandId };
  },
  "backupDestinations.list": nothing,
  "backupDestinations.get": aDestination(),
  "backupDestinations.create": async () => ({ name: "sample", kind: "local" }),
  "backupDestinations.change": aDestination({ name: "renamed" }),
  "backupDestinations.remove": aDestination(),
  "backupDestinations.test": async (stock: Stock) => ({ destinationId: await newDestination(stock), deviceId: stock.device.deviceId }),
  "backupDestinations.recovery": async (stock: Stock) => ({ destinationId: (await tested(stock)).destinationId, deviceId: stock.device.deviceId }),
  "backupDestinations.access": async (stock: Stock) => {
    const { destinationId, commandId } = await tested(stock);
    return { destinationId, commandId };
  },
  "backupPolicies.list": nothing,
  "backupPolicies.get": aPolicy(),
  "backupPolicies.create": async () => POLICY,
  "backupPolicies.change": aPolicy({ name: "renamed" }),
  "backupPolicies.remove": aPolicy(),
  "backupPolicies.run": async (stock: Stock) => newPolicy(stock, [(await newApp(stock)).appId]),
  "backupPolicies.pause": aPolicy(),
  "backupPolicies.resume": aPolicy(),
  "backupPolicies.listRuns": aPolicy(),
  "backupPolicies.preview": async () => ({ schedule: "0 2 * * *", target: {}, retention: { keepLast: 3 } }),
  "volumes.listOfDevice": async ({ device }: Stock) => ({ deviceId: device.deviceId }),
  "volumes.refresh": async (stock: Stock) => {
    const { deviceId } = await newApp(stock);
    await stock.world.sql.query("update devices set status = 'online' where device_id = $1", [deviceId]);
    return { deviceId };
  },
  "volumes.report": async ({ device }: Stock) => ({
    deviceId: device.deviceId,
    volumes: [{ name: "data", mountpoint: "/var/lib/sample", size: 5, sizeState: "exact" }],
  }),
  "volumes.list": nothing,
  "volumes.get": newVolume,
  "volumes.remove": async (stock: Stock) => {
    const volume = await newVolume(stock);
    return { ...volume, confirm: volume.name };
  },
};
