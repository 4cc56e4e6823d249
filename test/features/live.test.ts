// The live feed on a real outbox: no gap between what is replayed and what happens, nothing of others, and a bound for the slow.
import { afterAll, beforeAll, expect, test } from "vitest";
import { contract, type LiveEvent, type TenantId } from "../../protocol/index.ts";
import { createTestClock } from "../../server/core/clock.ts";
import { newId } from "../../server/core/ids.ts";
import { createLive } from "../../server/features/live/index.ts";
import type { Db } from "../../server/platform/db.ts";
import { createOutbox } from "../../server/platform/outbox.ts";
import { callAs, openTestDb, scopeOf } from "./commands-kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(async () => {
  await db.close();
});

const setUp = (settings = {}, beforeReplay: () => Promise<void> = async () => undefined) => {
  const gated: Db = {
    ...db,
    query: async (text, values) => {
      if (text.includes("sequence > ")) await beforeReplay();
      return db.query(text, values);
    },
  };
  const live = createLive({ db: gated, clock: createTestClock(), settings });
  const outbox = createOutbox({ db, onError: () => undefined, settings: { wakeAfterMs: 3_600_000 } });
  outbox.subscribe(live.dispatched);
  const happen = async (tenantId: TenantId, ...subjects: string[]) => {
    await outbox.emit(
      db,
      subjects.map((subjectId) => ({ scope: { tenantId }, event: contract.tenants.events.created, subjectId, data: { tenantId, slug: "s" } })),
    );
    while ((await outbox.jobs[0]?.run(new AbortController().signal)) === true);
  };
  const watch = (tenantId: TenantId, input: Parameters<typeof contract.live.operations.watch.input.parse>[0] = {}) => {
    const stop = new AbortController();
    const call = callAs(scopeOf(tenantId), null, stop.signal);
    const stream = live.handlers.watch(call as never, contract.live.operations.watch.input.parse(input))[Symbol.asyncIterator]();
    const next = async (): Promise<LiveEvent | "end"> => {
      const { value, done } = await stream.next();
      return done === true ? "end" : contract.live.operations.watch.output.parse(value);
    };
    return { next, stop };
  };
  const take = async (next: () => Promise<LiveEvent | "end">, count: number) => {
    const subjects: string[] = [];
    for (let index = 0; index < count; index += 1) {
      const event = await next();
      subjects.push(event === "end" ? "end" : event.subjectId);
    }
    return subjects;
  };
  return { live, happen, watch, take };
};

test("a viewer sees its own tenant's events, hints included, and nobody else's", async () => {
  const { live, happen, watch, take } = setUp();
  const [mine, theirs] = [newId("ten"), newId("ten")];
  const { next, stop } = watch(mine);
  const first = next();
  await happen(theirs, "x1");
  await happen(mine, "a1");
  live.hint({ scope: { tenantId: mine }, event: contract.commands.events.changed, subjectId: "h1", data: { deviceId: "dev_1" } });
  await happen(mine, "a2");
  expect([await first, await next()]).toMatchObject([
    { subjectId: "a1", id: expect.stringMatching(/^evt_/) as string },
    { subjectId: "h1", id: null },
  ]);
  expect(await take(next, 1)).toEqual(["a2"]);
  stop.abort();
});

test("what another node dispatched is read when tidings come, whole and in order; nothing is read for nobody", async () => {
  const [here, elsewhere] = [setUp(), setUp()];
  const tenantId = newId("ten");
  expect(here.live.look(tenantId)).toBe(false);
  const { next, stop } = here.watch(tenantId);
  const first = next();
  await here.happen(tenantId, "a1");
  expect(await first).toMatchObject({ subjectId: "a1" });
  await elsewhere.happen(tenantId, "b1", "b2");
  for (let n = 0; n < 10; n += 1) expect(here.live.look(tenantId)).toBe(true);
  expect(await here.take(next, 2)).toEqual(["b1", "b2"]);
  await elsewhere.happen(tenantId, "b3");
  here.live.look(tenantId);
  expect(await here.take(next, 1)).toEqual(["b3"]);
  stop.abort();
});

test("a stream resumes after the last id without a gap and without repeating, while events go on", async () => {
  const { happen, watch, take } = setUp();
  const tenantId = newId("ten");
  const before = watch(tenantId);
  const first = before.next();
  await happen(tenantId, "e1");
  const seen = await first;
  before.stop.abort();
  await happen(tenantId, "e2", "e3");
  const { next } = watch(tenantId, { lastEventId: seen === "end" ? "" : (seen.id ?? "") });
  const second = next();
  await happen(tenantId, "e4", "e5");
  expect(await second).toMatchObject({ subjectId: "e2" });
  await happen(tenantId, "e6");
  expect(await take(next, 4)).toEqual(["e3", "e4", "e5", "e6"]);
});

test("what happens between joining and reading is shown once", async () => {
  const tenantId = newId("ten");
  const { happen, watch, take } = setUp({}, async () => {
    if (!between) {
      between = true;
      await happen(tenantId, "e2");
    }
  });
  let between = false;
  await happen(tenantId, "e1");
  const [first] = await db.query<{ event_id: string }>(`select event_id from outbox_events where tenant_id = $1`, [tenantId]);
  const { next } = watch(tenantId, { lastEventId: first?.event_id ?? "" });
  expect(await take(next, 1)).toEqual(["e2"]);
  await happen(tenantId, "e3");
  expect(await take(next, 1)).toEqual(["e3"]);
});

test("events that no hint told of are shown in their order, before the next one or at the next look", async () => {
  const tenantId = newId("ten");
  const { live, happen, watch, take } = setUp();
  const { next } = watch(tenantId);
  const first = next();
  await happen(tenantId, "e1");
  expect(await first).toMatchObject({ subjectId: "e1" });
  const deaf = setUp();
  await deaf.happen(tenantId, "e2", "e3");
  await happen(tenantId, "e4");
  expect(await take(next, 3)).toEqual(["e2", "e3", "e4"]);
  await deaf.happen(tenantId, "e5");
  await live.jobs[0]?.run(new AbortController().signal);
  expect(await take(next, 1)).toEqual(["e5"]);
});

test("another tenant's id as the last one replays nothing", async () => {
  const { happen, watch } = setUp();
  const [mine, theirs] = [newId("ten"), newId("ten")];
  await happen(theirs, "x1", "x2");
  const [foreign] = await db.query<{ event_id: string }>(`select event_id from outbox_events where subject_id = 'x1' and tenant_id = $1`, [theirs]);
  const { next } = watch(mine, { lastEventId: foreign?.event_id ?? "" });
  const first = next();
  await happen(mine, "a1");
  expect(await first).toMatchObject({ subjectId: "a1" });
});

test("types and device narrow what is seen", async () => {
  const { live, watch, take } = setUp();
  const tenantId = newId("ten");
  const hint = (event: typeof contract.commands.events.changed | typeof contract.commands.events.completed, subjectId: string, deviceId: string) =>
    live.hint({ scope: { tenantId }, event, subjectId, data: { deviceId } });
  const { next } = watch(tenantId, { types: ["command.completed", "device.*"], deviceId: "dev_1" });
  const first = next();
  hint(contract.commands.events.changed, "wrong type", "dev_1");
  hint(contract.commands.events.completed, "wrong device", "dev_2");
  hint(contract.commands.events.completed, "right", "dev_1");
  expect(await first).toMatchObject({ subjectId: "right" });
  live.hint({ scope: { tenantId }, event: contract.devices.events.online, subjectId: "dev_1", data: {} });
  expect(await take(next, 1)).toEqual(["dev_1"]);
});

test("a viewer that is too slow is cut off; an aborted one ends and is forgotten", async () => {
  const { live, watch } = setUp({ bufferedEvents: 2 });
  const tenantId = newId("ten");
  const hint = (subjectId: string) => live.hint({ scope: { tenantId }, event: contract.commands.events.changed, subjectId, data: {} });
  const slow = watch(tenantId);
  const first = slow.next();
  hint("1");
  await first;
  for (const subjectId of ["2", "3", "4", "5"]) hint(subjectId);
  expect([await slow.next(), await slow.next()]).toMatchObject([{ subjectId: "2" }, { subjectId: "3" }]);
  await expect(slow.next()).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE", details: { reason: "slow_consumer" } });
  const { next, stop } = watch(tenantId);
  const waiting = next();
  stop.abort();
  expect(await waiting).toBe("end");
  expect(live.viewers()).toBe(0);
});
