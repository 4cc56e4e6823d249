// Rollouts of the agent over fleets of devices that do what a test tells them.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import type { World } from "../../kit/gateway/world.ts";
import { AGENT, advance, call, create, endCommands, membersOf, obey, openFleet, orderedEver, read, runToEnd, startRolloutWorld, step, TARGET } from "./kit.ts";

let world: World;
beforeAll(async () => {
  world = await startRolloutWorld();
});
afterAll(() => world.close());

const PHASES = [{ count: 10 }, { count: 100 }, { percent: 1 }];

describe("a rollout stops by itself", () => {
  test("300 devices of which 15 % fail: it pauses, and no device of a later phase gets an order", async () => {
    const fleet = await openFleet(world, 300);
    const rolloutId = await create(fleet, { phases: PHASES });
    await step(fleet);
    const members = await membersOf(fleet, rolloutId);
    // Each seventh by position, so that the phase in which it stops is known.
    const failing = new Set(members.filter(({ position }) => position % 7 === 3).map(({ device_id }) => device_id));
    const rollout = await runToEnd(fleet, rolloutId, (deviceId) => failing.has(deviceId));
    expect(rollout).toMatchObject({ status: "paused", phase: 1, actions: ["resume", "abort", "retryFailed"] });
    expect(["THRESHOLD_EXCEEDED", "PHASE_FAILED"]).toContain(rollout.statusReason);
    const after = await membersOf(fleet, rolloutId);
    expect(after.filter(({ position, status }) => position > 10 && status !== "pending")).toEqual([]);
    await step(fleet, 3);
    expect((await read(fleet, rolloutId)).counts).toEqual(rollout.counts);
  });

  test("a version that fails everywhere reaches exactly 5 of 300 devices", async () => {
    const fleet = await openFleet(world, 300);
    const rolloutId = await create(fleet, { phases: PHASES });
    const rollout = await runToEnd(fleet, rolloutId, () => true);
    expect(rollout).toMatchObject({ status: "paused", counts: { total: 300, failed: 5, pending: 295, succeeded: 0 } });
    expect(await orderedEver(fleet, rolloutId)).toBe(5);
    expect(await call(fleet, "GET", `/rollouts/${rolloutId}/failures`)).toMatchObject([{ code: "BROKEN", count: 5 }]);
  });

  test("failures name what their devices share and the others do not, for each caller among the devices that the caller sees", async () => {
    const fleet = await openFleet(world, 20);
    const rolloutId = await create(fleet, { phases: [{ percent: 100 }] });
    await step(fleet, 2);
    const [old, more] = [fleet.deviceIds.slice(0, 6), fleet.deviceIds.slice(6)];
    await world.sql.query("update devices set model = case when device_id = any($1) then 'Pi 3' else 'Pi 5' end, tags = '{all}' where tenant_id = $2", [
      old,
      fleet.tenant.tenantId,
    ]);
    const end = (deviceIds: readonly string[], status: string, code: string | null) =>
      world.sql.query("update rollout_devices set status = $3, code = $4 where rollout_id = $1 and device_id = any($2)", [rolloutId, deviceIds, status, code]);
    await end(old.slice(0, 5), "failed", "DISK_FULL");
    await end(old.slice(5), "succeeded", null);
    await end(more.slice(0, 2), "timed_out", "TIMED_OUT");
    await end(more.slice(2), "succeeded", null);
    expect(await call(fleet, "GET", `/rollouts/${rolloutId}/failures`)).toMatchObject([
      { code: "DISK_FULL", count: 5, common: [{ kind: "model", value: "Pi 3", failed: 5, finished: 6 }] },
      { code: "TIMED_OUT", count: 2, common: [] },
    ]);
  });

  test("nothing failing: all phases pass, in order, and the rollout completes", async () => {
    const fleet = await openFleet(world, 60);
    const rolloutId = await create(fleet, { phases: [{ count: 10 }, { percent: 50 }, { percent: 10 }] });
    const rollout = await runToEnd(fleet, rolloutId);
    expect(rollout).toMatchObject({ status: "completed", statusReason: null, phase: 3, counts: { total: 60, succeeded: 60, pending: 0 } });
    expect(rollout.phases.map(({ size, succeeded, status }: Record<string, unknown>) => [size, succeeded, status])).toEqual([
      [10, 10, "passed"],
      [30, 30, "passed"],
      [20, 20, "passed"],
    ]);
    expect(await orderedEver(fleet, rolloutId)).toBe(60);
    const steps = await call(fleet, "GET", `/rollouts/${rolloutId}/events`);
    expect(steps.map(({ event }: { event: string }) => event)).toEqual([
      "created",
      "start",
      "started",
      "phase_passed",
      "phase_passed",
      "phase_passed",
      "completed",
    ]);
  });
});

describe("people", () => {
  test("pause it: nothing more is ordered, what no device got is withdrawn, and resume goes on", async () => {
    const fleet = await openFleet(world, 20);
    const rolloutId = await create(fleet, {});
    await step(fleet, 2);
    expect((await read(fleet, rolloutId)).counts).toMatchObject({ ordered: 5 });
    const paused = await call(fleet, "POST", `/rollouts/${rolloutId}/pause`, { reason: "lunch" });
    expect(paused).toMatchObject({ status: "paused", statusReason: "PERSON", reasonText: "lunch", counts: { ordered: 5 } });
    await step(fleet, 3);
    expect((await read(fleet, rolloutId)).counts).toMatchObject({ ordered: 0, pending: 20 });
    const open = await world.sql.query("select 1 from command_queue where tenant_id = $1", [fleet.tenant.tenantId]);
    expect(open.rows).toEqual([]);
    await call(fleet, "POST", `/rollouts/${rolloutId}/resume`);
    expect(await runToEnd(fleet, rolloutId)).toMatchObject({ status: "completed", counts: { succeeded: 20 } });
  });

  test("abort it: pending devices are aborted, delivered orders run to their end and count", async () => {
    const fleet = await openFleet(world, 20);
    const rolloutId = await create(fleet, {});
    await step(fleet, 2);
    await world.sql.query("update command_queue set status = 'acknowledged', sent_at = now() where tenant_id = $1", [fleet.tenant.tenantId]);
    await call(fleet, "POST", `/rollouts/${rolloutId}/abort`, { reason: "wrong version" });
    await step(fleet, 2);
    expect((await read(fleet, rolloutId)).counts).toMatchObject({ ordered: 5, aborted: 15, pending: 0 });
    await obey(fleet, rolloutId, () => false);
    await step(fleet, 2);
    expect(await read(fleet, rolloutId)).toMatchObject({ status: "aborted", counts: { succeeded: 5, aborted: 15, ordered: 0 }, actions: [] });
  });

  test("accept failures, so that it does not stop at once again, and try the failed ones again", async () => {
    const fleet = await openFleet(world, 40);
    const rolloutId = await create(fleet, {});
    await runToEnd(fleet, rolloutId, () => true);
    const refused = await world.call(fleet.owner, "POST", `/v1/rollouts/${rolloutId}/resume`);
    expect([refused.status, refused.body.error.code, refused.body.error.details.reason]).toEqual([409, "INVALID_STATE_TRANSITION", "accept_failures"]);
    await call(fleet, "POST", `/rollouts/${rolloutId}/retry-failed`, { codes: ["BROKEN"] });
    await call(fleet, "POST", `/rollouts/${rolloutId}/resume`, { acceptFailures: true });
    expect(await runToEnd(fleet, rolloutId)).toMatchObject({ status: "completed", counts: { succeeded: 40, failed: 0 } });
  });

  test("start two rollouts of the same devices: the second is refused, or skips them", async () => {
    const fleet = await openFleet(world, 4);
    const body = { fleetId: fleet.fleetId, settings: AGENT, start: true };
    const both = await Promise.all([1, 2].map(() => world.call(fleet.owner, "POST", "/v1/rollouts", { body })));
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
    const refused = both.find(({ status }) => status === 409);
    const made = both.find(({ status }) => status === 201)?.body.data.rolloutId;
    expect(refused?.body.error).toMatchObject({ code: "ROLLOUT_CONFLICT", details: { devices: 4, rollouts: [{ rolloutId: made, devices: 4 }] } });
    await step(fleet);
    const other = await create(fleet, {}, { conflicts: "skip" });
    await step(fleet, 2);
    expect(await read(fleet, other)).toMatchObject({ status: "completed", statusReason: "NOTHING_TO_DO", counts: { skipped: 4 } });
    expect(await runToEnd(fleet, made)).toMatchObject({ status: "completed", counts: { succeeded: 4 } });
  });
});

describe("devices", () => {
  test("that are offline do not hold up a phase, and are ordered as soon as they are back", async () => {
    const fleet = await openFleet(world, 12);
    const [away = "", ...others] = fleet.deviceIds;
    await world.sql.query("update devices set status = 'offline' where device_id = $1", [away]);
    const rolloutId = await create(fleet, { phases: [{ percent: 50 }, { percent: 50 }] });
    const waiting = await runToEnd(fleet, rolloutId);
    expect(waiting).toMatchObject({ status: "running", waitingFor: "offline", counts: { succeeded: others.length, pending: 1, late: 1 } });
    // The event of its return may be late, so the rollout looks again by itself.
    const soon = await world.sql.query("select step_at < now() + interval '10 seconds' as soon from many_work where record_id = $1", [rolloutId]);
    expect(soon.rows).toEqual([{ soon: true }]);
    expect(waiting.until).toBe(new Date(Date.parse(waiting.phases[1].finishedAt) + 72 * 3_600_000).toISOString());
    await world.sql.query("update devices set status = 'online' where device_id = $1", [away]);
    await world.sql.query("update rollout_devices set due = true where rollout_id = $1 and late", [rolloutId]);
    expect(await runToEnd(fleet, rolloutId)).toMatchObject({ status: "completed", counts: { succeeded: 12, late: 0 } });
  });

  test("that stay away are skipped when their time is over", async () => {
    const fleet = await openFleet(world, 3);
    await world.sql.query("update devices set status = 'offline' where device_id = $1", [fleet.deviceIds[0]]);
    const rolloutId = await create(fleet, { offlineWaitHours: 1 });
    await runToEnd(fleet, rolloutId);
    advance(3_700_000);
    await step(fleet, 2);
    expect(await read(fleet, rolloutId)).toMatchObject({ status: "completed", counts: { succeeded: 2, skipped: 1, late: 0 } });
    advance(-3_700_000);
  });

  test("whose order was never delivered go back in turn, and one that got it has to show the version in time", async () => {
    const fleet = await openFleet(world, 2);
    const rolloutId = await create(fleet, { deviceTimeoutMinutes: 5 });
    await step(fleet, 2);
    const [first, second] = await membersOf(fleet, rolloutId);
    await endCommands(fleet, [first?.command_id ?? ""], { status: "expired", code: null, sent: false });
    // Its word alone is no success.
    await endCommands(fleet, [second?.command_id ?? ""], { status: "succeeded", code: null });
    await step(fleet);
    expect((await membersOf(fleet, rolloutId)).map(({ status, code }) => [status, code])).toEqual([
      ["pending", "OFFLINE"],
      ["verifying", null],
    ]);
    advance(301_000);
    await step(fleet);
    expect((await membersOf(fleet, rolloutId))[1]).toMatchObject({ status: "timed_out", code: "NOT_CONFIRMED" });
    advance(-301_000);
  });

  test("that run another version than the one ordered have failed", async () => {
    const fleet = await openFleet(world, 1);
    const rolloutId = await create(fleet, {});
    await step(fleet, 2);
    const [member] = await membersOf(fleet, rolloutId);
    await endCommands(fleet, [member?.command_id ?? ""], { status: "succeeded", code: null });
    await world.sql.query("update devices set agent_version = '3.0.0' where device_id = $1", [member?.device_id]);
    await step(fleet);
    expect((await membersOf(fleet, rolloutId))[0]).toMatchObject({ status: "failed", code: "WRONG_VERSION" });
  });

  test("that have the version, left the fleet or were deleted are skipped and in no share", async () => {
    const fleet = await openFleet(world, 8);
    const [there, left, gone] = fleet.deviceIds;
    await world.sql.query("update devices set agent_version = $2 where device_id = $1", [there, TARGET]);
    const rolloutId = await create(fleet, { phases: [{ count: 1 }, { percent: 90 }] });
    await step(fleet);
    const [front] = (await membersOf(fleet, rolloutId)).filter(({ position }) => position === 1);
    const others = [left, gone].filter((id) => id !== front?.device_id);
    await world.sql.query("update devices set fleet_ids = '{}' where device_id = $1", [others[0]]);
    if (others[1] !== undefined) await world.sql.query("update devices set deleted_at = now() where device_id = $1", [others[1]]);
    const rollout = await runToEnd(fleet, rolloutId);
    expect(rollout).toMatchObject({ status: "completed", counts: { skipped: 1 + others.length, succeeded: 7 - others.length, failed: 0 } });
    const codes = (await membersOf(fleet, rolloutId)).flatMap(({ code }) => code ?? []);
    expect(codes.sort()).toEqual(["ALREADY_THERE", "DEVICE_DELETED", "LEFT_FLEET"].filter((code) => code !== "DEVICE_DELETED" || others[1] !== undefined));
  });
});

describe("phases", () => {
  test("soak: a device that is lost after its update fails, and is judged", async () => {
    const fleet = await openFleet(world, 10);
    const rolloutId = await create(fleet, { phases: [{ count: 2, soakMinutes: 30 }, { percent: 80 }] });
    const soaking = await runToEnd(fleet, rolloutId);
    expect(soaking).toMatchObject({ status: "running", phase: 1, waitingFor: "soak" });
    const [first] = (await membersOf(fleet, rolloutId)).filter(({ position }) => position === 1);
    await world.sql.query("update devices set agent_version = '1.0.0' where device_id = $1", [first?.device_id]);
    await step(fleet);
    expect(await read(fleet, rolloutId)).toMatchObject({ status: "paused", statusReason: "PHASE_FAILED", counts: { failed: 1, succeeded: 1 } });
    await world.sql.query("update devices set agent_version = $2 where device_id = $1", [first?.device_id, TARGET]);
  });

  test("soak until their time is over, can be promoted, and wait for an approval", async () => {
    const fleet = await openFleet(world, 6);
    const phases = [
      { count: 2, soakMinutes: 30 },
      { count: 2, soakMinutes: 600 },
      { percent: 10, requireApproval: true },
    ];
    const rolloutId = await create(fleet, { phases, approval: { required: false, byOther: false } });
    await runToEnd(fleet, rolloutId);
    advance(31 * 60_000);
    expect(await runToEnd(fleet, rolloutId)).toMatchObject({ phase: 2, waitingFor: "soak" });
    await call(fleet, "POST", `/rollouts/${rolloutId}/promote`, { reason: "it is well" });
    const approving = await runToEnd(fleet, rolloutId);
    advance(-31 * 60_000);
    expect(approving).toMatchObject({ status: "awaiting_approval", phase: 3, counts: { succeeded: 4, pending: 2 } });
  });

  test("that need an approval wait for a person", async () => {
    const fleet = await openFleet(world, 4);
    const rolloutId = await create(fleet, { phases: [{ count: 2 }, { percent: 10, requireApproval: true }], approval: { required: false, byOther: false } });
    const waiting = await runToEnd(fleet, rolloutId);
    expect(waiting).toMatchObject({
      status: "awaiting_approval",
      waitingFor: "approval",
      phase: 2,
      counts: { succeeded: 2 },
      actions: ["approve", "reject", "pause", "abort"],
    });
    await call(fleet, "POST", `/rollouts/${rolloutId}/approve`, { note: "good" });
    expect(await runToEnd(fleet, rolloutId)).toMatchObject({ status: "completed", counts: { succeeded: 4 } });
  });
});

describe("a maintenance window", () => {
  test("is waited for, until a time that is told, and the rollout continues in it", async () => {
    const fleet = await openFleet(world, 3);
    // An hour that is far from now.
    const hour = (new Date().getUTCHours() + 6) % 24;
    const rolloutId = await create(fleet, { maintenanceWindows: [{ cron: `0 ${hour} * * *`, durationMinutes: 60, timezone: "UTC" }] });
    const waiting = await runToEnd(fleet, rolloutId);
    expect(waiting).toMatchObject({ status: "waiting_window", waitingFor: "window", counts: { pending: 3 } });
    expect(new Date(waiting.until).getUTCHours()).toBe(hour);
    const ahead = Date.parse(waiting.until) - Date.now() + 60_000;
    advance(ahead);
    expect(await runToEnd(fleet, rolloutId)).toMatchObject({ status: "completed", counts: { succeeded: 3 } });
    advance(-ahead);
  });
});

const NO_TURNS = `create function no_turns() returns trigger language plpgsql as $$ begin new.last_step_at := 'epoch'; return new; end $$;
  create trigger no_turns before insert or update on many_turns for each row execute function no_turns(); update many_turns set last_step_at = 'epoch'`;

describe("around a rollout", () => {
  const online = async (tenantId: string, deviceId: string): Promise<void> => {
    await world.sql.query("update devices set status = 'online' where device_id = $1", [deviceId]);
    await world.sql.query(
      `insert into outbox_events (event_id, tenant_id, type, subject_id, data, created_at) values ($1, $2, 'device.online', $3, '{}', now())`,
      [newId("evt"), tenantId, deviceId],
    );
    await runJob(world, "outbox.relay");
  };

  test("a device that comes back is due at once, by the event of its return alone", async () => {
    const fleet = await openFleet(world, 2);
    const [away = ""] = fleet.deviceIds;
    await world.sql.query("update devices set status = 'offline' where device_id = $1", [away]);
    const rolloutId = await create(fleet, {});
    await runToEnd(fleet, rolloutId);
    await online(fleet.tenant.tenantId, away);
    const due = await world.sql.query("select step_at <= now() as due from many_work where record_id = $1", [rolloutId]);
    expect(due.rows).toEqual([{ due: true }]);
    // Only what is due by itself is stepped here.
    await runJob(world, "many.step");
    expect((await membersOf(fleet, rolloutId)).find(({ device_id }) => device_id === away)).toMatchObject({ status: "ordered" });
  });

  test("devices that join later get the update by a rollout of their own, as long as it goes well", async () => {
    const fleet = await openFleet(world, 2);
    const rolloutId = await create(fleet, { newDevices: "follow" });
    await runToEnd(fleet, rolloutId);
    const followers = async () =>
      (await call(fleet, "GET", `/rollouts?fleetId=${fleet.fleetId}&sort=createdAt`)).filter(({ followOf }: { followOf: string | null }) => followOf !== null);
    await runJob(world, "rollouts.follow");
    expect(await followers()).toEqual([]);
    for (let failed = 1; failed <= 4; failed += 1) {
      await openFleet(world, 3, { tenant: fleet.tenant, fleetId: fleet.fleetId });
      await runJob(world, "rollouts.follow");
      const made = await followers();
      // After three that failed in a row nobody follows any more.
      expect(made).toHaveLength(Math.min(failed, 3));
      const newest = made.at(-1);
      if (failed === 4) break;
      expect(newest).toMatchObject({ followOf: rolloutId, target: { version: TARGET } });
      // A second run makes no second one while it lives.
      await runJob(world, "rollouts.follow");
      expect(await followers()).toHaveLength(failed);
      expect((await runToEnd(fleet, newest.rolloutId, () => true)).counts).toMatchObject({ failed: 3, total: 3 });
      await call(fleet, "POST", `/rollouts/${newest.rolloutId}/abort`, { reason: "it fails" });
      await step(fleet, 2);
    }
    await runJob(world, "rollouts.follow");
    const told = await world.sql.query("select subject_id from outbox_events where tenant_id = $1 and type = 'rollout.follow_given_up'", [
      fleet.tenant.tenantId,
    ]);
    expect(told.rows).toEqual([{ subject_id: (await followers()).at(-1).rolloutId }]);
  });

  test("what ended 400 days ago is forgotten, its devices first", async () => {
    const fleet = await openFleet(world, 2);
    const old = await create(fleet, {});
    await runToEnd(fleet, old);
    const recent = await create(fleet, {});
    await runToEnd(fleet, recent);
    await world.sql.query("update rollouts set completed_at = now() - interval '401 days' where rollout_id = $1", [old]);
    await runJob(world, "rollouts.forget");
    expect(await membersOf(fleet, old)).toEqual([]);
    expect((await world.call(fleet.owner, "GET", `/v1/rollouts/${old}`)).body.code).toBe("ROLLOUT_NOT_FOUND");
    expect(await read(fleet, recent)).toMatchObject({ status: "completed" });
  });

  test("a fleet says how many live rollouts it has, and how far it is as its policy wants it", async () => {
    const fleet = await openFleet(world, 4);
    const { updatePolicyId } = await call(fleet, "POST", "/fleets/update-policies", { name: "Careful", ...AGENT });
    await call(fleet, "PATCH", `/fleets/${fleet.fleetId}`, { updatePolicyId });
    await world.sql.query("update devices set agent_version = $2 where device_id = $1", [fleet.deviceIds[0], TARGET]);
    const rolloutId = await create(fleet, {});
    expect(await call(fleet, "GET", `/fleets/${fleet.fleetId}`)).toMatchObject({ activeRollouts: 1, updatePolicyId });
    expect((await call(fleet, "GET", `/fleets/${fleet.fleetId}/summary`)).compliance).toEqual({
      updatePolicyId,
      target: TARGET,
      devices: 4,
      have: 1,
      percent: 25,
    });
    await runToEnd(fleet, rolloutId);
    expect(await call(fleet, "GET", `/fleets/${fleet.fleetId}`)).toMatchObject({ activeRollouts: 0 });
    expect((await call(fleet, "GET", `/fleets/${fleet.fleetId}/summary`)).compliance).toMatchObject({ have: 4, percent: 100 });
    expect((await world.call(fleet.owner, "DELETE", `/v1/fleets/update-policies/${updatePolicyId}`)).body.code).toBe("UPDATE_POLICY_IN_USE");
  });

  test("a reason of nothing but spaces is none", async () => {
    const fleet = await openFleet(world, 1);
    const rolloutId = await create(fleet, {});
    for (const action of ["abort", "promote", "pause", "reject"])
      expect((await world.call(fleet.owner, "POST", `/v1/rollouts/${rolloutId}/${action}`, { body: { reason: "   " } })).body.code).toBe("VALIDATION_FAILED");
  });

  test("a tenant's first rules tell of a rollout that stopped by itself, and no longer once it goes on", async () => {
    const fleet = await openFleet(world, 6);
    const rolloutId = await create(fleet, {});
    await runToEnd(fleet, rolloutId, () => true);
    await runJob(world, "alerts.evaluate");
    const alerts = () => call(fleet, "GET", "/alerts");
    expect(await alerts()).toMatchObject([{ type: "rollout.stopped", status: "open", target: { kind: "resource", id: rolloutId } }]);
    await call(fleet, "POST", `/rollouts/${rolloutId}/resume`, { acceptFailures: true });
    await runJob(world, "alerts.evaluate");
    expect(await alerts()).toMatchObject([{ status: "resolved" }]);
    await world.sql.query("update rollouts set waiting_for = 'approval', waiting_since = now() - interval '25 hours' where rollout_id = $1", [rolloutId]);
    await runJob(world, "alerts.evaluate");
    expect((await alerts()).map(({ type, status }: { type: string; status: string }) => [type, status]).toSorted()).toEqual([
      ["rollout.stopped", "resolved"],
      ["rollout.waiting_seconds", "open"],
    ]);
    await call(fleet, "POST", `/rollouts/${rolloutId}/abort`, { reason: "enough" });
    await runJob(world, "alerts.evaluate");
    expect((await alerts()).map(({ status }: { status: string }) => status)).toEqual(["resolved", "resolved"]);
  });

  test("tenants take turns, however many rollouts one has", async () => {
    const fleets = await Promise.all(["", ""].map(() => openFleet(world, 2)));
    const [many, one] = fleets.toSorted((a, b) => (a.tenant.tenantId < b.tenant.tenantId ? -1 : 1));
    if (many === undefined || one === undefined) throw new Error("two tenants");
    const order = async (): Promise<readonly string[]> => {
      for (let made = 0; made < 3; made += 1) await create(await openFleet(world, 1, { tenant: many.tenant }), {});
      await create(await openFleet(world, 1, { tenant: one.tenant }), {});
      await world.sql.query(
        "update many_work set step_at = case when tenant_id = any($1) then now() - interval '1 second' else now() + interval '1 hour' end",
        [[many.tenant.tenantId, one.tenant.tenantId]],
      );
      await runJob(world, "many.step");
      const { rows } = await world.sql.query(
        "select tenant_id from rollouts where tenant_id = any($1) and started_at is not null order by started_at desc limit 4",
        [[many.tenant.tenantId, one.tenant.tenantId]],
      );
      return rows.map(({ tenant_id }) => (tenant_id === one.tenant.tenantId ? "one" : "many")).toReversed();
    };
    expect((await order()).indexOf("one")).toBeLessThanOrEqual(1);
    // Without the memory of the turns the first tenant would have all its steps first.
    await world.sql.query(NO_TURNS);
    try {
      expect(await order()).toEqual(["many", "many", "many", "one"]);
    } finally {
      await world.sql.query("drop function no_turns() cascade");
    }
  });

  test("a step that fails is counted, told of, and taken again", async () => {
    const fleet = await openFleet(world, 1);
    const rolloutId = await create(fleet, {});
    await step(fleet);
    const whole = await world.sql.query("select phases from rollouts where rollout_id = $1", [rolloutId]);
    await world.sql.query("update rollouts set phases = '5' where rollout_id = $1", [rolloutId]);
    await step(fleet);
    const page = await fetch(`http://127.0.0.1:${world.app.internalPort()}/metrics`, { headers: { authorization: `Bearer ${world.app.internalToken}` } });
    expect(/mooring_many_step_failures_total\{kind="rollout"\} ([1-9])/.exec(await page.text())?.[1]).toBe("1");
    const failing = await world.sql.query("select failures, last_error from many_work where record_id = $1", [rolloutId]);
    expect(failing.rows).toEqual([{ failures: 1, last_error: expect.stringContaining("map") }]);
    await world.sql.query("update rollouts set phases = $2 where rollout_id = $1", [rolloutId, JSON.stringify(whole.rows[0].phases)]);
    expect(await runToEnd(fleet, rolloutId)).toMatchObject({ status: "completed", counts: { succeeded: 1 } });
  });
});
