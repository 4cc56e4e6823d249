// Backups and restores: every pair of states, and the way of a backup by its agent's word.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BACKUP_STATUSES, type BackupStatus, RESTORE_STATUSES, type RestoreStatus } from "../../../protocol/index.ts";
import { canMoveBackup, canMoveRestore, moveBackup, moveRestore } from "../../../server/features/backups/states.ts";
import { newApp } from "../../contract/samples/apps.ts";
import { openStock, type Stock } from "../../contract/samples.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";

const BACKUPS: Readonly<Record<BackupStatus, readonly BackupStatus[]>> = {
  pending: ["in_progress", "failed", "cancelled"],
  in_progress: ["cancelling", "completed", "partially_failed", "failed"],
  cancelling: ["completed", "partially_failed", "failed", "cancelled"],
  completed: ["deleting"],
  partially_failed: ["deleting"],
  failed: ["deleted"],
  cancelled: ["deleted"],
  deleting: ["completed", "partially_failed", "deleted"],
  deleted: [],
};
const RESTORES: Readonly<Record<RestoreStatus, readonly RestoreStatus[]>> = {
  pending: ["validating", "cancelling", "failed"],
  validating: ["in_progress", "cancelling", "failed"],
  in_progress: ["verifying", "cancelling", "failed"],
  verifying: ["completed", "failed"],
  cancelling: ["completed", "failed", "cancelled"],
  completed: [],
  failed: [],
  cancelled: [],
};

describe("the states", () => {
  test.each(BACKUP_STATUSES)("a backup that is %s changes to the listed states and to no others", (from) => {
    expect(BACKUP_STATUSES.filter((to) => canMoveBackup(from, to))).toEqual(BACKUP_STATUSES.filter((to) => BACKUPS[from].includes(to)));
    for (const to of BACKUP_STATUSES.filter((each) => !BACKUPS[from].includes(each))) expect(() => moveBackup(from, to)).toThrow();
  });
  test.each(RESTORE_STATUSES)("a restore that is %s changes to the listed states and to no others", (from) => {
    expect(RESTORE_STATUSES.filter((to) => canMoveRestore(from, to))).toEqual(RESTORE_STATUSES.filter((to) => RESTORES[from].includes(to)));
    for (const to of RESTORE_STATUSES.filter((each) => !RESTORES[from].includes(each))) expect(() => moveRestore(from, to)).toThrow();
  });
});

describe("an ordered backup", () => {
  let world: World;
  let stock: Stock;
  beforeAll(async () => {
    world = await startWorld({ RATE_LIMIT_AGENT: "off" });
    stock = await openStock(world);
  });
  afterAll(() => world.close());
  const call = async (method: string, path: string, body?: object) => {
    const answer = await world.call(stock.owner, method, `/v1${path}`, body === undefined ? {} : { body });
    expect([answer.status < 300, answer.body?.code]).toEqual([true, undefined]);
    return answer.body?.data;
  };
  const ordered = async () => {
    const { deviceId } = stock.device;
    const { appId } = await newApp(stock, { deviceId });
    return call("POST", `/devices/${deviceId}/backups`, { appId });
  };
  const ack = async (commandId: string, body: object) => {
    const { deviceId, as } = stock.device;
    expect((await world.call(as, "POST", `/v1/devices/${deviceId}/commands/${commandId}/ack`, { body })).status).toBe(200);
  };
  const snapshotId = "7".repeat(64);
  const output = { snapshotId, size: 10, addedBytes: 4, files: 2, warnings: [], consistency: "stopped", downtimeSeconds: 1, seconds: 3 };
  const poll = () => world.call(stock.device.as, "GET", `/v1/devices/${stock.device.deviceId}/commands`);

  test("is completed by its agent's word, with what the agent read back", async () => {
    const { backupId, commandId, status } = await ordered();
    expect(status).toBe("pending");
    await poll();
    await ack(commandId, { status: "running", progress: { pct: 40, bytesDone: 4, bytesTotal: 10 } });
    expect(await call("GET", `/backups/${backupId}`)).toMatchObject({ status: "in_progress", progress: { percent: 40, bytesDone: 4, bytesTotal: 10 } });
    await ack(commandId, { status: "succeeded", output });
    expect(await call("GET", `/backups/${backupId}`)).toMatchObject({ status: "completed", size: 10, checksum: `sha256:${snapshotId}`, progress: null });
  });

  test("that lacks files which could not be read is partially failed, says which, and is told as such", async () => {
    const { backupId, commandId } = await ordered();
    await poll();
    await ack(commandId, { status: "succeeded", output: { ...output, warnings: ["data/locked.db: permission denied"], partial: true } });
    expect(await call("GET", `/backups/${backupId}`)).toMatchObject({ status: "partially_failed", warnings: ["data/locked.db: permission denied"] });
    const { rows } = await world.sql.query("select type from outbox_events where subject_id = $1 order by position desc limit 1", [backupId]);
    expect(rows).toEqual([{ type: "backup.partially_failed" }]);
  });

  test("fails with the agent's reason, and never counts as complete without a snapshot", async () => {
    const first = await ordered();
    await poll();
    const failure = { stage: "hook", reason: "HOOK_FAILED", message: "pg_dump ended with 1", lines: ["no such database"] };
    await ack(first.commandId, { status: "failed", code: "HOOK_FAILED", output: failure });
    expect(await call("GET", `/backups/${first.backupId}`)).toMatchObject({ status: "failed", failure });
    const second = await ordered();
    await poll();
    await ack(second.commandId, { status: "succeeded", output: { ...output, snapshotId: "short" } });
    expect(await call("GET", `/backups/${second.backupId}`)).toMatchObject({ status: "failed", failure: { reason: "INVALID_OUTPUT" } });
  });
});
