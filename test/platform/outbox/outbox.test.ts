// Events on a real database: none is skipped, each tenant's are numbered without gaps, and a failure delays only its own tenant.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contract, type TenantId } from "../../../protocol/index.ts";
import { systemClock } from "../../../server/core/clock.ts";
import { type DispatchedEvent, happened } from "../../../server/core/events.ts";
import { newId } from "../../../server/core/ids.ts";
import { currentWork, runAs, Work } from "../../../server/core/work.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { createOutbox, type Outbox, type OutboxDeps } from "../../../server/platform/outbox/outbox.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { insertRow } from "../../kit/gateway/rows.ts";
import { createTestDatabase } from "../../kit/stores/database.ts";

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
// Each group has its own database, because the relay reads every event in one.
const open = async (): Promise<Db> => openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 6, log: silent as never });
const NEVER_MS = 3_600_000;

const outboxOn = (db: Db, more: Partial<OutboxDeps> = {}) => {
  const errors: string[] = [];
  const outbox = createOutbox({
    db,
    onError: (what) => void errors.push(what),
    ...more,
    settings: { wakeAfterMs: NEVER_MS, ...more.settings },
  });
  const seen: DispatchedEvent[] = [];
  outbox.subscribe((events) => void seen.push(...events));
  return { outbox, seen, errors };
};

const run = async (outbox: Outbox, name = "outbox.relay"): Promise<void> => {
  const job = outbox.jobs.find((each) => each.name === name);
  while ((await job?.run(new AbortController().signal)) === true);
};

const event = (tenantId: TenantId, subjectId: string = newId("ten")) =>
  happened({ tenantId }, contract.tenants.events.created, subjectId, { tenantId, slug: "s" });

let db: Db;
beforeAll(async () => {
  db = await open();
});
afterAll(async () => {
  await db.close();
});

describe("dispatch", () => {
  test("events are dispatched in order, and each tenant's are numbered without gaps over several rounds", async () => {
    const { outbox, seen } = outboxOn(db, { settings: { relayBatch: 3 } });
    const [one, two] = [newId("ten"), newId("ten")];
    await outbox.emit(db, [event(one), event(two), event(one), event(one), event(two)]);
    await run(outbox);
    await outbox.emit(db, [event(two), event(one)]);
    await run(outbox);
    const numbers = (tenantId: string) => seen.filter((each) => each.tenantId === tenantId).map(({ sequence }) => sequence);
    expect(numbers(one)).toEqual([1, 2, 3, 4]);
    expect(numbers(two)).toEqual([1, 2, 3]);
    for (const tenant of [one, two]) {
      const positions = seen.filter(({ tenantId }) => tenantId === tenant).map(({ position }) => position);
      expect(positions).toEqual([...positions].sort((a, b) => a - b));
    }
  });

  test("an event that commits late is not skipped, and one that is rolled back is never dispatched", async () => {
    const { outbox, seen } = outboxOn(db);
    const tenantId = newId("ten");
    let finish: (() => void) | undefined;
    const held = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let written: (() => void) | undefined;
    const hasWritten = new Promise<void>((resolve) => {
      written = resolve;
    });
    const long = db.sqlTx(async (tx) => {
      await outbox.emit(tx, [event(tenantId, "late")]);
      written?.();
      await held;
    });
    await hasWritten;
    await db
      .sqlTx(async (tx) => {
        await outbox.emit(tx, [event(tenantId, "never")]);
        throw new Error("undone");
      })
      .catch(() => null);
    await outbox.emit(db, [event(tenantId, "early")]);
    await run(outbox);
    expect(seen.map(({ subjectId }) => subjectId)).toEqual(["early"]);
    finish?.();
    await long;
    await run(outbox);
    expect(seen.map(({ subjectId, sequence }) => [subjectId, sequence])).toEqual([
      ["early", 1],
      ["late", 2],
    ]);
  });

  test("two relays that run at once dispatch each event once", async () => {
    const [a, b] = [outboxOn(db, { settings: { relayBatch: 7 } }), outboxOn(db, { settings: { relayBatch: 7 } })];
    const tenantId = newId("ten");
    await a.outbox.emit(
      db,
      Array.from({ length: 100 }, () => event(tenantId)),
    );
    await eventually(async () => {
      await Promise.all([run(a.outbox), run(b.outbox)]);
      expect(a.seen.length + b.seen.length).toBeGreaterThanOrEqual(100);
    });
    expect([...a.seen, ...b.seen].map(({ sequence }) => sequence).sort((x, y) => x - y)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  });

  test("an emitted event is dispatched before the next period, and a failing subscriber stops no other", async () => {
    const { outbox, seen, errors } = outboxOn(db, { settings: { wakeAfterMs: 1 } });
    outbox.subscribe(() => {
      throw new Error("a view broke");
    });
    await outbox.emit(db, [event(newId("ten"))]);
    await eventually(() => expect(seen).toHaveLength(1));
    expect(errors).toEqual(["outbox subscriber"]);
    await outbox.close();
  });

  test("the relay is background work, whoever has woken it", async () => {
    const own = await open();
    const classes = new Set<string>();
    const { outbox, seen } = outboxOn(own, { settings: { wakeAfterMs: 0 } });
    outbox.consume("classes", async () => void classes.add(currentWork().workClass));
    await runAs(new Work("agents"), () => own.tx((tx) => outbox.emit(tx, [event(newId("ten"))])));
    await eventually(() => expect(seen).toHaveLength(1));
    expect([...classes]).toEqual(["jobs"]);
    await own.close();
  });

  test("the outbox refuses a hint and an event with the wrong data", async () => {
    const { outbox } = outboxOn(db);
    const scope = { tenantId: newId("ten") };
    await expect(outbox.emit(db, [{ scope, event: contract.commands.events.queued, subjectId: "x", data: {} } as never])).rejects.toThrow(/hint/);
    await expect(outbox.emit(db, [{ scope, event: contract.tenants.events.created, subjectId: "x", data: { slug: 1 } } as never])).rejects.toThrow();
  });
});

describe("transactional consumers", () => {
  test("a consumer writes in the transaction of the dispatch, and its failure delays only its own tenant until it works again", async () => {
    const own = await open();
    try {
      const { outbox, seen, errors } = outboxOn(own);
      const [healthy, poisoned] = [newId("ten"), newId("ten")];
      for (const tenant_id of [healthy, poisoned]) await insertRow(own, "tenants", { tenant_id });
      let broken = true;
      outbox.consume("webhooks", async (tx, events) => {
        for (const { subjectId, tenantId } of events) {
          await tx.query(`insert into stream_tickets (hash, tenant_id, user_id, expires_at) values (convert_to($1, 'utf8'), $2, 'u', now())`, [
            subjectId,
            tenantId,
          ]);
          if (broken && subjectId === "poison") throw new Error("cannot");
        }
      });
      await outbox.emit(own, [event(poisoned, "p1"), event(poisoned, "poison"), event(healthy, "h1"), event(poisoned, "p2"), event(healthy, "h2")]);
      await run(outbox);
      expect(seen.map(({ subjectId }) => subjectId)).toEqual(["p1", "h1", "h2"]);
      expect(new Set(errors)).toEqual(new Set([`outbox consumer webhooks, tenant ${poisoned} waits`]));
      const written = async () => (await own.query<{ id: string }>(`select convert_from(hash, 'utf8') as id from stream_tickets`)).map(({ id }) => id).sort();
      expect(await written()).toEqual(["h1", "h2", "p1"]);
      broken = false;
      await run(outbox);
      expect(seen.filter(({ tenantId }) => tenantId === poisoned).map(({ subjectId, sequence }) => [subjectId, sequence])).toEqual([
        ["p1", 1],
        ["poison", 2],
        ["p2", 3],
      ]);
      expect(await written()).toEqual(["h1", "h2", "p1", "p2", "poison"]);
    } finally {
      await own.close();
    }
  });
});

describe("retention", () => {
  test("retention deletes old events but never an undispatched one or a tenant's newest, so its numbers continue", async () => {
    const own = await open();
    try {
      const { outbox, seen } = outboxOn(own);
      const tenantId = newId("ten");
      await outbox.emit(own, [event(tenantId), event(tenantId), event(tenantId, "newest")]);
      await run(outbox);
      await outbox.emit(own, [event(tenantId, "waiting")]);
      await own.query(`update outbox_dispatches set dispatched_at = now() - interval '40 days'`);
      await run(outbox, "outbox.retention");
      expect(await own.query(`select subject_id from outbox_events order by position`)).toEqual([{ subject_id: "newest" }, { subject_id: "waiting" }]);
      await run(outbox);
      expect(seen.at(-1)).toMatchObject({ subjectId: "waiting", sequence: 4 });
    } finally {
      await own.close();
    }
  });
});
