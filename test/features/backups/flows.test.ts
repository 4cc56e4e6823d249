// What follows from backups and restores on the gateway, with agents that a test speaks for.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DEFAULTS } from "../../kit/gateway/app-template.ts";
import { type BackupsRig, CREATED, type OpenTenant, openBackups, RESTORED, SNAPSHOT } from "./kit.ts";

const S3 = {
  kind: "s3",
  settings: { endpoint: "https://s3.example", bucket: "backups" },
  credentials: { accessKeyId: "key", secretAccessKey: "secret" },
};

let rig: BackupsRig;
let own: OpenTenant;
beforeAll(async () => {
  rig = await openBackups();
  own = await rig.open();
});
afterAll(() => rig.close());

const orderOf = async (type: string) => {
  const found = (await own.poll()).find((each) => each.type === type);
  if (found === undefined) throw new Error(`nobody ordered ${type}`);
  return found;
};

describe("a restore over data that is there", () => {
  test("is refused unless it may replace the data, and then waits for a backup of what it replaces", async () => {
    const appId = await own.app();
    const backupId = await own.made(appId);
    expect(await own.refusal("POST", `/backups/${backupId}/restore`, {})).toEqual([409, "RESTORE_TARGET_EXISTS"]);
    const { restoreId, status, safetyBackupId } = await own.ask("POST", `/backups/${backupId}/restore`, { overwriteExisting: true });
    expect([status, safetyBackupId]).toEqual(["validating", expect.stringMatching(/^bak_/)]);
    expect(await own.ask("GET", `/backups/${safetyBackupId}`)).toMatchObject({ appId, trigger: "pre_restore", status: "pending" });
    const first = await own.poll();
    expect(first.map(({ type }) => type)).toEqual(["backup.create"]);
    await own.ack(first[0]?.id ?? first[0]?.commandId, { status: "succeeded", output: { ...CREATED, snapshotId: "8".repeat(64) } });
    const restore = await orderOf("backup.restore");
    expect(restore.payload).toMatchObject({ restoreId, backupId, snapshotId: SNAPSHOT, dryRun: false, safetyBackupId });
    await own.ack(restore.id ?? restore.commandId, { status: "succeeded", output: RESTORED });
    expect(await own.ask("GET", `/restores/${restoreId}`)).toMatchObject({ status: "completed", files: 2, bytes: 10, safetyBackupId });
  });

  test("changes nothing if that backup fails, and says that the data is kept", async () => {
    const appId = await own.app();
    const backupId = await own.made(appId);
    const { restoreId } = await own.ask("POST", `/backups/${backupId}/restore`, { overwriteExisting: true });
    const safety = await orderOf("backup.create");
    const failure = { stage: "uploading", reason: "DISK_FULL", message: "no space left", lines: [] };
    await own.ack(safety.id ?? safety.commandId, { status: "failed", code: "DISK_FULL", output: failure });
    expect(await own.ask("GET", `/restores/${restoreId}`)).toMatchObject({
      status: "failed",
      failure: { stage: "safety_backup", reason: "SAFETY_BACKUP_FAILED", previousData: "kept" },
    });
    expect(await own.poll()).toEqual([]);
  });

  test("skips that backup if somebody says so, and a dry run needs none", async () => {
    const appId = await own.app();
    const backupId = await own.made(appId);
    for (const body of [{ dryRun: true }, { overwriteExisting: true, skipSafetyBackup: true }]) {
      const { safetyBackupId } = await own.ask("POST", `/backups/${backupId}/restore`, body);
      expect(safetyBackupId).toBeNull();
      const restore = await orderOf("backup.restore");
      const plan = { files: 2, bytes: 10, freeBytes: 100, replaces: ["data"] };
      await own.ack(restore.id ?? restore.commandId, { status: "succeeded", output: body.dryRun === true ? { ...RESTORED, plan } : RESTORED });
    }
    expect(await own.ask("GET", `/restores?backupId=${backupId}`)).toMatchObject([
      { status: "completed", plan: null },
      { status: "completed", plan: { bytes: 10 } },
    ]);
  });
});

describe("a restore on another device", () => {
  test("installs the app there with what the backup kept, and its agent reads the repository of the first device", async () => {
    const { destinationId } = await own.destination(S3);
    const backupId = await own.made(await own.app(), { destinationId });
    const other = await own.tenant.device();
    const { restoreId, targetAppId, deviceId } = await own.ask("POST", `/backups/${backupId}/restore`, { targetDeviceId: other.deviceId });
    expect(deviceId).toBe(other.deviceId);
    expect(await own.ask("GET", `/apps/${targetAppId}`)).toMatchObject({ deviceId, appType: "key-value" });
    const orders = [];
    for (let round = 0; round < 2; round++) {
      const [order] = await own.poll(other);
      orders.push(order?.type);
      if (order?.type !== "backup.restore") {
        const app = {
          appId: targetAppId,
          revision: 1,
          state: "running",
          health: "healthy",
          failure: null,
          restarts: 0,
          cpuPercent: null,
          memoryBytes: null,
          ports: {},
        };
        await own.ack(order?.id ?? order?.commandId, { status: "succeeded", output: { app } }, other);
        continue;
      }
      const commandId = order.id ?? order.commandId;
      const access = await own.ask("GET", `/agent/backups/${backupId}/access?commandId=${commandId}`, undefined, other.as);
      expect(access).toMatchObject({ right: "read", environment: { AWS_ACCESS_KEY_ID: "key" } });
      await own.ack(commandId, { status: "succeeded", output: RESTORED }, other);
    }
    expect(orders).toEqual(["app.deploy", "backup.restore"]);
    expect(await own.ask("GET", `/restores/${restoreId}`)).toMatchObject({ status: "completed", targetAppId });
  });

  test("is refused if the backup lies on its own device", async () => {
    const backupId = await own.made(await own.app());
    const { deviceId } = await own.tenant.device();
    expect(await own.refusal("POST", `/backups/${backupId}/restore`, { targetDeviceId: deviceId })).toEqual([422, "RESTORE_INCOMPATIBLE"]);
  });
});

describe("an agent that falls silent", () => {
  test("lets a backup fail as stalled, and what it completes later is deleted", async () => {
    const { backupId, commandId } = await own.backUp(await own.app());
    await own.poll();
    await own.ack(commandId, { status: "running", progress: { pct: 10 } });
    await own.job("backups.stalled");
    expect((await own.ask("GET", `/backups/${backupId}`)).status).toBe("in_progress");
    await own.sql.query("update backups set heard_at = heard_at - interval '31 minutes' where backup_id = $1", [backupId]);
    await own.job("backups.stalled");
    expect(await own.ask("GET", `/backups/${backupId}`)).toMatchObject({ status: "failed", failure: { reason: "BACKUP_STALLED" } });
    await own.ack(commandId, { status: "succeeded", output: { ...CREATED, snapshotId: "5".repeat(64) } });
    expect(await own.ask("GET", `/backups/${backupId}`)).toMatchObject({ status: "failed", checksum: null });
    const stray = await orderOf("backup.delete");
    expect(stray.payload.snapshotIds).toEqual(["5".repeat(64)]);
    await own.ack(stray.id ?? stray.commandId, { status: "succeeded", output: { deleted: ["5".repeat(64)], missing: [] } });
  });

  test("lets a restore fail as stalled", async () => {
    const backupId = await own.made(await own.app());
    const { restoreId } = await own.ask("POST", `/backups/${backupId}/restore`, { overwriteExisting: true, skipSafetyBackup: true });
    const restore = await orderOf("backup.restore");
    await own.ack(restore.id ?? restore.commandId, { status: "running", progress: { pct: 10, stage: "verifying" } });
    await own.sql.query("update restores set heard_at = heard_at - interval '31 minutes' where restore_id = $1", [restoreId]);
    await own.job("backups.stalled");
    expect(await own.ask("GET", `/restores/${restoreId}`)).toMatchObject({ status: "failed", failure: { reason: "BACKUP_STALLED" } });
  });
});

describe("a hold", () => {
  test("keeps a backup from people until it is over or released", async () => {
    const backupId = await own.made(await own.app(), { retainUntil: new Date(Date.now() + 3_600_000).toISOString() });
    expect(await own.refusal("DELETE", `/backups/${backupId}`)).toEqual([409, "BACKUP_RETAINED"]);
    await own.ask("PATCH", `/backups/${backupId}`, { retainUntil: null });
    await own.ask("DELETE", `/backups/${backupId}`);
    const removal = await orderOf("backup.delete");
    await own.ack(removal.id ?? removal.commandId, { status: "succeeded", output: { deleted: [SNAPSHOT], missing: [] } });
    expect((await own.ask("GET", `/backups/${backupId}`)).status).toBe("deleted");
  });
});

describe("a deletion", () => {
  test("that fails leaves the backup as it was, with the reason", async () => {
    const backupId = await own.made(await own.app());
    await own.ask("DELETE", `/backups/${backupId}`);
    const removal = await orderOf("backup.delete");
    const failure = { stage: "deleting", reason: "REPOSITORY_UNREACHABLE", message: "nobody answers", lines: [] };
    await own.ack(removal.id ?? removal.commandId, { status: "failed", code: "REPOSITORY_UNREACHABLE", output: failure });
    expect(await own.ask("GET", `/backups/${backupId}`)).toMatchObject({ status: "completed", failure: { reason: "REPOSITORY_UNREACHABLE" } });
  });
});

describe("of a device that was removed", () => {
  test("backups are verified by another device, and deleted as records", async () => {
    const gone = await rig.open();
    const { destinationId } = await gone.destination(S3);
    const appId = await gone.app();
    const [local, remote] = [await gone.made(appId), await gone.made(appId, { destinationId })];
    const other = await gone.tenant.device();
    await gone.ask("DELETE", `/devices/${gone.device.deviceId}`);
    const verify = (backupId: string, body: object) => gone.refusal("POST", `/backups/${backupId}/verify`, body);
    expect(await verify(remote, {})).toEqual([404, "DEVICE_NOT_FOUND"]);
    expect(await verify(local, { deviceId: other.deviceId })).toEqual([422, "RESTORE_INCOMPATIBLE"]);
    await gone.ask("POST", `/backups/${remote}/verify`, { deviceId: other.deviceId });
    const [order] = await gone.poll(other);
    const commandId = order.id ?? order.commandId;
    expect(await gone.ask("GET", `/agent/backups/${remote}/access?commandId=${commandId}`, undefined, other.as)).toMatchObject({ right: "read" });
    await gone.ack(commandId, { status: "succeeded", output: { bytes: 10 } }, other);
    expect(await gone.ask("GET", `/backups/${remote}`)).toMatchObject({ verification: { status: "verified" } });
    for (const backupId of [local, remote]) {
      await gone.ask("DELETE", `/backups/${backupId}`);
      expect((await gone.ask("GET", `/backups/${backupId}`)).status).toBe("deleted");
    }
  });
});

test("an update waits for a backup where the app's policy asks for one, and not else", async () => {
  const appId = await own.app();
  const update = (port: number) => own.ask("PATCH", `/apps/${appId}`, { config: { ...DEFAULTS, port } });
  await update(8_101);
  expect((await own.poll()).map(({ type }) => type)).toEqual(["app.deploy"]);
  const [plain] = await own.sql.query("select command_id from apps where app_id = $1", [appId]).then(({ rows }) => rows);
  const app = { appId, revision: 2, state: "running", health: "healthy", failure: null, restarts: 0, cpuPercent: null, memoryBytes: null, ports: {} };
  await own.ack(plain.command_id, { status: "succeeded", output: { app } });
  const policy = { name: "before updates", schedule: "0 2 * * *", target: { appIds: [appId] }, retention: { keepLast: 3 }, beforeUpdates: true };
  const { policyId } = await own.ask("POST", "/backup-policies", policy);
  await update(8_102);
  // One lane: the agent carries them out in this order.
  const [backup, ...more] = await own.poll();
  expect([backup?.type, more.map(({ type }) => type)]).toEqual(["backup.create", ["app.deploy"]]);
  expect(await own.ask("GET", `/backups?appId=${appId}`)).toMatchObject([{ trigger: "pre_update", status: "pending" }]);
  await own.ack(backup?.id ?? backup?.commandId, { status: "succeeded", output: CREATED });
  await own.ack(more[0]?.id ?? more[0]?.commandId, { status: "succeeded", output: { app: { ...app, revision: 3 } } });
  await own.ask("DELETE", `/backup-policies/${policyId}`);
});
