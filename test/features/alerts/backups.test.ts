// Rules about backups: each metric fires by what happened to an app's backups or a device's repository, and its alert resolves when that is over.
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { CONTENT } from "../../contract/samples/apps.ts";
import { type AlertsRig, openAlerts } from "./kit.ts";

let rig: AlertsRig;
beforeAll(async () => {
  rig = await openAlerts();
});
afterAll(() => rig.close());

const HOUR = 3_600;
const UNVERIFIED = { status: "unverified", mode: null, verifiedAt: null, failure: null };

/** A device with an app, and its backups as its agent would have left them. */
const openApp = async () => {
  const own = await rig.open();
  const { tenantId } = own.tenant;
  const [deviceId = ""] = await own.devices(1);
  const appId = newId("app");
  const { sql } = rig.world;
  await sql.query(
    `insert into apps (app_id, tenant_id, device_id, app_type, template_version, name, status, config, spec, desired_version, created_by, created_at)
     values ($1, $2, $3, 'key-value', '1.0.0', 'store', 'running', $4, $5, 1, 'user:u', now() - interval '10 days')`,
    [appId, tenantId, deviceId, ...CONTENT],
  );
  const backup = async ({ status = "completed", ageSeconds = 0, verification = UNVERIFIED as object } = {}): Promise<string> => {
    const backupId = newId("bak");
    await sql.query(
      `insert into backups (backup_id, tenant_id, device_id, app_id, name, type, trigger, status, verification, created_at, completed_at, created_by)
       select $1, $2, $3, $4, 'store', 'full', 'policy', $5, $6, t.at, case when $5 = 'completed' then t.at end, 'system'
         from (select now() - make_interval(secs => $7) as at) t`,
      [backupId, tenantId, deviceId, appId, status, JSON.stringify(verification), ageSeconds],
    );
    return backupId;
  };
  /** A policy whose newest run names the app. */
  const policy = async (madeSecondsAgo: number): Promise<string> => {
    const [policyId, runId] = [newId("bpl"), newId("bru")];
    await sql.query(
      `with p as (insert into backup_policies (policy_id, tenant_id, name, schedule, timezone, jitter_seconds, missed_run, target, type, retention, consistency, timeout_seconds,
         created_by, created_at) values ($1, $2, 'nightly', '0 2 * * *', 'UTC', 0, 'skip', '{}', 'full', '{}', 'template', 3600, 'user:u', now() - make_interval(secs => $3))),
         r as (insert into backup_runs (run_id, tenant_id, policy_id, scheduled_for, created_by) values ($4, $2, $1, now(), 'system'))
       insert into backup_run_items (tenant_id, run_id, app_id, device_id, due_at, expires_at) values ($2, $4, $5, $6, now(), now())`,
      [policyId, tenantId, madeSecondsAgo, runId, appId, deviceId],
    );
    return policyId;
  };
  const statuses = async (metric: string) => {
    await rig.evaluate();
    return (await own.alerts()).filter(({ type }) => type === metric).map(({ status, target }) => [status, target]);
  };
  return { ...own, sql, tenantId, deviceId, appId, backup, policy, statuses };
};

test("an app without a good backup for 26 hours fires the rule that every tenant begins with, and a good one ends it", async () => {
  const own = await openApp();
  await own.policy(100 * HOUR);
  await own.backup({ ageSeconds: 25 * HOUR });
  expect(await own.statuses("backup.age_hours")).toEqual([]);
  await own.sql.query("update backups set completed_at = completed_at - interval '2 hours' where app_id = $1", [own.appId]);
  // Neither a failed one nor a damaged one is good.
  await own.backup({ status: "failed" });
  await own.backup({ verification: { ...UNVERIFIED, status: "failed" } });
  expect(await own.statuses("backup.age_hours")).toEqual([["open", expect.objectContaining({ id: own.appId })]]);
  expect((await own.alerts("?status=open"))[0]).toMatchObject({ title: "No good backup for 26 hours: store", severity: "warning", activeCount: 1 });
  await own.backup();
  expect(await own.statuses("backup.age_hours")).toMatchObject([["resolved", {}]]);
});

test("an app that was never backed up well is judged from the day of its policy, and only while a policy wants it", async () => {
  const own = await openApp();
  expect(await own.statuses("backup.age_hours")).toEqual([]);
  const policyId = await own.policy(25 * HOUR);
  expect(await own.statuses("backup.age_hours")).toEqual([]);
  await own.sql.query("update backup_policies set created_at = created_at - interval '2 hours' where policy_id = $1", [policyId]);
  expect(await own.statuses("backup.age_hours")).toMatchObject([["open", {}]]);
  await own.sql.query("update backup_policies set enabled = false where policy_id = $1", [policyId]);
  expect(await own.statuses("backup.age_hours")).toMatchObject([["resolved", {}]]);
});

test("failed backups count until a good one comes", async () => {
  const own = await openApp();
  await own.made("/alert-rules", { name: "Backups fail", metric: "backup.failed", operator: "gte", threshold: 2, clearForSeconds: 0 });
  await own.backup({ status: "failed", ageSeconds: 3 * HOUR });
  await own.backup({ ageSeconds: 2 * HOUR });
  await own.backup({ status: "failed", ageSeconds: HOUR });
  expect(await own.statuses("backup.failed")).toEqual([]);
  await own.backup({ status: "partially_failed", ageSeconds: HOUR / 2 });
  expect(await own.statuses("backup.failed")).toEqual([["open", expect.objectContaining({ id: own.appId })]]);
  await own.backup();
  expect(await own.statuses("backup.failed")).toMatchObject([["resolved", {}]]);
});

test("a damaged backup fires until it is gone, and so does one of an app that is removed", async () => {
  const own = await openApp();
  await own.made("/alert-rules", { name: "Damaged", metric: "backup.verification_failed", threshold: 0, clearForSeconds: 0, cooldownSeconds: 0 });
  const damaged = await own.backup({ verification: { ...UNVERIFIED, status: "failed" } });
  expect(await own.statuses("backup.verification_failed")).toMatchObject([["open", {}]]);
  await own.sql.query("update backups set status = 'deleted' where backup_id = $1", [damaged]);
  expect(await own.statuses("backup.verification_failed")).toMatchObject([["resolved", {}]]);
  await own.sql.query("update backups set status = 'completed' where backup_id = $1", [damaged]);
  expect((await own.statuses("backup.verification_failed"))[0]).toMatchObject(["open", {}]);
  await own.sql.query("update apps set removed_at = now() where app_id = $1", [own.appId]);
  expect((await own.statuses("backup.verification_failed"))[0]).toMatchObject(["resolved", {}]);
});

test("a repository that was not pruned fires for its device until a prune succeeds", async () => {
  const own = await openApp();
  await own.made("/alert-rules", { name: "Not pruned", metric: "backup.prune_failed", threshold: 0, clearForSeconds: 0 });
  const destinationId = newId("bkd");
  await own.sql.query(
    `with d as (insert into backup_destinations (destination_id, tenant_id, name, kind, settings, created_by) values ($1, $2, 'shelf', 'local', '{}', 'user:u'))
     insert into backup_repositories (repository_id, tenant_id, device_id, destination_id, password) values ('rep_' || $1, $2, $3, $1, '')`,
    [destinationId, own.tenantId, own.deviceId],
  );
  expect(await own.statuses("backup.prune_failed")).toEqual([]);
  await own.sql.query("update backup_repositories set last_pruned_at = now() - interval '8 days', prune_failed_at = now() where device_id = $1", [
    own.deviceId,
  ]);
  expect(await own.statuses("backup.prune_failed")).toEqual([["open", expect.objectContaining({ id: own.deviceId })]]);
  await own.sql.query("update backup_repositories set last_pruned_at = now() + interval '1 second' where device_id = $1", [own.deviceId]);
  expect(await own.statuses("backup.prune_failed")).toMatchObject([["resolved", {}]]);
});
