// The live feed on a real outbox: no gap between replay and present, no events of other tenants, and a bound for slow viewers.
import { afterAll, beforeAll, expect, test } from "vitest";
import { contract, type DeviceId, type LiveEvent, type TenantId } from "../../../protocol/index.ts";
import { createAccess, isLimited } from "../../../server/core/access.ts";
import { createTestClock } from "../../../server/core/clock.ts";
import { happened } from "../../../server/core/events.ts";
import { newId } from "../../../server/core/ids.ts";
import { createLive } from "../../../server/features/live/index.ts";
import type { Db } from "../../../server/platform/database/db.ts";
import { createOutbox } from "../../../server/platform/outbox/outbox.ts";
import { userOf } from "../../kit/gateway/call.ts";
import { callAs, openTestDb, scopeOf } from "../commands/kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(async () => {
  await db.close();
});

type Seen = Awaited<ReturnType<NonNullable<Parameters<typeof createLive>[0]["readSeen"]>>>[number]["seen"];

const setUp = (settings = {}, beforeReplay: () => Promise<void> = async () => undefined, afterPosition: () => Promise<void> = async () => undefined) => {
  const gated: Db = {
    ...db,
    query: async (text, values) => {
      if (text.includes("sequence > ")) await beforeReplay();
      const rows = await db.query(text, values);
      if (text.includes("order by sequence desc")) await afterPosition();
      return rows as never;
    },
  };
  const presence = new Map<string, Seen>();
  const reads: number[] = [];
  const counts: string[] = [];
  const open = new Set<string>();
  const live = createLive({
    db: gated,
    clock: createTestClock(),
    isShown: async (_scope, deviceId) => !deviceId.includes("hidden"),
    readSeen: async (devices) => {
      reads.push(devices.length);
      return devices.flatMap(({ tenantId, deviceId }) => {
        const seen = presence.get(`${tenantId} ${deviceId}`);
        return seen === undefined ? [] : [{ tenantId: tenantId as TenantId, seen }];
      });
    },
    countOpenAlerts: async ({ tenantId, principal }) => {
      counts.push(tenantId);
      return isLimited({ principal: principal ?? null }) ? 1 : open.size;
    },
    deviceNames: async ({ deviceId }) => `name of ${deviceId}`,
    settings,
  });
  const outbox = createOutbox({ db, onError: () => undefined, settings: { wakeAfterMs: 3_600_000 } });
  outbox.subscribe(live.dispatched);
  const happen = async (tenantId: TenantId, ...subjects: string[]) => {
    await outbox.emit(
      db,
      subjects.map((subjectId) => happened({ tenantId }, contract.tenants.events.created, subjectId, { tenantId, slug: "s" })),
    );
    while ((await outbox.jobs[0]?.run(new AbortController().signal)) === true);
  };
  /** Opens a stream and waits for its first event, which says where the stream begins. */
  const watch = async (tenantId: TenantId, input: Parameters<typeof contract.live.operations.watch.input.parse>[0] = {}, scope = scopeOf(tenantId)) => {
    const stop = new AbortController();
    const call = callAs(scope, null, stop.signal);
    const stream = live.handlers.watch(call as never, contract.live.operations.watch.input.parse(input))[Symbol.asyncIterator]();
    const next = async (): Promise<LiveEvent | "end"> => {
      const { value, done } = await stream.next();
      return done === true ? "end" : contract.live.operations.watch.output.parse(value);
    };
    return { next, stop, beginning: await next(), close: () => stream.return?.() };
  };
  const take = async (next: () => Promise<LiveEvent | "end">, count: number) => {
    const subjects: string[] = [];
    for (let index = 0; index < count; index += 1) {
      const event = await next();
      subjects.push(event === "end" ? "end" : event.subjectId);
    }
    return subjects;
  };
  const hear = (tenantId: TenantId, deviceId: DeviceId, second: number) => {
    const lastSeen = new Date(1_000 * second).toISOString();
    const state = { deviceId, status: "online", connectivity: "realtime", lastSeen, lastHeartbeatAt: lastSeen } as const;
    presence.set(`${tenantId} ${deviceId}`, { ...state, metrics: { cpu: second, memory: null, disk: null } });
  };
  const tick = async () => void (await live.jobs.find(({ name }) => name === "live.seen")?.run(new AbortController().signal));
  return { live, happen, watch, take, hear, tick, reads, counts, open };
};

/** The id of the tenant's event about that subject. */
const idOf = async (tenantId: TenantId, subjectId: string): Promise<string> => {
  const [row] = await db.query<{ event_id: string }>("select event_id from outbox_events where tenant_id = $1 and subject_id = $2", [tenantId, subjectId]);
  if (row === undefined) throw new Error(`nothing has happened with ${subjectId}`);
  return row.event_id;
};

test("a viewer sees the events and hints of its own tenant and of no other", async () => {
  const { live, happen, watch, take } = setUp();
  const [mine, theirs] = [newId("ten"), newId("ten")];
  const { next, stop } = await watch(mine);
  await happen(theirs, "x1");
  await happen(mine, "a1");
  live.hint({ scope: { tenantId: mine }, event: contract.commands.events.changed, subjectId: "h1", data: { deviceId: "dev_1" } } as never);
  await happen(mine, "a2");
  expect([await next(), await next()]).toMatchObject([
    { subjectId: "a1", id: expect.stringMatching(/^evt_/) as string },
    { subjectId: "h1", id: null },
  ]);
  expect(await take(next, 1)).toEqual(["a2"]);
  stop.abort();
});

test("a change notice brings another node's events to the viewers, whole and in order, and reads nothing for a tenant without viewers", async () => {
  const [here, elsewhere] = [setUp(), setUp()];
  const tenantId = newId("ten");
  expect(here.live.recheck(tenantId)).toBe(false);
  const { next, stop } = await here.watch(tenantId);
  await here.happen(tenantId, "a1");
  expect(await next()).toMatchObject({ subjectId: "a1" });
  await elsewhere.happen(tenantId, "b1", "b2");
  for (let n = 0; n < 10; n += 1) expect(here.live.recheck(tenantId)).toBe(true);
  expect(await here.take(next, 2)).toEqual(["b1", "b2"]);
  await elsewhere.happen(tenantId, "b3");
  here.live.recheck(tenantId);
  expect(await here.take(next, 1)).toEqual(["b3"]);
  stop.abort();
});

test("a stream resumes after the last id without a gap or a repeat while events go on", async () => {
  const { happen, watch, take } = setUp();
  const tenantId = newId("ten");
  const before = await watch(tenantId);
  await happen(tenantId, "e1");
  const seen = await before.next();
  before.stop.abort();
  await happen(tenantId, "e2", "e3");
  const lastEventId = seen === "end" ? "" : (seen.id ?? "");
  const { next, beginning } = await watch(tenantId, { lastEventId });
  expect(beginning).toMatchObject({ type: "stream.position", id: lastEventId });
  await happen(tenantId, "e4", "e5");
  expect(await take(next, 1)).toEqual(["e2"]);
  await happen(tenantId, "e6");
  expect(await take(next, 4)).toEqual(["e3", "e4", "e5", "e6"]);
});

test("an event between the subscription and the replay is shown once", async () => {
  const tenantId = newId("ten");
  const { happen, watch, take } = setUp({}, async () => {
    if (!between) {
      between = true;
      await happen(tenantId, "e2");
    }
  });
  let between = false;
  await happen(tenantId, "e1");
  const { next } = await watch(tenantId, { lastEventId: await idOf(tenantId, "e1") });
  expect(await take(next, 1)).toEqual(["e2"]);
  await happen(tenantId, "e3");
  expect(await take(next, 1)).toEqual(["e3"]);
});

test("events whose hint was lost are shown in order, before the next event or at the next sweep", async () => {
  const tenantId = newId("ten");
  const { live, happen, watch, take } = setUp();
  const { next } = await watch(tenantId);
  await happen(tenantId, "e1");
  expect(await take(next, 1)).toEqual(["e1"]);
  const deaf = setUp();
  await deaf.happen(tenantId, "e2", "e3");
  await happen(tenantId, "e4");
  expect(await take(next, 3)).toEqual(["e2", "e3", "e4"]);
  await deaf.happen(tenantId, "e5");
  await live.jobs[0]?.run(new AbortController().signal);
  expect(await take(next, 1)).toEqual(["e5"]);
});

test("a viewer that was cut off before its first event misses none", async () => {
  const { happen, watch, take } = setUp();
  const tenantId = newId("ten");
  for (const before of [[], ["e1"]]) {
    if (before.length > 0) await happen(tenantId, ...before);
    const cut = await watch(tenantId);
    expect(cut.beginning).toMatchObject({ type: "stream.position", subjectId: tenantId });
    cut.stop.abort();
    await happen(tenantId, `missed after ${before.length}`);
    const again = await watch(tenantId, { lastEventId: cut.beginning === "end" ? "" : cut.beginning.id });
    expect(await take(again.next, 1)).toEqual([`missed after ${before.length}`]);
    again.stop.abort();
  }
});

test("a stream from an id that the tenant does not have begins with a gap and goes on at present", async () => {
  const { happen, watch, take } = setUp();
  const theirs = newId("ten");
  await happen(theirs, "x1", "x2");
  for (const lastEventId of [await idOf(theirs, "x1"), "evt_that_aged_out", "7"]) {
    const tenantId = newId("ten");
    await happen(tenantId, "a1");
    const { next, beginning } = await watch(tenantId, { lastEventId });
    expect(beginning).toMatchObject({ type: "stream.gap", id: await idOf(tenantId, "a1"), data: { reason: "unknown_position", missed: null } });
    await happen(tenantId, "a2");
    expect(await take(next, 1)).toEqual(["a2"]);
  }
});

test("a viewer that missed more events than a stream replays learns how many and goes on at present", async () => {
  const { happen, watch, take } = setUp({ replayedEvents: 3 });
  const tenantId = newId("ten");
  await happen(tenantId, "e1", "e2", "e3", "e4", "e5");
  const all = await watch(tenantId, { lastEventId: await idOf(tenantId, "e2") });
  expect(await take(all.next, 3)).toEqual(["e3", "e4", "e5"]);
  const { next, beginning } = await watch(tenantId, { lastEventId: await idOf(tenantId, "e1") });
  expect(beginning).toMatchObject({ type: "stream.gap", id: await idOf(tenantId, "e5"), data: { reason: "too_many", missed: 4 } });
  await happen(tenantId, "e6");
  expect(await take(next, 1)).toEqual(["e6"]);
});

test("a gap stands where missed events have been deleted, and again for a viewer that resumes before it", async () => {
  const { happen, watch } = setUp();
  const tenantId = newId("ten");
  await happen(tenantId, "e1", "e2", "e3", "e4");
  await db.query("delete from outbox_events where tenant_id = $1 and subject_id in ('e2', 'e3')", [tenantId]);
  for (let round = 0; round < 2; round += 1) {
    const { next } = await watch(tenantId, { lastEventId: await idOf(tenantId, "e1") });
    expect(await next()).toMatchObject({ type: "stream.gap", id: null, data: { reason: "expired", missed: 2 } });
    expect(await next()).toMatchObject({ subjectId: "e4" });
  }
});

test("a filter that hides every event still moves the position on", async () => {
  const { happen, watch, take } = setUp({ hiddenEvents: 2, replayedEvents: 3 });
  const tenantId = newId("ten");
  const narrow = { types: ["device.online"] };
  const { next, stop, beginning } = await watch(tenantId, narrow);
  await happen(tenantId, "e1", "e2", "e3", "e4", "e5");
  expect([await next(), await next()]).toMatchObject([
    { type: "stream.position", id: await idOf(tenantId, "e2") },
    { type: "stream.position", id: await idOf(tenantId, "e4") },
  ]);
  stop.abort();
  // The replay moves it on too: five hidden events are too many at once, three are not.
  const again = await watch(tenantId, { ...narrow, lastEventId: await idOf(tenantId, "e2") });
  expect(await again.next()).toMatchObject({ type: "stream.position", id: await idOf(tenantId, "e4") });
  const far = await watch(tenantId, { lastEventId: beginning === "end" ? "" : beginning.id });
  expect(far.beginning).toMatchObject({ type: "stream.gap" });
  expect(await take(far.next, 0)).toEqual([]);
});

test("the first stream of a tenant misses no event after its beginning", async () => {
  const tenantId = newId("ten");
  const elsewhere = setUp();
  await elsewhere.happen(tenantId, "e1");
  const slow = setUp({}, undefined, async () => {
    // Both happen while the position is being read; this node hears only of the second.
    count += 1;
    await elsewhere.happen(tenantId, `unheard ${count}`);
    await slow.happen(tenantId, `heard ${count}`);
  });
  let count = 0;
  const { next, beginning } = await slow.watch(tenantId);
  await slow.happen(tenantId, "last");
  const due = await db.query<{ subject_id: string }>(
    `select subject_id from outbox_events where tenant_id = $1 and position > (select position from outbox_events where event_id = $2) order by position`,
    [tenantId, beginning === "end" ? "" : beginning.id],
  );
  expect(await slow.take(next, due.length)).toEqual(due.map(({ subject_id }) => subject_id));
});

test("streams are limited per credential and per tenant, and a stream that ends frees its place", async () => {
  const { watch } = setUp({ streamsPerTenant: 3, streamsPerCredential: 2 });
  const tenantId = newId("ten");
  const as = (userId: string, within = tenantId) => ({ ...scopeOf(within), principal: userOf(userId, null, "owner") });
  const refusal = (per: string, limit: number) => ({ code: "STREAM_LIMIT_REACHED", retryAfter: 30, details: { per, limit } });
  const [first, second] = [await watch(tenantId, {}, as("anna")), await watch(tenantId, {}, as("anna"))];
  await expect(watch(tenantId, {}, as("anna"))).rejects.toMatchObject(refusal("credential", 2));
  await watch(tenantId, {}, as("ben"));
  await expect(watch(tenantId, {}, as("carla"))).rejects.toMatchObject(refusal("tenant", 3));
  const other = newId("ten");
  await watch(other, {}, as("anna", other));

  first.stop.abort();
  expect(await first.next()).toBe("end");
  await watch(tenantId, {}, as("carla"));
  // The reader ends this one.
  await second.close();
  await watch(tenantId, {}, as("anna"));
});

test("a filter of types and device hides every other event", async () => {
  const { live, watch, take } = setUp();
  const tenantId = newId("ten");
  const hint = (event: typeof contract.commands.events.changed | typeof contract.commands.events.completed, subjectId: string, deviceId: string) =>
    live.hint({ scope: { tenantId }, event, subjectId, data: { deviceId } } as never);
  const { next } = await watch(tenantId, { types: ["command.completed", "device.*"], deviceId: "dev_1" });
  hint(contract.commands.events.changed, "wrong type", "dev_1");
  hint(contract.commands.events.completed, "wrong device", "dev_2");
  hint(contract.commands.events.completed, "right", "dev_1");
  expect(await next()).toMatchObject({ subjectId: "right" });
  live.hint({ scope: { tenantId }, event: contract.devices.events.online, subjectId: "dev_1", data: {} } as never);
  expect(await take(next, 1)).toEqual(["dev_1"]);
});

test("a filter of devices and commands shows the events of either, and a terminal sample hides their steps", async () => {
  const { live, watch } = setUp();
  const tenantId = newId("ten");
  const { changed, completed } = contract.commands.events;
  const hint = (event: typeof changed | typeof completed, subjectId: string, deviceId: string) =>
    live.hint({ scope: { tenantId }, event, subjectId, data: { deviceId } } as never);
  const { next } = await watch(tenantId, { deviceIds: ["dev_1", "dev_2"], deviceId: "dev_3", commandIds: ["cmd_4"], sample: "terminal" });
  hint(completed, "cmd_1", "dev_5");
  hint(changed, "cmd_4", "dev_5");
  for (const deviceId of ["dev_1", "dev_2", "dev_3"]) hint(completed, "cmd_1", deviceId);
  hint(completed, "cmd_4", "dev_5");
  const seen = [await next(), await next(), await next(), await next()];
  expect(seen.map((event) => (event === "end" ? event : event.data["deviceId"]))).toEqual(["dev_1", "dev_2", "dev_3", "dev_5"]);
});

test("an event of a device or a command carries the device's name, others do not", async () => {
  const { live, watch, happen } = setUp();
  const tenantId = newId("ten");
  const { next } = await watch(tenantId);
  live.hint({ scope: { tenantId }, event: contract.commands.events.changed, subjectId: "cmd_1", data: { deviceId: "dev_1" } } as never);
  expect(await next()).toMatchObject({ data: { deviceId: "dev_1", deviceName: "name of dev_1" } });
  live.hint({ scope: { tenantId }, event: contract.devices.events.online, subjectId: "dev_2", data: {} } as never);
  expect(await next()).toMatchObject({ data: { deviceName: "name of dev_2" } });
  await happen(tenantId, "tenant");
  expect(await next()).not.toMatchObject({ data: { deviceName: expect.anything() } });
});

test("a viewer that reads too slowly is cut off, and an aborted one ends and is forgotten", async () => {
  const { live, watch } = setUp({ bufferedEvents: 2 });
  const tenantId = newId("ten");
  const hint = (subjectId: string) => live.hint({ scope: { tenantId }, event: contract.commands.events.changed, subjectId, data: {} } as never);
  const slow = await watch(tenantId);
  hint("1");
  await slow.next();
  for (const subjectId of ["2", "3", "4", "5"]) hint(subjectId);
  expect([await slow.next(), await slow.next()]).toMatchObject([{ subjectId: "2" }, { subjectId: "3" }]);
  await expect(slow.next()).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE", details: { reason: "slow_consumer" } });
  const { next, stop } = await watch(tenantId);
  const waiting = next();
  stop.abort();
  expect(await waiting).toBe("end");
  expect(live.viewers()).toBe(0);
});

test("a viewer learns when the devices that it names are heard, once per change, and nobody else does", async () => {
  const { happen, watch, hear, tick, reads } = setUp();
  const [mine, theirs] = [newId("ten"), newId("ten")];
  const [a, b] = [newId("dev"), newId("dev")];
  for (const tenantId of [mine, theirs]) for (const deviceId of [a, b]) hear(tenantId, deviceId, 1);
  await tick();
  expect(reads, "nobody watches").toEqual([]);
  const named = await watch(mine, { seen: [a, "dev_unknown"], types: ["api_key.*"], deviceIds: [b] });
  const other = await watch(mine);
  await tick();
  await tick();
  hear(mine, a, 7);
  hear(mine, b, 7);
  await tick();
  await happen(mine, "end");
  const seen = (second: number) => ({
    ...{ type: "device.seen", subjectId: a, id: null, version: null },
    data: { deviceId: a, deviceName: `name of ${a}`, lastSeen: new Date(1_000 * second).toISOString(), metrics: { cpu: second } },
  });
  expect(await named.next()).toMatchObject(seen(1));
  expect(await named.next()).toMatchObject(seen(7));
  expect(await other.next()).toMatchObject({ subjectId: "end" });
  for (const { stop, next } of [named, other]) {
    stop.abort();
    expect(await next()).toBe("end");
  }
  const before = reads.length;
  await tick();
  expect(reads).toHaveLength(before);
});

test("a limited viewer who names a device out of reach learns nothing about it", async () => {
  const { watch, hear, tick } = setUp();
  const tenantId = newId("ten");
  const [shown, hidden] = [newId("dev"), "dev_hidden" as const];
  for (const deviceId of [hidden, shown]) hear(tenantId, deviceId, 1);
  const limited = { ...userOf("usr_2", null, "viewer"), limits: [{ deviceIds: [], tags: ["a"], fleetIds: [], rules: [] }] };
  const { next, stop } = await watch(tenantId, { seen: [hidden, shown] }, scopeOf(tenantId, limited));
  await tick();
  expect(await next()).toMatchObject({ type: "device.seen", subjectId: shown });
  stop.abort();
  expect(await next()).toBe("end");
});

const alertOpened = async (live: ReturnType<typeof setUp>["live"], tenantId: TenantId) =>
  live.hint({ scope: { tenantId }, event: contract.alerts.events.acknowledged, subjectId: "alr_1", data: {} } as never);

test("a viewer who asks for badges gets the open alerts now and each change, once, whatever the filter; others get none", async () => {
  const { live, watch, happen, counts, open } = setUp({ badgesPauseMs: 0 });
  const tenantId = newId("ten");
  open.add("one");
  const viewer = await watch(tenantId, { badges: true, types: ["tenant.*"] });
  const other = await watch(tenantId);
  expect(await viewer.next()).toMatchObject({ id: null, type: "stream.badges", subjectId: tenantId, data: { alerts: 1 } });
  open.add("two");
  await alertOpened(live, tenantId);
  expect(await viewer.next()).toMatchObject({ type: "stream.badges", data: { alerts: 2 } });
  await alertOpened(live, tenantId);
  await happen(tenantId, "a1");
  expect(await viewer.next()).toMatchObject({ subjectId: "a1" });
  expect([await other.next(), await other.next(), await other.next()]).toMatchObject([
    { type: "alert.acknowledged" },
    { type: "alert.acknowledged" },
    { subjectId: "a1" },
  ]);
  const read = counts.length;
  await happen(tenantId, "a2");
  await viewer.next();
  expect(counts).toHaveLength(read);
  for (const { stop } of [viewer, other]) stop.abort();
});

test("badges count what the viewer sees, one read serves all who see the same, and a viewer without the permission causes none", async () => {
  const { watch, counts, open } = setUp({ badgesPauseMs: 3_600_000 });
  const tenantId = newId("ten");
  for (const alert of ["one", "two", "three"]) open.add(alert);
  const principalWith = (access: ReturnType<typeof createAccess>) => scopeOf(tenantId, { ...userOf("usr_1", null, "viewer"), ...access });
  const limit = { deviceIds: [newId("dev")], tags: [], fleetIds: [], rules: [] };
  const limited = await watch(tenantId, { badges: true }, principalWith(createAccess("viewer", ["alert:read", "event:read"], [limit])));
  expect(await limited.next()).toMatchObject({ type: "stream.badges", data: { alerts: 1 } });
  const without = await watch(tenantId, { badges: true }, principalWith(createAccess("own", ["event:read"])));
  expect(await without.next()).toMatchObject({ type: "stream.badges", data: { alerts: null } });
  expect(counts).toHaveLength(1);
  const all = await watch(tenantId, { badges: true }, principalWith(createAccess("viewer", ["alert:read", "event:read"])));
  expect(await all.next()).toMatchObject({ data: { alerts: 3 } });
  expect(counts).toHaveLength(2);
  for (const { stop } of [limited, without, all]) stop.abort();
});
