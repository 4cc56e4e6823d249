// Runs of policies: how many backups begin at once, how a run ends with them, and what retention deletes afterwards.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BackupsRig, CREATED, type OpenTenant, openBackups } from "../backups/kit.ts";

let rig: BackupsRig;
beforeAll(async () => {
  rig = await openBackups();
});
afterAll(() => rig.close());

/** About twelve hours away from its next time and from its last, whenever the tests run. */
const SCHEDULE = `0 ${(new Date().getUTCHours() + 12) % 24} * * *`;
const POLICY = { name: "nightly", schedule: SCHEDULE, retention: { keepLast: 2 } };
const policyOf = (own: OpenTenant, appIds: readonly string[], more: object = {}) =>
  own.ask("POST", "/backup-policies", { ...POLICY, target: { appIds }, ...more });
const runOf = async (own: OpenTenant, policyId: string) => (await own.ask("GET", `/backup-policies/${policyId}/runs`))[0];
const inState = async (own: OpenTenant, policyId: string, status: string) =>
  (await runOf(own, policyId)).backups.filter((each: { readonly status: string }) => each.status === status).length;

const failure = { stage: "uploading", reason: "DISK_FULL", message: "no space left", lines: [] };
const answer = async (own: OpenTenant, count: number, isGood = true): Promise<void> => {
  const orders = (await own.poll()).filter(({ type }) => type === "backup.create").slice(0, count);
  for (const [at, order] of orders.entries()) {
    const snapshotId = (order.id ?? order.commandId)
      .replace(/\W/g, "")
      .toLowerCase()
      .replace(/[^0-9a-f]/g, "0")
      .padEnd(64, String(at % 10))
      .slice(0, 64);
    const body = isGood ? { status: "succeeded", output: { ...CREATED, snapshotId } } : { status: "failed", code: "DISK_FULL", output: failure };
    await own.ack(order.id ?? order.commandId, body);
  }
};

test("at most 20 backups of a policy are under way at once, and the next begin as these end", { timeout: 60_000 }, async () => {
  const own = await rig.open();
  const appIds = await Promise.all(Array.from({ length: 24 }, () => own.app()));
  const { policyId } = await policyOf(own, appIds);
  await own.ask("POST", `/backup-policies/${policyId}/run`);
  expect(await own.refusal("POST", `/backup-policies/${policyId}/run`)).toEqual([409, "BACKUP_IN_PROGRESS"]);
  // Nothing is ordered from a device that is away.
  await own.job("backup-policies.dispatch");
  expect(await inState(own, policyId, "in_progress")).toBe(0);
  await own.online();
  await own.job("backup-policies.dispatch");
  await own.job("backup-policies.dispatch");
  expect(await inState(own, policyId, "in_progress")).toBe(20);
  await answer(own, 3);
  await own.job("backup-policies.dispatch");
  expect([await inState(own, policyId, "completed"), await inState(own, policyId, "in_progress")]).toEqual([3, 20]);
  for (let round = 0; round < 30 && (await runOf(own, policyId)).status === "running"; round++) {
    await answer(own, 24);
    await own.job("backup-policies.dispatch");
  }
  expect(await runOf(own, policyId)).toMatchObject({ status: "completed", counts: { total: 24, completed: 24, failed: 0, skipped: 0 } });
});

test("a run that cannot hand out all of its apps keeps no other waiting, of another tenant or of the same", async () => {
  const crowded = await rig.open();
  const [other, ownApp] = [await rig.open(), await crowded.app()];
  await Promise.all([crowded.online(), other.online()]);
  const { policyId: large } = await policyOf(crowded, [await crowded.app()]);
  const { runId } = await crowded.ask("POST", `/backup-policies/${large}/run`);
  // More than one look reads of a run, all of them due before anything else. They have no apps behind them, so each costs one look.
  await crowded.sql.query(
    `insert into backup_run_items (tenant_id, run_id, app_id, device_id, due_at, expires_at)
     select tenant_id, run_id, 'app_' || n, device_id, due_at - interval '1 minute', expires_at from backup_run_items, generate_series(1, 3000) n where run_id = $1`,
    [runId],
  );
  const { policyId: small } = await policyOf(crowded, [ownApp], { name: "small" });
  const { policyId: foreign } = await policyOf(other, [await other.app()]);
  await crowded.ask("POST", `/backup-policies/${small}/run`);
  await other.ask("POST", `/backup-policies/${foreign}/run`);
  await crowded.job("backup-policies.dispatch");
  expect([await inState(crowded, small, "in_progress"), await inState(other, foreign, "in_progress")]).toEqual([1, 1]);
  await crowded.sql.query("delete from backup_runs where run_id = $1", [runId]);
});

test("an app whose device stays away is skipped when its time is over", async () => {
  const own = await rig.open();
  const { policyId } = await policyOf(own, [await own.app()], { missedRun: "skip" });
  await own.ask("POST", `/backup-policies/${policyId}/run`);
  await own.sql.query("update backup_run_items set expires_at = now() - interval '1 second' where tenant_id = $1", [own.tenantId]);
  await own.job("backup-policies.dispatch");
  expect(await runOf(own, policyId)).toMatchObject({ status: "failed", counts: { skipped: 1 }, backups: [{ status: "skipped", reason: "DEVICE_OFFLINE" }] });
});

test("retention deletes what no rule keeps after a good run, nothing after a failed one, and never what is held or being restored", async () => {
  const own = await rig.open();
  await own.online();
  const appId = await own.app();
  const { policyId } = await policyOf(own, [appId]);
  const run = async (isGood = true): Promise<void> => {
    await own.ask("POST", `/backup-policies/${policyId}/run`);
    await own.job("backup-policies.dispatch");
    await answer(own, 1, isGood);
  };
  const states = async (): Promise<string[]> =>
    (await own.ask("GET", `/backups?policyId=${policyId}&sort=createdAt`)).map(({ status }: { status: string }) => status);
  for (let made = 0; made < 4; made++) await run();
  const [held, restored] = await own.ask("GET", `/backups?policyId=${policyId}&sort=createdAt`);
  await own.ask("PATCH", `/backups/${held.backupId}`, { retainUntil: new Date(Date.now() + 3_600_000).toISOString() });
  await run(false);
  // Only what the failed run left is to be judged.
  await own.sql.query("update backup_runs set retained_at = now() where tenant_id = $1 and status = 'completed'", [own.tenantId]);
  await own.job("backup-policies.retain");
  expect(await states()).toEqual(["completed", "completed", "completed", "completed", "failed"]);
  await run();
  const { restoreId } = await own.ask("POST", `/backups/${restored.backupId}/restore`, { overwriteExisting: true, skipSafetyBackup: true });
  await own.job("backup-policies.retain");
  // Two are kept by the rule. Of the other three one is held, one is read by a restore, and one goes.
  expect(await states()).toEqual(["completed", "completed", "deleting", "completed", "failed", "completed"]);
  const { rows } = await own.sql.query("select data from outbox_events where tenant_id = $1 and type = 'backup_policy.retention_applied'", [own.tenantId]);
  expect(rows).toMatchObject([{ data: { policyId, deleted: 1, kept: 4 } }]);
  await own.ask("POST", `/restores/${restoreId}/cancel`);
});

test("retention reaches every app of a run, however many backups the run's apps have", async () => {
  const own = await rig.open();
  await own.online();
  const appIds = await Promise.all(Array.from({ length: 12 }, () => own.app()));
  const { policyId } = await policyOf(own, appIds, { retention: { keepLast: 449 } });
  await own.ask("POST", `/backup-policies/${policyId}/run`);
  await own.job("backup-policies.dispatch");
  for (let round = 0; round < 5 && (await runOf(own, policyId)).status === "running"; round++) await answer(own, 12);
  // With the one of the run, each app has two more than the rule keeps, and the run's apps have more than one look takes in.
  await own.sql.query(
    `insert into backups (backup_id, tenant_id, device_id, app_id, policy_id, destination_id, name, type, trigger, status, checksum, verification, created_by, completed_at)
     select 'bak_' || lpad(n || substr(md5(b.backup_id), 1, 20), 26, '0'), tenant_id, device_id, app_id, policy_id, destination_id, name, type, trigger, status, checksum, verification, created_by,
       completed_at - n * interval '1 hour' from backups b, generate_series(1, 450) n where b.policy_id = $1`,
    [policyId],
  );
  const isJudged = async () => (await own.sql.query("select 1 from backup_runs where policy_id = $1 and retained_at is not null", [policyId])).rows.length > 0;
  for (let round = 0; round < 10 && !(await isJudged()); round++) await own.job("backup-policies.retain");
  const { rows } = await own.sql.query("select app_id from backups where policy_id = $1 and status = 'deleting' group by app_id having count(*) = 2", [
    policyId,
  ]);
  expect(rows.map(({ app_id }) => app_id).sort()).toEqual([...appIds].sort());
});

test("a streak of failures deletes no good backup, and would if failed ones counted", async () => {
  const states = async (own: OpenTenant, countsFailures: boolean): Promise<readonly string[]> => {
    await own.online();
    const appId = await own.app();
    const { policyId } = await policyOf(own, [appId], { retention: { keepLast: 1 } });
    for (const isGood of [true, false, false]) {
      await own.ask("POST", `/backup-policies/${policyId}/run`);
      await own.job("backup-policies.dispatch");
      await answer(own, 1, isGood);
      if (countsFailures) {
        await own.sql.query("update backups set status = 'completed', completed_at = now() where tenant_id = $1 and status = 'failed'", [own.tenantId]);
        await own.sql.query("update backup_runs set status = 'completed' where tenant_id = $1 and status = 'failed'", [own.tenantId]);
        await own.sql.query("update backup_run_items set status = 'completed' where tenant_id = $1 and status = 'failed'", [own.tenantId]);
      }
      await own.job("backup-policies.retain");
    }
    return (await own.ask("GET", `/backups?policyId=${policyId}&sort=createdAt`)).map(({ status }: { status: string }) => status);
  };
  expect(await states(await rig.open(), false)).toEqual(["completed", "failed", "failed"]);
  // The control: the only good one goes.
  expect((await states(await rig.open(), true))[0]).toBe("deleting");
});

test("a run that was due while nobody looked is made up for once, or skipped, as the policy says", async () => {
  const own = await rig.open();
  for (const missedRun of ["run_once", "skip"] as const) {
    const { policyId } = await policyOf(own, [await own.app()], { name: missedRun, missedRun });
    await own.sql.query("update backup_policies set next_run_at = next_run_at - interval '3 days' where policy_id = $1", [policyId]);
    await own.job("backup-policies.begin");
    await own.job("backup-policies.begin");
    expect((await own.ask("GET", `/backup-policies/${policyId}/runs`)).length).toBe(missedRun === "run_once" ? 1 : 0);
    const { rows } = await own.sql.query("select data from outbox_events where tenant_id = $1 and subject_id = $2 and type = 'backup_policy.missed'", [
      own.tenantId,
      policyId,
    ]);
    expect(rows).toMatchObject([{ data: { missedRun, missed: expect.any(Number) } }]);
    expect(new Date((await own.ask("GET", `/backup-policies/${policyId}`)).nextRunAt).getTime()).toBeGreaterThan(Date.now());
  }
});
