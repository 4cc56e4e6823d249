// Readers of dispatched events see each tenant's events with the numbers that the relay gave them, wherever a round or a statement began or ended.

import { afterAll, beforeAll, expect, test } from "vitest";
import { contract, type TenantId } from "../../../protocol/index.ts";
import { systemClock } from "../../../server/core/clock.ts";
import { type DispatchedEvent, happened } from "../../../server/core/events.ts";
import { newId } from "../../../server/core/ids.ts";
import { findEventVersion } from "../../../server/core/rows/event-version.ts";
import { findPosition, newestPosition, PAGE, readAfter, readNewest } from "../../../server/features/live/store.ts";
import { findEvent, findEvents } from "../../../server/features/webhooks/store/events.ts";
import { findReplayable } from "../../../server/features/webhooks/store/fan-out.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { createOutbox } from "../../../server/platform/outbox/outbox.ts";
import { deleteDispatched, deleteOldEvents } from "../../../server/platform/outbox/outbox-rows.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { createTestDatabase } from "../../kit/stores/database.ts";

let db: Db;
beforeAll(async () => {
  db = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 4, log: silentLog });
});
afterAll(() => db.close());

const NEVER_MS = 3_600_000;
const outboxOf = (relayBatch: number) => {
  const outbox = createOutbox({ db, onError: () => undefined, settings: { relayBatch, wakeAfterMs: NEVER_MS } });
  const seen: DispatchedEvent[] = [];
  outbox.subscribe((events) => void seen.push(...events));
  const [relay] = outbox.jobs;
  return { outbox, seen, relay: async () => void (await relay?.run(new AbortController().signal)) };
};
const event = (tenantId: TenantId) => happened({ tenantId }, contract.tenants.events.created, newId("ten"), { tenantId, slug: "s" });

/** Statements of 1 to 9 events of two tenants, rounds of at most 4, so that most rounds take a part of what a statement wrote. */
const happen = async () => {
  const [tenantId, other] = [newId("ten"), newId("ten")];
  const { outbox, seen, relay } = outboxOf(4);
  const written: string[] = [];
  for (const size of [9, 1, 4, 7, 2]) {
    const events = Array.from({ length: size }, (_, at) => event(at % 3 === 2 ? other : tenantId));
    written.push(...events.filter(({ scope }) => scope.tenantId === tenantId).map(({ subjectId }) => subjectId));
    await outbox.emit(db, events);
    await relay();
  }
  for (let round = 0; round < 8; round += 1) await relay();
  return { tenantId, other, written, seen: seen.filter((each) => each.tenantId === tenantId) };
};
const everything = { types: null, subjectId: null, since: null, until: null, deviceIds: null };
const plain = (events: readonly DispatchedEvent[]) => events.map(({ eventId, sequence, subjectId, data }) => ({ eventId, sequence, subjectId, data }));

test("rounds that take a part of a statement's events keep their order and lose none", async () => {
  const { written, seen } = await happen();
  expect(seen.map(({ subjectId }) => subjectId)).toEqual(written);
  expect(seen.map(({ sequence }) => sequence)).toEqual(written.map((_, at) => at + 1));
  expect(await db.query("select * from outbox_pending")).toEqual([]);
});

test("every window of the log, read in either direction, shows the numbers of the relay", async () => {
  const { tenantId, seen } = await happen();
  for (let above = 0; above <= seen.length; above += 1)
    for (const below of [above + 1, above + 2, above + 5, seen.length + 1, Number.MAX_SAFE_INTEGER]) {
      const within = plain(seen.filter(({ sequence }) => sequence > above && sequence < below));
      const filter = { tenantId, above, below, ...everything };
      expect(plain(await findEvents(db, filter, { isAscending: true, limit: 5 }))).toEqual(within.slice(0, 5));
      expect(plain(await findEvents(db, filter, { isAscending: false, limit: 5 }))).toEqual(within.reverse().slice(0, 5));
    }
});

test("an event is found with its number, and a stream goes on behind it", async () => {
  const { tenantId, other, seen } = await happen();
  for (const { eventId, sequence } of seen) {
    expect(await findPosition(db, tenantId, eventId)).toEqual({ eventId, sequence });
    expect((await findEvent(db, tenantId, eventId))?.sequence).toBe(sequence);
    expect(await findPosition(db, other, eventId)).toBeNull();
    expect(plain(await readAfter(db, tenantId, sequence))).toEqual(plain(seen.slice(sequence)));
  }
  expect(await newestPosition(db, tenantId)).toMatchObject({ sequence: seen.length });
  expect(plain(await readNewest(db, tenantId, 3))).toEqual(plain(seen.slice(-3).reverse()));
  expect(await findEventVersion(db, { tenantId })).toBe(seen.length);
  const window = { tenantId, webhookId: newId("wh"), since: new Date(0), until: null, types: ["tenant.created"], status: "missing" } as const;
  expect(plain(await findReplayable(db, window, 100))).toEqual(plain(seen));
});

test("an event that commits late is found with its late number, and one that waits is not found", async () => {
  const tenantId = newId("ten");
  const { outbox, seen, relay } = outboxOf(100);
  let finish = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let write = (): void => undefined;
  const isWritten = new Promise<void>((resolve) => {
    write = resolve;
  });
  const long = db.sqlTx(async (tx) => {
    await outbox.emit(tx, [event(tenantId)]);
    write();
    await held;
  });
  await isWritten;
  for (let round = 0; round < 3; round += 1) {
    await outbox.emit(db, [event(tenantId), event(tenantId)]);
    await relay();
  }
  finish();
  await long;
  const [late] = await db.query<{ event_id: string }>("select event_id from outbox_events where tenant_id = $1 order by position limit 1", [tenantId]);
  expect(await findPosition(db, tenantId, late?.event_id ?? "")).toBeNull();
  await relay();
  expect(seen.at(-1)).toMatchObject({ eventId: late?.event_id, sequence: 7 });
  for (const { eventId, sequence } of seen) expect(await findPosition(db, tenantId, eventId)).toEqual({ eventId, sequence });
});

test("retention and the deletion of a tenant stop at their limits and leave the other tenant alone", async () => {
  const { tenantId, other, seen } = await happen();
  const sequences = async (of: string) =>
    (await findEvents(db, { tenantId: of, above: 0, below: 1_000, ...everything }, { isAscending: true, limit: 100 })).map(({ sequence }) => sequence);
  const others = await sequences(other);
  await db.query("update outbox_dispatches set dispatched_at = now() - interval '40 days' where tenant_id = $1", [tenantId]);
  const old = (since: Date) => deleteOldEvents(db, 30, { since, limit: 2 });
  const { looked: first, last } = await old(new Date(0));
  expect(first).toBeGreaterThanOrEqual(2);
  expect(first).toBeLessThan(6);
  expect(await sequences(tenantId)).toEqual(seen.slice(first).map(({ sequence }) => sequence));
  for (let step = await old(last ?? new Date(0)); step.looked >= 2; step = await old(step.last ?? new Date(0)));
  expect(await sequences(tenantId)).toEqual([seen.length]);
  expect(await deleteDispatched(db, { tenantId }, 10)).toBe(1);
  expect(await deleteDispatched(db, { tenantId }, 10)).toBe(0);
  expect(await db.query("select 1 from outbox_events where tenant_id = $1", [tenantId])).toEqual([]);
  expect(await sequences(other)).toEqual(others);
});

test("a stream's page is full although it begins near the end of a large dispatch", async () => {
  const tenantId = newId("ten");
  const { outbox, relay } = outboxOf(300);
  await outbox.emit(
    db,
    Array.from({ length: 700 }, () => event(tenantId)),
  );
  for (let round = 0; round < 3; round += 1) await relay();
  for (const after of [0, 299, 450]) {
    const page = await readAfter(db, tenantId, after);
    expect(page.map(({ sequence }) => sequence)).toEqual(Array.from({ length: PAGE }, (_, at) => after + at + 1));
  }
});
