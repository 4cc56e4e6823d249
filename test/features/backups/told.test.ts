// What people are told of backups, their destinations and their policies, with agents that a test speaks for.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BackupsRig, CREATED, type OpenTenant, openBackups, SNAPSHOT } from "./kit.ts";

const FAILURE = { stage: "verifying", reason: "REPOSITORY_DAMAGED", message: "a blob is wrong", lines: [] };

let rig: BackupsRig;
let own: OpenTenant;
beforeAll(async () => {
  rig = await openBackups();
  own = await rig.open();
});
afterAll(() => rig.close());

const told = async (subjectId: string): Promise<readonly string[]> =>
  (await own.sql.query("select type from outbox_events where subject_id = $1 order by position", [subjectId])).rows.map(({ type }) => type);
/** Answers the only open order of the type. */
const answer = async (type: string, body: object): Promise<void> => {
  const order = (await own.poll()).find((each) => each.type === type);
  if (order === undefined) throw new Error(`nobody ordered ${type}`);
  await own.ack(order.id ?? order.commandId, body);
};

test("a backup that is cancelled before its agent has it", async () => {
  const { backupId } = await own.backUp(await own.app());
  await own.ask("POST", `/backups/${backupId}/cancel`);
  expect(await own.ask("GET", `/backups/${backupId}`)).toMatchObject({ status: "cancelled" });
  expect((await told(backupId)).at(-1)).toBe("backup.cancelled");
});

test("a check that finds a backup damaged", async () => {
  const backupId = await own.made(await own.app());
  await own.ask("POST", `/backups/${backupId}/verify`, { mode: "checksum" });
  await answer("backup.verify", { status: "failed", code: "REPOSITORY_DAMAGED", output: FAILURE });
  expect(await own.ask("GET", `/backups/${backupId}`)).toMatchObject({ status: "completed", verification: { status: "failed" } });
  expect((await told(backupId)).at(-1)).toBe("backup.verification_failed");
});

test("a restore that writes", async () => {
  const backupId = await own.made(await own.app());
  const { restoreId } = await own.ask("POST", `/backups/${backupId}/restore`, { overwriteExisting: true, skipSafetyBackup: true });
  await answer("backup.restore", { status: "running", progress: { pct: 10, stage: "in_progress" } });
  expect(await own.ask("GET", `/restores/${restoreId}`)).toMatchObject({ status: "in_progress" });
  expect((await told(restoreId)).at(-1)).toBe("restore.started");
});

test("a repository that is pruned, and one that could not be", async () => {
  const { destinationId } = await own.destination();
  const backupId = await own.made(await own.app(), { destinationId });
  await own.ask("DELETE", `/backups/${backupId}`);
  await answer("backup.delete", { status: "succeeded", output: { deleted: [SNAPSHOT], missing: [] } });
  const due = () =>
    own.sql.query("update backup_repositories set last_deleted_at = now(), last_pruned_at = null, prune_started_at = null where destination_id = $1", [
      destinationId,
    ]);
  await due();
  await own.job("backups.prune");
  await answer("backup.prune", { status: "failed", code: "REPOSITORY_DAMAGED", output: FAILURE });
  await due();
  await own.job("backups.prune");
  await answer("backup.prune", { status: "succeeded", output: { freedBytes: 4, checked: true } });
  expect((await told(destinationId)).filter((type) => type.startsWith("backup_repository."))).toEqual([
    "backup_repository.prune_failed",
    "backup_repository.pruned",
  ]);
});

test("a destination that no device reaches, and reaches again", async () => {
  const { destinationId } = await own.destination();
  const ask = () => own.ask("POST", `/backup-destinations/${destinationId}/test`, { deviceId: own.device.deviceId });
  await ask();
  await answer("backup.test", { status: "failed", code: "REPOSITORY_UNREACHABLE", output: { ...FAILURE, reason: "REPOSITORY_UNREACHABLE" } });
  await ask();
  await answer("backup.test", { status: "succeeded", output: { created: false, snapshots: 1, seconds: 1 } });
  expect((await told(destinationId)).filter((type) => /failed|recovered/.test(type))).toEqual(["backup_destination.failed", "backup_destination.recovered"]);
});

test("a repository that is lost: no order may make it anew but a test that says so", async () => {
  const { destinationId } = await own.destination();
  const app = await own.app();
  const first = await own.backUp(app, { destinationId });
  const other = await own.backUp(await own.app(), { destinationId });
  const mayInitialize = async (path: string, { commandId }: { readonly commandId: string }): Promise<boolean> =>
    (await own.ask("GET", `/agent/${path}/access?commandId=${commandId}`, undefined, own.device.as)).mayInitialize;
  await own.poll();
  expect(await mayInitialize(`backups/${first.backupId}`, first)).toBe(true);
  expect(await mayInitialize(`backups/${other.backupId}`, other)).toBe(true);
  await own.ack(first.commandId, { status: "succeeded", output: CREATED });
  // What was ordered before is judged by what is known now.
  expect(await mayInitialize(`backups/${other.backupId}`, other)).toBe(false);
  const lost = { ...FAILURE, stage: "reading", reason: "REPOSITORY_MISSING" };
  await own.ack(other.commandId, { status: "failed", code: "REPOSITORY_MISSING", output: lost });
  expect(await own.ask("GET", `/backups/${other.backupId}`)).toMatchObject({ status: "failed", failure: lost });
  expect(await own.ask("GET", `/backup-destinations/${destinationId}`)).toMatchObject({ lastError: lost });

  const test = (body: object = {}) => own.ask("POST", `/backup-destinations/${destinationId}/test`, { deviceId: own.device.deviceId, ...body });
  const [plain, renewing] = [await test(), await test({ initialize: true })];
  await own.poll();
  expect(await mayInitialize(`backup-destinations/${destinationId}`, plain)).toBe(false);
  expect(await mayInitialize(`backup-destinations/${destinationId}`, renewing)).toBe(true);
  await own.ack(plain.commandId, { status: "failed", code: "REPOSITORY_MISSING", output: lost });
  await own.ack(renewing.commandId, { status: "succeeded", output: { created: true, snapshots: 0, seconds: 1 } });
  const next = await own.backUp(app, { destinationId });
  await own.poll();
  expect(await mayInitialize(`backups/${next.backupId}`, next)).toBe(false);
});

test("a policy that pauses and goes on", async () => {
  const { policyId } = await own.ask("POST", "/backup-policies", {
    name: "Nightly",
    schedule: "0 3 * * *",
    target: {},
    retention: { keepLast: 3 },
    allowEmpty: true,
  });
  await own.ask("POST", `/backup-policies/${policyId}/pause`);
  await own.ask("POST", `/backup-policies/${policyId}/resume`);
  expect(await told(policyId)).toEqual(["backup_policy.created", "backup_policy.paused", "backup_policy.resumed"]);
});
