// Alerts: what opens, groups and ends them, what keeps them quiet, what people do with them, and that evaluating them costs no more with more devices.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { type Answer, asBearer, emailOf } from "../../kit/gateway/world.ts";
import { type AlertsRig, openAlerts } from "./kit.ts";

let rig: AlertsRig;
beforeAll(async () => {
  rig = await openAlerts();
});
afterAll(() => rig.close());

const codeOf = ({ status, body }: Answer) => [status, body?.code ?? null];

test("300 devices that fall silent are one alert and one mail, and it resolves when they return", async () => {
  const own = await rig.open();
  const devices = await own.devices(300);
  await own.made("/alert-channels", { type: "email", name: "On call", config: { to: ["oncall@users.example"] } });
  await rig.evaluate();
  expect(await own.alerts()).toEqual([]);

  await rig.silent(devices.slice(0, 200));
  await rig.evaluate();
  await rig.silent(devices.slice(200));
  await rig.evaluate();
  await rig.evaluate();
  const [alert, ...more] = await own.alerts();
  expect(more).toEqual([]);
  expect(alert).toMatchObject({ status: "open", severity: "critical", type: "device.offline_seconds", targetCount: 300, activeCount: 300, occurrences: 1 });
  expect(alert?.title).toBe("Device offline for 10 minutes: 300 devices");
  const before = rig.smtp.mails.length;
  await own.dueNow();
  await rig.evaluate();
  await rig.evaluate();
  await rig.send();
  const [mail, ...others] = rig.smtp.mails.slice(before);
  expect(others).toEqual([]);
  expect(mail?.to).toEqual(["oncall@users.example"]);
  expect(mail?.raw).toContain("Subject: [critical] Device offline for 10 minutes: 300 devices");

  await rig.report(devices.slice(0, 299), { cpu: 1 });
  await rig.evaluate();
  expect(await own.alerts()).toMatchObject([{ status: "open", targetCount: 300, activeCount: 1 }]);
  await rig.report(devices.slice(299), { cpu: 1 });
  await rig.evaluate();
  expect(await own.alerts()).toMatchObject([{ status: "resolved", activeCount: 0, resolvedBy: "auto" }]);
  await rig.send();
  expect(rig.smtp.mails.length).toBe(before + 1);
  expect(await own.eventTypes()).toEqual(["alert.opened", "alert.resolved"]);
});

describe("a condition", () => {
  test("has to hold as long as the rule says, and the value has to come back to the margin", async () => {
    const own = await rig.open();
    const [device = ""] = await own.devices(1);
    const rule = await own.rule({ forSeconds: 300, clearForSeconds: 60 });
    expect(rule.clearThreshold).toBe(85);
    const at = async (cpu: number, elapsed: number) => {
      await own.elapse(elapsed);
      await rig.report([device], { cpu });
      await rig.evaluate();
      return (await own.alerts()).map(({ status }) => status);
    };
    expect(await at(95, 0)).toEqual([]);
    expect(await at(95, 299)).toEqual([]);
    expect(await at(80, 0)).toEqual([]);
    expect(await at(95, 301)).toEqual([]);
    expect(await at(95, 301)).toEqual(["open"]);
    // Between the threshold and the margin it is neither true nor over.
    expect(await at(87, 61)).toEqual(["open"]);
    expect(await at(84, 61)).toEqual(["open"]);
    expect(await at(87, 61)).toEqual(["open"]);
    expect(await at(84, 0)).toEqual(["open"]);
    expect(await at(84, 61)).toEqual(["resolved"]);
  });

  test("that returns within the cooldown opens the same alert again, and later a new one", async () => {
    const own = await rig.open();
    const [device = ""] = await own.devices(1);
    await own.rule({ cooldownSeconds: 300 });
    const cycle = async (cpu: number) => {
      await rig.report([device], { cpu });
      await rig.evaluate();
    };
    for (const cpu of [95, 10, 95]) await cycle(cpu);
    expect(await own.alerts()).toMatchObject([{ status: "open", occurrences: 2, resolvedAt: null }]);
    await cycle(10);
    await own.rows("update alerts set resolved_at = resolved_at - interval '301 seconds' where tenant_id = $1");
    await cycle(95);
    expect((await own.alerts()).map(({ status, occurrences }) => [status, occurrences])).toEqual([
      ["open", 1],
      ["resolved", 2],
    ]);
  });

  test("of a device that is in maintenance, removed or out of the rule's scope opens nothing, and ends what is open", async () => {
    const own = await rig.open();
    const [one = "", two = "", three = ""] = await own.devices(3);
    await rig.world.sql.query("update devices set tags = '{prod}' where device_id = any($1)", [[one, two]]);
    await rig.world.sql.query(`update devices set maintenance = '{"enabled": true, "until": null}' where device_id = $1`, [two]);
    const { ruleId } = await own.rule({ scope: { tags: ["prod"] } });
    await rig.report([one, two, three], { cpu: 99 });
    await rig.evaluate();
    expect(await own.alerts()).toMatchObject([{ ruleId, targetCount: 1, target: { kind: "device", id: one } }]);
    await own.call("DELETE", `/devices/${one}`);
    await rig.evaluate();
    expect(await own.alerts()).toMatchObject([{ status: "resolved" }]);
  });

  test("of a rule that is turned off or deleted is over", async () => {
    const own = await rig.open();
    const [device = ""] = await own.devices(1);
    const [off, gone] = [await own.rule({ name: "off" }), await own.rule({ name: "gone" })];
    await rig.report([device], { cpu: 99 });
    await rig.evaluate();
    expect((await own.alerts()).map(({ status }) => status)).toEqual(["open", "open"]);
    await own.call("PATCH", `/alert-rules/${off.ruleId}`, { enabled: false });
    await own.call("DELETE", `/alert-rules/${gone.ruleId}`);
    await rig.evaluate();
    expect((await own.alerts()).map(({ status }) => status)).toEqual(["resolved", "resolved"]);
  });

  test("of a selector that follows a dynamic fleet holds for the fleet's devices", async () => {
    const own = await rig.open();
    const [one = "", two = ""] = await own.devices(2);
    await rig.world.sql.query("update devices set platform = 'linux' where device_id = $1", [one]);
    const { fleetId } = await own.made<{ fleetId: string }>("/fleets", { name: "f", selector: { platform: "linux" } });
    await own.rule({ scope: { fleetIds: [fleetId] } });
    await rig.report([one, two], { cpu: 99 });
    await rig.evaluate();
    expect(await own.alerts()).toMatchObject([{ targetCount: 1, target: { id: one } }]);
  });
});

test("a device that comes and goes pages once, stays open as flapping, and resolves after a calm while", async () => {
  const own = await rig.open();
  const [device = ""] = await own.devices(1);
  await own.rule({ cooldownSeconds: 600 });
  await own.made("/alert-channels", { type: "slack", name: "s", config: { url: "https://hooks.slack.com/services/flap" }, sendResolved: false });
  const count = async () => (await own.rows("select 1 from alert_notifications where tenant_id = $1")).length;
  const cycle = async (cpu: number) => {
    await rig.report([device], { cpu });
    await rig.evaluate();
  };
  await cycle(99);
  await own.dueNow();
  await rig.evaluate();
  expect(await count()).toBe(1);
  for (const cpu of [10, 99, 10, 99, 10, 99, 10, 99]) await cycle(cpu);
  expect(await own.alerts()).toMatchObject([{ status: "open", flapping: true }]);
  await own.dueNow();
  await rig.evaluate();
  expect(await count()).toBe(1);
  await cycle(10);
  expect(await own.alerts()).toMatchObject([{ status: "open", flapping: true }]);
  await own.elapse(901);
  await cycle(10);
  expect(await own.alerts()).toMatchObject([{ status: "resolved", flapping: false }]);
});

const endCommands = async (tenantId: string, status: string): Promise<void> => {
  await rig.world.sql.query("update commands set status = $2, finished_at = now() where tenant_id = $1 and finished_at is null", [tenantId, status]);
  await rig.world.sql.query("delete from command_queue where tenant_id = $1", [tenantId]);
};

describe("a metric", () => {
  test("of the queue counts a device's open commands", async () => {
    const own = await rig.open();
    const [device = ""] = await own.devices(1);
    await own.rule({ metric: "command.queue_depth", operator: "gte", threshold: 2 });
    await own.made(`/devices/${device}/commands`, { type: "ping" });
    await rig.evaluate();
    expect(await own.alerts()).toEqual([]);
    await own.made(`/devices/${device}/commands`, { type: "ping" });
    await rig.evaluate();
    expect(await own.alerts()).toMatchObject([{ type: "command.queue_depth", value: 2 }]);
    await endCommands(own.tenant.tenantId, "canceled");
    await rig.evaluate();
    expect(await own.alerts()).toMatchObject([{ status: "resolved" }]);
  });

  test("of failures counts what ended within the window, once enough has", async () => {
    const own = await rig.open();
    const [device = ""] = await own.devices(1);
    await own.rule({ metric: "command.failure_rate", threshold: 50, windowSeconds: 600 });
    const end = async (count: number, status: string) => {
      for (let n = 0; n < count; n += 1) await own.made(`/devices/${device}/commands`, { type: "ping" });
      await endCommands(own.tenant.tenantId, status);
      await rig.evaluate();
    };
    await end(4, "failed");
    expect(await own.alerts()).toEqual([]);
    await end(1, "succeeded");
    expect(await own.alerts()).toMatchObject([{ value: 80, status: "open" }]);
    await own.rows("update commands set finished_at = now() - interval '601 seconds' where tenant_id = $1");
    await rig.evaluate();
    expect(await own.alerts()).toMatchObject([{ status: "resolved" }]);
  });
});

describe("an alert", () => {
  const opened = async () => {
    const own = await rig.open();
    const [device = ""] = await own.devices(1);
    await own.rule({});
    await rig.report([device], { cpu: 99 });
    await rig.evaluate();
    const [alert] = await own.alerts();
    return {
      own,
      device,
      alertId: alert?.alertId ?? "",
      act: (what: string, body: object = {}) => own.call("POST", `/alerts/${alert?.alertId}/${what}`, body),
    };
  };

  test("is acknowledged and resolved by people, with notes and events, and not twice", async () => {
    const { own, act, alertId } = await opened();
    expect((await act("acknowledge", { note: "mine" })).body.data).toMatchObject({
      status: "acknowledged",
      note: "mine",
      acknowledgedBy: `user:${own.tenant.ownerId}`,
    });
    expect((await act("acknowledge", { note: "still mine" })).body.data).toMatchObject({ status: "acknowledged", note: "still mine" });
    expect((await own.call("GET", "/alerts/summary")).body.data).toEqual({ open: { info: 0, warning: 0, critical: 0 }, acknowledged: 1 });
    expect((await act("resolve")).body.data).toMatchObject({ status: "resolved", resolvedBy: `user:${own.tenant.ownerId}` });
    for (const what of ["acknowledge", "resolve"]) expect(codeOf(await act(what))).toEqual([409, "ALERT_ALREADY_RESOLVED"]);
    expect(codeOf(await act("snooze", { until: new Date(Date.now() + 60_000).toISOString() }))).toEqual([409, "ALERT_ALREADY_RESOLVED"]);
    expect(await own.eventTypes()).toEqual(["alert.opened", "alert.acknowledged", "alert.resolved"]);
    // It is still true, and says so only after it was over.
    await rig.evaluate();
    expect((await own.alerts()).map(({ alertId: id, status }) => [id, status])).toEqual([[alertId, "resolved"]]);
  });

  test("is snoozed for a time, and told of again when that is over", async () => {
    const { own, act } = await opened();
    await own.made("/alert-channels", { type: "slack", name: "s", config: { url: "https://hooks.slack.com/services/snooze" } });
    const queued = async () => (await own.rows("select 1 from alert_notifications where tenant_id = $1")).length;
    const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();
    expect(codeOf(await act("snooze", { until: inMs(31 * 86_400_000) }))).toEqual([400, "VALIDATION_FAILED"]);
    await act("snooze", { until: inMs(3_600_000) });
    await rig.evaluate();
    expect(await queued()).toBe(0);
    expect((await act("snooze", { until: inMs(-1_000) })).body.data.snoozedUntil).toBeNull();
    await act("snooze", { until: inMs(3_600_000) });
    await own.rows("update alerts set snoozed_until = now() - interval '1 second', notify_at = now() - interval '1 second' where tenant_id = $1");
    await rig.evaluate();
    expect(await queued()).toBe(1);
  });

  test("is resolved once by 64 who try at the same time", async () => {
    const { own, act } = await opened();
    const answers = await Promise.all(Array.from({ length: 64 }, () => act("resolve")));
    expect(answers.filter(({ status }) => status === 200).length).toBe(1);
    expect(answers.filter(({ body }) => body.code === "ALERT_ALREADY_RESOLVED").length).toBe(63);
    expect((await own.eventTypes()).filter((type) => type === "alert.resolved").length).toBe(1);
  });

  test("of another tenant does not exist", async () => {
    const { alertId } = await opened();
    const other = await rig.open();
    for (const [method, path] of [
      ["GET", ""],
      ["GET", "/targets"],
      ["POST", "/acknowledge"],
      ["POST", "/resolve"],
    ] as const)
      expect(codeOf(await other.call(method, `/alerts/${alertId}${path}`, method === "GET" ? undefined : {}))).toEqual([404, "ALERT_NOT_FOUND"]);
    expect(await other.alerts()).toEqual([]);
  });
});

describe("a member who is limited to some devices", () => {
  test("sees the alerts about these alone, counts no other device, and acts on no alert that has others", async () => {
    const own = await rig.open();
    const [mine = "", hidden = "", other = ""] = await own.devices(3);
    await rig.world.sql.query("update devices set tags = '{mine}' where device_id = $1", [mine]);
    await own.rule({ name: "shared" });
    await rig.report([mine, hidden], { cpu: 99 });
    await rig.evaluate();
    await own.rule({ name: "other", metric: "device.disk" });
    await rig.report([other], { disk: 99 });
    await rig.evaluate();
    expect((await own.alerts()).length).toBe(2);
    const userId = newId("usr");
    await rig.world.sql.query("insert into memberships (member_id, tenant_id, user_id, role, selector) values ($1, $2, $3, 'operator', $4)", [
      newId("mem"),
      own.tenant.tenantId,
      userId,
      { deviceIds: [], tags: ["mine"], fleetIds: [] },
    ]);
    const limited = asBearer((await rig.world.app.mint({ userId, email: emailOf(userId), tenantId: own.tenant.tenantId, ttlSeconds: 600 })).token);
    const [alert, ...more] = await own.alerts("", limited);
    expect(more).toEqual([]);
    expect(alert).toMatchObject({ targetCount: 1, activeCount: 1 });
    expect(JSON.stringify(alert)).not.toContain(hidden);
    const path = `/alerts/${alert?.alertId}`;
    expect((await own.call("GET", `${path}/targets`, undefined, limited)).body.data).toMatchObject([{ id: mine }]);
    expect((await own.call("GET", "/alerts/summary", undefined, limited)).body.data.open.warning).toBe(1);
    expect((await own.call("POST", `${path}/resolve`, {}, limited)).body).toMatchObject({ code: "FORBIDDEN", details: { reason: "limited_access" } });
    expect((await own.alerts(`?deviceId=${hidden}`, limited)).length).toBe(0);
    const [others] = (await own.alerts()).filter(({ title }) => title.startsWith("other") || title.startsWith("Disk"));
    expect(codeOf(await own.call("GET", `/alerts/${others?.alertId}`, undefined, limited))).toEqual([404, "ALERT_NOT_FOUND"]);
  });
});

test("the evaluation's number of statements does not grow with devices or rules, and two nodes never evaluate at once", async () => {
  const own = await rig.open();
  const [first = ""] = await own.devices(1);
  await own.rule({});
  let statements = 0;
  const counting = new Proxy(rig.db, {
    get: (db, name) => {
      if (name !== "tx") return Reflect.get(db, name);
      return (run: (tx: object) => Promise<unknown>) =>
        rig.db.tx((tx) =>
          run(
            new Proxy(tx, {
              get: (inner, key) => {
                const value = Reflect.get(inner, key);
                if (key !== "query" && key !== "system") return value;
                statements += 1;
                return typeof value === "function" ? value.bind(inner) : value;
              },
            }),
          ),
        );
    },
  });
  const { createEvaluation } = await import("../../../server/features/alerts/evaluate.ts");
  const evaluation = createEvaluation({ db: counting, emit: async () => undefined, portalUrl: () => "https://portal.example" });
  const cost = async (deviceIds: readonly string[]) => {
    await rig.report(deviceIds, { cpu: 99 });
    statements = 0;
    await evaluation.run();
    return statements;
  };
  const few = await cost([first]);
  const many = await own.devices(150);
  for (let n = 0; n < 10; n += 1) await own.rule({ name: `rule ${n}`, threshold: 50 + n });
  expect(await cost(many)).toBeLessThanOrEqual(few + 1);
  expect(few).toBeLessThan(40);

  await own.rule({ name: "all at once", metric: "device.memory", threshold: 50 });
  await rig.report(many, { memory: 99 });
  const before = (await own.eventTypes()).length;
  await Promise.all(Array.from({ length: 4 }, () => rig.evaluation.run()));
  expect((await own.eventTypes()).slice(before).filter((type) => type === "alert.opened").length).toBe(1);
  expect((await own.alerts("?status=open")).filter(({ type }) => type === "device.memory")).toMatchObject([{ targetCount: 150, activeCount: 150 }]);
});

test("each tenant begins with rules for silent devices, full disks, old backups and rollouts that stand still, once", async () => {
  const own = await rig.open();
  const list = async () => (await own.call("GET", "/alert-rules?sort=name")).body.data;
  expect((await list()).map(({ metric, threshold, createdBy }: Record<string, unknown>) => [metric, threshold, createdBy])).toEqual([
    ["device.offline_seconds", 600, "system"],
    ["device.disk", 90, "system"],
    ["backup.age_hours", 26, "system"],
    ["rollout.stopped", 0, "system"],
    ["rollout.waiting_seconds", 86_400, "system"],
  ]);
  for (const { ruleId } of await list()) await own.call("DELETE", `/alert-rules/${ruleId}`);
  await rig.evaluate();
  expect(await list()).toEqual([]);
});

test("a rule that a tenant has before its first rules come stays the only one of its name", async () => {
  const tenant = await rig.world.tenant();
  const owner = await tenant.user("owner");
  const mine = { name: "Disk almost full", metric: "device.disk", threshold: 50 };
  const { ruleId } = (await rig.world.call(owner, "POST", "/v1/alert-rules", { body: mine })).body.data;
  await rig.evaluate();
  const { data } = (await rig.world.call(owner, "GET", "/v1/alert-rules")).body;
  expect(data).toHaveLength(5);
  expect(data.filter(({ name }: { name: string }) => name === mine.name)).toMatchObject([{ ruleId, threshold: 50 }]);
});
