// The engine of steps, with a kind of work that only counts: who steps what and when, and what a failure leaves behind.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import type { Tx } from "../../../server/core/database.ts";
import { newId } from "../../../server/core/ids.ts";
import { eachAlone } from "../../../server/core/many/each-alone.ts";
import { createManyEngine, type ManyEngine } from "../../../server/core/many/engine.ts";
import type { StepFacts, Written } from "../../../server/core/many/types.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { insertRow } from "../../kit/gateway/rows.ts";
import { createTestDatabase } from "../../kit/stores/database.ts";

let db: Db;
beforeAll(async () => {
  db = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 8, log: silentLog });
}, 60_000);
afterAll(() => db.close());

type Step = (tx: Tx, step: StepFacts) => Promise<Written | null>;
const DONE: Written = { next: null, notify: () => undefined };

const engineOf = (kind: string, step: Step, errors: unknown[] = []): ManyEngine => {
  const engine = createManyEngine({ db, clock: systemClock, wakeJob: () => undefined, onError: (error) => void errors.push(error) });
  engine.add({ kind, step });
  return engine;
};

const tenant = async (): Promise<string> => String((await insertRow(db, "tenants"))["tenant_id"]);
const scopeOf = (tenantId: string): StepFacts["scope"] => ({ tenantId }) as StepFacts["scope"];
const begin = (engine: ManyEngine, tenantId: string, { recordId = newId("rlt"), kind = "k", priority = 1 } = {}): Promise<string> =>
  db.tx(async (tx) => {
    await engine.begin(tx, scopeOf(tenantId), { recordId, kind, priority, stepAt: null });
    return recordId;
  });
const workOf = async (recordId: string) =>
  (
    await db.query<{ failures: number; last_error: string | null; wait: number; due: boolean }>(
      "select failures, last_error, extract(epoch from step_at - now())::float8 as wait, step_at <= now() as due from many_work where record_id = $1",
      [recordId],
    )
  )[0];

/** Resolves when somebody opens it. */
const gate = () => {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
};

describe("a step", () => {
  test("of a record never overlaps another of the same record", async () => {
    const [inside, leave] = [gate(), gate()];
    let steps = 0;
    const engine = engineOf("overlap", async () => {
      steps += 1;
      inside.open();
      await leave.opened;
      return DONE;
    });
    const recordId = await begin(engine, await tenant(), { kind: "overlap" });
    const first = engine.stepOnce();
    await inside.opened;
    expect(await engine.stepOnce()).toBe(false);
    leave.open();
    expect(await first).toBe(true);
    expect(steps).toBe(1);
    expect(await workOf(recordId)).toBeUndefined();
  });

  test("waits for whoever holds the record, and the other way round", async () => {
    let steps = 0;
    const engine = engineOf("held", async () => {
      steps += 1;
      return DONE;
    });
    const tenantId = await tenant();
    const recordId = await begin(engine, tenantId, { kind: "held" });
    await db.tx(async (tx) => {
      expect(await engine.hold(tx, scopeOf(tenantId), recordId)).toBe(true);
      expect(await engine.stepOnce()).toBe(false);
    });
    expect(await engine.stepOnce()).toBe(true);
    expect(steps).toBe(1);
    expect(await db.tx((tx) => engine.hold(tx, scopeOf(tenantId), recordId))).toBe(false);
  });

  test("that throws changes nothing, is told, and is taken again later each time", async () => {
    const errors: unknown[] = [];
    const engine = engineOf(
      "throws",
      async (tx, { scope }) => {
        await tx.query("update tenants set name = 'changed' where tenant_id = $1", [scope.tenantId]);
        throw new Error("no luck");
      },
      errors,
    );
    const tenantId = await tenant();
    const recordId = await begin(engine, tenantId, { kind: "throws" });
    for (const [before, seconds] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
      await db.query("update many_work set step_at = now() - interval '1 second' where record_id = $1", [recordId]);
      const [began] = await db.query<{ at: Date }>("select now() as at");
      expect(await engine.stepOnce()).toBe(true);
      const work = await workOf(recordId);
      expect(work).toMatchObject({ failures: before + 1, last_error: "Error: no luck" });
      const [since] = await db.query<{ wait: number }>("select extract(epoch from step_at - $2)::float8 as wait from many_work where record_id = $1", [
        recordId,
        began?.at,
      ]);
      // It failed at some moment between the two, give or take what a clock is set back meanwhile.
      expect(work?.wait).toBeLessThan(seconds + 0.5);
      expect(since?.wait).toBeGreaterThan(seconds - 0.5);
    }
    expect(errors).toHaveLength(8);
    expect(await db.query("select 1 from tenants where tenant_id = $1 and name = 'changed'", [tenantId])).toEqual([]);
    expect((await engine.stuck(10)).map(({ kind, id }) => [kind, id])).toEqual([["many_step_failing", recordId]]);
    await db.query("delete from many_work");
  });

  test("of a suspended tenant waits until the tenant is active again", async () => {
    const engine = engineOf("suspended", async () => DONE);
    const tenantId = await tenant();
    await begin(engine, tenantId, { kind: "suspended" });
    await db.query("update tenants set status = 'suspended' where tenant_id = $1", [tenantId]);
    expect(await engine.stepOnce()).toBe(false);
    await db.query("update tenants set status = 'active' where tenant_id = $1", [tenantId]);
    expect(await engine.stepOnce()).toBe(true);
  });

  test("of work that a newer release wrote, or of an unknown kind, is left to others", async () => {
    const engine = engineOf("newer", async () => DONE);
    const tenantId = await tenant();
    const newer = await begin(engine, tenantId, { kind: "newer" });
    await begin(engine, tenantId, { kind: "unknown" });
    await db.query("update many_work set engine = engine + 1 where record_id = $1", [newer]);
    expect(await engine.stepOnce()).toBe(false);
    await db.query("delete from many_work");
  });
});

describe("tenants", () => {
  test("take turns: a tenant with one job comes second, however many another one has", async () => {
    const order: string[] = [];
    const engine = engineOf("turns", async (_tx, { scope, now }) => {
      order.push(scope.tenantId);
      return { next: now, notify: () => undefined };
    });
    const [many, one] = [await tenant(), await tenant()];
    for (let count = 0; count < 30; count += 1) await begin(engine, many, { kind: "turns" });
    await begin(engine, one, { kind: "turns" });
    for (let count = 0; count < 10; count += 1) await engine.stepOnce();
    expect(order.filter((tenantId) => tenantId === one)).toHaveLength(5);
    await db.query("delete from many_work");
  });

  test("have at most two steps at once, and the next tenant gets the third place", async () => {
    const leave = gate();
    const inside = [gate(), gate(), gate()];
    const stepped: string[] = [];
    const engine = engineOf("places", async (_tx, { scope }) => {
      stepped.push(scope.tenantId);
      inside[stepped.length - 1]?.open();
      await leave.opened;
      return DONE;
    });
    const [busy, other] = [await tenant(), await tenant()];
    for (let count = 0; count < 4; count += 1) await begin(engine, busy, { kind: "places" });
    const running = [engine.stepOnce()];
    await inside[0]?.opened;
    running.push(engine.stepOnce());
    await inside[1]?.opened;
    expect(await engine.stepOnce()).toBe(false);
    await begin(engine, other, { kind: "places" });
    running.push(engine.stepOnce());
    await inside[2]?.opened;
    expect(stepped).toEqual([busy, busy, other]);
    leave.open();
    await Promise.all(running);
    await db.query("delete from many_work");
  });

  test("have their rollouts stepped before their bulk operations", async () => {
    const order: string[] = [];
    const engine = engineOf("priority", async (_tx, { recordId }) => {
      order.push(recordId);
      return DONE;
    });
    const tenantId = await tenant();
    const bulk = await begin(engine, tenantId, { kind: "priority", priority: 2 });
    const rollout = await begin(engine, tenantId, { kind: "priority", priority: 1 });
    while (await engine.stepOnce());
    expect(order).toEqual([rollout, bulk]);
  });
});

describe("waking", () => {
  test("makes work due, but leaves alone what is being stepped unless the waker waits", async () => {
    const engine = engineOf("wake", async () => DONE);
    const tenantId = await tenant();
    const recordId = await begin(engine, tenantId, { kind: "wake" });
    const putOff = () => db.query("update many_work set step_at = now() + interval '1 hour' where record_id = $1", [recordId]);
    await putOff();
    await db.tx(async (tx) => {
      await engine.hold(tx, scopeOf(tenantId), recordId);
      await db.tx((other) => engine.wakeIdle(other, scopeOf(tenantId), [recordId]));
    });
    expect((await workOf(recordId))?.due).toBe(false);
    await db.tx((tx) => engine.wakeIdle(tx, scopeOf(tenantId), [recordId]));
    expect((await workOf(recordId))?.due).toBe(true);
    await putOff();
    await db.tx((tx) => engine.wake(tx, scopeOf(tenantId), recordId));
    expect((await db.tx((tx) => engine.states(tx, scopeOf(tenantId), [recordId]))).get(recordId)).toMatchObject({ failures: 0, lastError: null });
    expect((await workOf(recordId))?.due).toBe(true);
    await db.tx((tx) => engine.end(tx, scopeOf(tenantId), recordId));
    expect(await workOf(recordId)).toBeUndefined();
  });
});

describe("a member that throws", () => {
  const run = (throwing: ReadonlySet<number>, error: () => Error) =>
    db.tx((tx) =>
      eachAlone(
        tx,
        [0, 1, 2, 3, 4, 5, 6],
        async (members) => {
          for (const member of members) {
            await tx.query("insert into feature_flags (key, enabled, updated_by, updated_at) values ($1, true, 'system', now())", [`many-${member}`]);
            if (throwing.has(member)) throw error();
          }
          return members.map((member) => `done ${member}`);
        },
        (member) => `failed ${member}`,
      ),
    );

  test("fails alone, and what it wrote is undone", async () => {
    expect(await run(new Set([2, 5]), () => new Error("no"))).toEqual(["done 0", "done 1", "failed 2", "done 3", "done 4", "failed 5", "done 6"]);
    const rows = await db.query<{ key: string }>("select key from feature_flags where key like 'many-%' order by key");
    expect(rows.map(({ key }) => key)).toEqual(["many-0", "many-1", "many-3", "many-4", "many-6"]);
  });

  test("fails the step if the database is the reason", async () => {
    await db.query("delete from feature_flags where key like 'many-%'");
    await expect(run(new Set([2]), () => Object.assign(new Error("too slow"), { code: "57014" }))).rejects.toThrow("too slow");
    expect(await db.query("select key from feature_flags where key like 'many-%'")).toEqual([]);
  });
});
