// Rules: the steps of the model over time, what a rule may say, its limits, and what it would have said of the past.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AlertOperator } from "../../../protocol/index.ts";
import { FLAP_CALM_SECONDS, FLAP_CHANGES, judgeValue, step, type TargetState } from "../../../server/features/alerts/model.ts";
import { observeMetric } from "../../../server/features/alerts/store/observe.ts";
import { winnersOf } from "../../kit/gateway/races.ts";
import { EFFORT } from "../../kit/gateway/seed.ts";
import type { Answer } from "../../kit/gateway/world.ts";
import { type AlertsRig, openAlerts } from "./kit.ts";

let rig: AlertsRig;
beforeAll(async () => {
  rig = await openAlerts();
});
afterAll(() => rig.close());

const codeOf = ({ status, body }: Answer) => [status, body?.code ?? null];

describe("the model", () => {
  const SECOND = 1_000;
  const timing = { forSeconds: 30, clearForSeconds: 60 };
  const rule = { operator: "gt", threshold: 90, clearThreshold: 85 } as const;

  test("never fires before the condition held, never clears before it was over, and turns strictly by turns, whatever the values", () => {
    // Runs of values, so that conditions hold for a while.
    const run = fc.tuple(fc.constantFrom(70, 84, 87, 91, 99), fc.integer({ min: 1, max: 12 }));
    const check = (runs: readonly (readonly [number, number])[]): void => {
      let state: TargetState | null = null;
      let [breachedSince, clearedSince]: (number | null)[] = [null, null];
      let isFiring = false;
      for (const [at, value] of runs.flatMap(([each, times]) => Array.from({ length: times }, () => each)).entries()) {
        const now = at * 15 * SECOND;
        const judged = judgeValue(rule, value);
        breachedSince = judged.breached ? (breachedSince ?? now) : null;
        clearedSince = judged.cleared ? (clearedSince ?? now) : null;
        const needed = state?.flapping === true ? FLAP_CALM_SECONDS : timing.clearForSeconds;
        const next = step(state, judged, timing, now);
        if (next.turn === "fires") expect([isFiring, now - (breachedSince ?? now) >= timing.forSeconds * SECOND]).toEqual([false, true]);
        if (next.turn === "clears") expect([isFiring, now - (clearedSince ?? now) >= needed * SECOND]).toEqual([true, true]);
        if (next.turn !== null) isFiring = next.turn === "fires";
        expect(isFiring).toBe(next.state?.phase === "firing" || next.state?.phase === "clearing");
        state = next.state;
      }
    };
    fc.assert(fc.property(fc.array(run, { maxLength: 60 }), check), { numRuns: 200 * EFFORT });
  });

  test("counts a target as flapping after so many changes in an hour, and no longer once it has been calm", () => {
    const at = { forSeconds: 0, clearForSeconds: 0 };
    let state: TargetState | null = null;
    let now = 0;
    const turn = (breached: boolean): TargetState | null => {
      now += 10 * SECOND;
      state = step(state, { breached, cleared: !breached }, at, now).state;
      return state;
    };
    for (let n = 0; n < FLAP_CHANGES; n += 1) expect(turn(n % 2 === 0)?.flapping).toBe(false);
    expect(turn(true)?.flapping).toBe(true);
    expect(turn(false)).toMatchObject({ phase: "clearing", flapping: true });
    now += FLAP_CALM_SECONDS * SECOND;
    expect(turn(false)).toMatchObject({ phase: "calm", flapping: false });
  });

  test("judges as the statement of the evaluation does", async () => {
    const own = await rig.open();
    await own.quiet();
    const devices = await own.devices(5);
    const values = [84, 85, 87, 90, 91];
    for (const [at, device] of devices.entries()) await rig.report([device], { cpu: values[at] });
    for (const operator of ["gt", "gte", "lt", "lte", "eq", "ne"] as const satisfies readonly AlertOperator[]) {
      const clearThreshold = operator.startsWith("g") ? 85 : operator.startsWith("l") ? 95 : 90;
      const { ruleId } = await own.rule({ name: operator, operator, threshold: 90, clearThreshold, scope: { deviceIds: devices } });
      await rig.world.sql.query(
        `insert into alert_states (tenant_id, rule_id, target_id, phase, since, changes_since) select $1, $2, unnest($3::text[]), 'clearing', now() - interval '1 day', now()`,
        [own.tenant.tenantId, ruleId, devices],
      );
      const found = (await rig.db.tx((tx) => observeMetric(tx, "device.cpu", 100))).filter(({ rule_id }) => rule_id === ruleId);
      expect(found.length).toBe(5);
      for (const { value, breached, cleared } of found)
        expect([operator, value, { breached, cleared }]).toEqual([operator, value, judgeValue({ operator, threshold: 90, clearThreshold }, value)]);
    }
  });
});

describe("a rule", () => {
  const base = { name: "r", metric: "device.cpu", threshold: 90 };
  test.each([
    [{ ...base, metric: "device.unknown" }, 400, "VALIDATION_FAILED"],
    [{ ...base, threshold: "90" }, 400, "VALIDATION_FAILED"],
    [{ ...base, threshold: 1e300 }, 400, "VALIDATION_FAILED"],
    [{ ...base, forSeconds: 2 ** 31 }, 400, "VALIDATION_FAILED"],
    [{ ...base, name: "a\u0000b" }, 400, "VALIDATION_FAILED"],
    [{ ...base, clearThreshold: 95 }, 400, "VALIDATION_FAILED"],
    [{ ...base, eventType: "device.offline" }, 400, "VALIDATION_FAILED"],
    [{ ...base, metric: "event" }, 400, "VALIDATION_FAILED"],
    [{ ...base, metric: "event", eventType: "alert.opened" }, 422, "EVENT_TYPE_UNKNOWN"],
    [{ ...base, metric: "event", eventType: "command.queued" }, 422, "EVENT_TYPE_UNKNOWN"],
    [{ ...base, scope: {} }, 400, "VALIDATION_FAILED"],
    [{ ...base, scope: { deviceIds: ["dev_nobody"] } }, 404, "DEVICE_NOT_FOUND"],
    [{ ...base, scope: { fleetIds: ["flt_nobody"] } }, 404, "FLEET_NOT_FOUND"],
    [{ ...base, channelIds: ["chn_nobody"] }, 404, "CHANNEL_NOT_FOUND"],
    [{ ...base, more: 1 }, 400, "VALIDATION_FAILED"],
  ])("that cannot work is refused: %j", async (body, status, code) => {
    const own = await rig.open();
    expect(codeOf(await own.call("POST", "/alert-rules", body))).toEqual([status, code]);
  });

  test("takes no device, fleet or channel of another tenant", async () => {
    const [own, other] = [await rig.open(), await rig.open()];
    const [deviceId = ""] = await other.devices(1);
    const { channelId } = await other.made<{ channelId: string }>("/alert-channels", { type: "email", name: "c", config: { to: ["a@b.example"] } });
    const { ruleId } = await other.rule({});
    expect(codeOf(await own.call("POST", "/alert-rules", { ...base, scope: { deviceIds: [deviceId] } }))).toEqual([404, "DEVICE_NOT_FOUND"]);
    expect(codeOf(await own.call("POST", "/alert-rules", { ...base, channelIds: [channelId] }))).toEqual([404, "CHANNEL_NOT_FOUND"]);
    for (const method of ["GET", "PATCH", "DELETE"])
      expect(codeOf(await own.call(method, `/alert-rules/${ruleId}`, method === "PATCH" ? { name: "n" } : undefined))).toEqual([404, "ALERT_RULE_NOT_FOUND"]);
  });

  test("keeps its margin when its threshold moves, unless told, and refuses a stale version", async () => {
    const own = await rig.open();
    const { ruleId } = await own.rule({});
    const patch = async (body: object) => (await own.call("PATCH", `/alert-rules/${ruleId}`, body)).body;
    expect((await patch({ threshold: 80 })).data).toMatchObject({ threshold: 80, clearThreshold: 75, version: 2 });
    expect((await patch({ clearThreshold: 60 })).data).toMatchObject({ threshold: 80, clearThreshold: 60 });
    expect((await patch({ scope: { tags: ["a"] } })).data.scope).toEqual({ deviceIds: [], tags: ["a"], fleetIds: [] });
    expect((await patch({ scope: null })).data.scope).toBeNull();
    expect((await patch({ name: "x", version: 1 })).code).toBe("VERSION_CONFLICT");
    expect((await patch({ operator: "lt", clearThreshold: 1 })).code).toBe("VALIDATION_FAILED");
  });

  test("of 64 that are made at once at a limit of 5, five exist", async () => {
    const own = await rig.open();
    const { tenantId } = own.tenant;
    await own.rows("delete from alert_rules where tenant_id = $1");
    await rig.world.sql.query(`update tenants set limit_overrides = '{"alertRules": 5}' where tenant_id = $1`, [tenantId]);
    const answers = await Promise.all(Array.from({ length: 64 }, () => own.call("POST", "/alert-rules", base)));
    expect(winnersOf(answers, "PLAN_LIMIT_EXCEEDED")).toBe(5);
    expect((await own.rows("select 1 from alert_rules where tenant_id = $1")).length).toBe(5);
  });
});

describe("a preview", () => {
  test("names the devices for which the rule would have opened alerts, when, and for how long", async () => {
    const own = await rig.open();
    const [hot = "", cool = "", short = ""] = await own.devices(3);
    const write = (deviceId: string, fromMinute: number, untilMinute: number, cpu: number) =>
      rig.world.sql.query(
        `insert into device_metrics (tenant_id, device_id, step_seconds, at, samples, cpu_avg, cpu_max)
         select $1, $2, 60, date_trunc('minute', now()) - make_interval(mins => m), 1, $5, $5 from generate_series($4::int, $3::int) m on conflict do nothing`,
        [own.tenant.tenantId, deviceId, fromMinute, untilMinute, cpu],
      );
    await write(hot, 100, 61, 20);
    await write(hot, 60, 31, 97);
    await write(hot, 30, 1, 20);
    await write(cool, 100, 1, 20);
    await write(short, 60, 58, 97);
    await write(short, 57, 1, 20);
    const tried = async (body: object) =>
      (await own.call("POST", "/alert-rules/preview", { metric: "device.cpu", threshold: 90, hours: 2, ...body })).body.data;
    const found = await tried({ forSeconds: 600, clearForSeconds: 60 });
    expect(found).toMatchObject({ deviceCount: 1, truncated: false, firings: [{ deviceId: hot, value: 97 }] });
    const [{ openedAt, clearedAt }] = found.firings;
    expect((Date.parse(clearedAt) - Date.parse(openedAt)) / 60_000).toBe(21);
    expect((await tried({})).deviceCount).toBe(2);
    expect((await tried({ scope: { deviceIds: [cool] } })).firings).toEqual([]);
    expect(await own.alerts()).toEqual([]);
  });

  test("finds the pauses of silent devices, and none of another tenant's", async () => {
    const [own, other] = [await rig.open(), await rig.open()];
    const [device = ""] = await own.devices(1);
    await rig.world.sql.query(
      `insert into device_metrics (tenant_id, device_id, step_seconds, at, samples) select $1, $2, 60, now() - make_interval(mins => m), 1
         from generate_series(0, 100) m where m not between 20 and 50`,
      [own.tenant.tenantId, device],
    );
    const tried = async (as: typeof own) =>
      (await as.call("POST", "/alert-rules/preview", { metric: "device.offline_seconds", threshold: 600, hours: 3 })).body.data;
    expect(await tried(own)).toMatchObject({ deviceCount: 1, firings: [{ deviceId: device, clearedAt: expect.any(String) }] });
    expect((await tried(other)).firings).toEqual([]);
  });
});
