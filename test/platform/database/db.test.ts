// Access to PostgreSQL: one transaction for Prisma and raw SQL, clear errors, and recovery after every lost session.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { runAs, Work } from "../../../server/core/work.ts";
import { type Db, openDb, type Sql } from "../../../server/platform/database/db.ts";
import { databaseError, isUnavailable, isUndone, isUniqueViolation } from "../../../server/platform/database/db-errors.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { insertRow } from "../../kit/gateway/rows.ts";
import { createTestDatabase, withClient } from "../../kit/stores/database.ts";

let url = "";
let db: Db;
let slowReasons: Promise<readonly unknown[]>;
beforeAll(async () => {
  slowReasons = refuseByTime();
  slowReasons.catch(() => undefined);
  url = await createTestDatabase();
  db = await openDb({ clock: systemClock, url, poolSize: 6, log: silentLog });
  await db.execute("create table counters (id int primary key, value int8 not null)");
  await db.execute("insert into counters values (1, 0), (2, 0)");
  await insertRow(db, "deployments", { tenant_id: "ten_1", deployment_id: "dep_1" });
});
afterAll(() => db.close());

const device = (deviceId: string, fingerprint = deviceId) => ({
  deviceId,
  tenantId: "ten_1",
  deploymentId: "dep_1",
  agentId: `agt_${deviceId}`,
  fingerprint,
  secret: new Uint8Array([1]),
});
const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error ?? new Error("rejected with nothing"),
  );
const endAllSessions = (): Promise<unknown> =>
  withClient(url, (client) =>
    client.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"),
  );
const increment = (sql: Sql, id: number): Promise<number> => sql.execute("update counters set value = value + 1 where id = $1", [id]);

const CIRCULAR: Record<string, unknown> = {};
CIRCULAR["itself"] = CIRCULAR;
const failsAfter = async (turns: number): Promise<never> => {
  for (let turn = 0; turn < turns; turn += 1) await undefined;
  throw new Error("not given");
};

/** The reasons of refusals that the pool's own time limits cause, of eight seconds and less. It runs beside the other tests, on a database of its own. */
const refuseByTime = async (): Promise<readonly unknown[]> => {
  const own = await createTestDatabase();
  const db = await openDb({ clock: systemClock, url: own, poolSize: 8, log: silentLog });
  await db.execute("create table counters (id int primary key, value int8 not null)");
  await db.execute("insert into counters values (1, 0)");
  const reasonOf = async (work: Promise<unknown>): Promise<unknown> => {
    const refusal = databaseError(await failure(work));
    return refusal?.code === "DATABASE_BUSY" ? refusal.details?.["reason"] : refusal?.code;
  };
  const full = await openDb({ clock: systemClock, url: own, poolSize: 1, log: silentLog });
  let giveBack = (): void => undefined;
  const wanted = new Promise<void>((resolve) => (giveBack = resolve));
  // Its only session stays taken until both have been refused, however late they ask.
  const taken = full.sqlTx(async (tx) => {
    await tx.query("select 1");
    await wanted;
  });
  const reasons = await withClient(own, async (client) => {
    await client.query("begin; update counters set value = value where id = 1; lock devices");
    return Promise.all([
      reasonOf(db.sqlTx((tx) => tx.query("select pg_sleep(6)"))),
      reasonOf(db.tx((tx) => tx.query("set local statement_timeout = 500").then(() => tx.system.device.count()))),
      reasonOf(increment(db, 1)),
      reasonOf(db.query("with locked as (select value from counters where id = 1 for no key update) select value from locked")),
      reasonOf(db.query("with changed as (update counters set value = value where id = 1 returning value) select value from changed")),
      reasonOf(db.tx((tx) => tx.system.device.updateMany({ data: { name: "x" } }))),
      reasonOf(db.query("select pg_sleep(9)")),
      reasonOf(full.query("select 1")),
      reasonOf(full.system.device.count()),
      reasonOf(openDb({ clock: systemClock, url: "postgresql://a:b@127.0.0.1:1/c", poolSize: 1, log: silentLog })),
    ]);
  });
  giveBack();
  await failure(taken);
  await Promise.all([full.close(), db.close()]);
  return reasons;
};

describe("raw SQL", () => {
  test("raw SQL returns rows as plain values and accepts arrays for UNNEST", async () => {
    const at = new Date("2030-01-02T03:04:05.678Z");
    const rows = await db.query(
      "select a.id, a.at, a.seq, array[a.seq] as seqs, a.body::jsonb as body from unnest($1::text[], $2::timestamptz[], $3::int8[], $4::text[]) as a(id, at, seq, body)",
      [
        ["a", "b"],
        [at, null],
        [7, 8],
        [JSON.stringify({ deep: ['x"y'] }), null],
      ],
    );
    expect(rows).toEqual([
      { id: "a", at, seq: 7, seqs: [7], body: { deep: ['x"y'] } },
      { id: "b", at: null, seq: 8, seqs: [8], body: null },
    ]);
  });

  test("a query refuses a number that it would have to round", async () => {
    await expect(db.query("select 9007199254740993::int8")).rejects.toThrow(RangeError);
  });

  test("raw SQL and Prisma return the same values for the same row", async () => {
    const made = await db.system.device.create({ data: { ...device("dev_same"), tags: ["x"], inventory: { cpu: 2 } } });
    const [row] = await db.query<Record<string, unknown>>("select next_command_seq, created_at, tags, inventory, secret from devices where device_id = $1", [
      "dev_same",
    ]);
    expect(row).toEqual({ next_command_seq: 1, created_at: made.createdAt, tags: ["x"], inventory: { cpu: 2 }, secret: Buffer.from([1]) });
    expect(made.nextCommandSeq).toBe(1n);
  });

  test("times survive whatever time zone the database prefers", async () => {
    await withClient(url, (client) =>
      client.query("do $$ begin execute format('alter database %I set timezone = ''Asia/Tokyo''', current_database()); end $$"),
    );
    const other = await openDb({ clock: systemClock, url, poolSize: 1, log: silentLog });
    const createdAt = new Date("2030-06-01T12:00:00.000Z");
    await other.system.device.create({ data: { ...device("dev_zone"), createdAt } });
    expect(await other.query("select created_at from devices where device_id = 'dev_zone'")).toEqual([{ created_at: createdAt }]);
    await other.close();
  });
});

describe("transactions", () => {
  test("Prisma and raw SQL see each other's uncommitted rows in one transaction and roll back together", async () => {
    const error = await failure(
      db.tx(async (tx) => {
        await tx.system.device.create({ data: device("dev_both") });
        expect(await tx.query("select device_id from devices where device_id = 'dev_both'")).toHaveLength(1);
        await tx.execute("update devices set name = 'raw' where device_id = 'dev_both'");
        expect((await tx.system.device.findFirst({ where: { deviceId: "dev_both" } }))?.name).toBe("raw");
        throw new Error("changed my mind");
      }),
    );
    expect(error).toEqual(new Error("changed my mind"));
    expect(await db.query("select 1 from devices where device_id = 'dev_both'")).toEqual([]);
  });

  test.each(["tx", "sqlTx"] as const)("a %s transaction whose failed statement was ignored is an error and writes nothing", async (opener) => {
    const work = db[opener](async (tx: Sql) => {
      await tx.execute("insert into counters values (3, 0)");
      await failure(tx.execute("insert into counters values (3, 0)"));
    });
    await expect(work).rejects.toThrow(/nothing was written/);
    expect(await db.query("select 1 from counters where id = 3")).toEqual([]);
    await db.sqlTx((tx) => increment(tx, 1));
  });

  test.each(["tx", "sqlTx"] as const)("a %s transaction of several statements sent together fails with the error of the first that failed", async (opener) => {
    const before = await db.query("select id from counters order by id");
    const sendTogether = (order: (statements: readonly Promise<unknown>[]) => readonly Promise<unknown>[]) =>
      failure(
        db[opener](async (tx: Sql) => {
          const statements = [tx.execute("insert into counters values (1, 0)"), tx.query("select 1"), increment(tx, 2)];
          await Promise.all(order(statements));
        }),
      );
    expect(isUniqueViolation(await sendTogether((statements) => statements))).toBe(true);
    // The caller may hear of a later statement first, which only says that the transaction is aborted.
    const heardLate = await failure(
      db[opener](async (tx: Sql) => {
        const first = failure(tx.execute("insert into counters values (1, 0)"));
        const second = tx.query("select 1");
        await first;
        await second;
      }),
    );
    expect(isUniqueViolation(heardLate)).toBe(true);
    expect(isUniqueViolation(await sendTogether((statements) => [...statements].reverse()))).toBe(true);
    expect(await db.query("select id from counters order by id")).toEqual(before);
  });

  test.each(["tx", "sqlTx"] as const)("a %s transaction refuses statements once it has ended", async (opener) => {
    let kept: Sql | undefined;
    await db[opener](async (tx: Sql) => {
      kept = tx;
    });
    await expect(kept?.query("select 1")).rejects.toThrow("this transaction has ended");
  });

  test("a transaction keeps its connection for its Prisma client while others open theirs", async () => {
    const addTo = (name: string) =>
      db.tx(async (tx) => {
        const deviceId = `dev_beside_${name}`;
        const [, , seen] = await Promise.all([
          tx.query("select pg_sleep(0.02)"),
          tx.system.device.create({ data: device(deviceId) }),
          tx.system.device.findMany({ where: { deviceId: { startsWith: "dev_beside_" } }, select: { deviceId: true } }),
        ]);
        expect(seen).toEqual([{ deviceId }]);
        expect(await tx.query("select device_id from devices where device_id like 'dev_beside_%'")).toEqual([{ device_id: deviceId }]);
        throw new Error("undone");
      });
    const outcomes = await Promise.allSettled(["a", "b", "c", "d", "e", "f"].map(addTo));
    expect(outcomes.map((outcome) => outcome.status === "rejected" && outcome.reason.message)).toEqual(Array.from({ length: 6 }, () => "undone"));
  });

  test.each(["used", "unused"])("a transaction ends its %s Prisma client with itself", async (before) => {
    let late: (() => Promise<unknown>) | undefined;
    await db.tx(async (tx) => {
      if (before === "used") await tx.system.device.count();
      late = () => tx.system.device.count();
    });
    await expect(late?.()).rejects.toThrow(/already closed|has ended/);
  });

  test("takes Prisma's operations of several statements, which nothing else takes", async () => {
    const upsert = { where: { deviceId: "dev_up", agentId: "agt_dev_up" }, create: device("dev_up"), update: { name: "again" } };
    await expect(db.system.device.upsert(upsert)).rejects.toThrow(/run it in a transaction/);
    expect(await db.tx((tx) => tx.system.device.upsert(upsert))).toMatchObject({ deviceId: "dev_up" });
  });

  test.each(["tx", "sqlTx"] as const)("a %s transaction is retried after a deadlock until both sides commit", async (opener) => {
    const before = await db.query<{ value: number }>("select value from counters order by id limit 2");
    let arrived = 0;
    let open = (): void => undefined;
    const both = new Promise<void>((resolve) => (open = resolve));
    const crossing = (first: number, second: number): Promise<void> =>
      db[opener](async (tx: Sql) => {
        await increment(tx, first);
        arrived += 1;
        if (arrived === 2) open();
        await both;
        await increment(tx, second);
      });
    await Promise.all([crossing(1, 2), crossing(2, 1)]);
    const after = await db.query<{ value: number }>("select value from counters order by id limit 2");
    expect(after).toEqual(before.map(({ value }) => ({ value: value + 2 })));
    expect(arrived).toBeGreaterThan(2);
  });

  test("a transaction runs its deferred statements in order before it commits and returns", async () => {
    const result = await db.sqlTx(async (tx) => {
      tx.defer(tx.execute("insert into counters values (4, 1)"));
      tx.defer(increment(tx, 4));
      return "done";
    });
    expect([result, await db.query("select value from counters where id = 4")]).toEqual(["done", [{ value: 2 }]]);
  });

  test("a transaction fails with the error of a deferred statement, writes nothing and leaves a sound connection", async () => {
    const failing = (more: (tx: Sql) => Promise<unknown>) =>
      failure(
        db.sqlTx(async (tx) => {
          await tx.execute("insert into counters values (5, 0)");
          tx.defer(tx.execute("insert into counters values (5, 0)"));
          await more(tx);
        }),
      );
    expect(isUniqueViolation(await failing(async () => undefined))).toBe(true);
    // This holds even if a later statement is the first to fail because the transaction is aborted.
    expect(isUniqueViolation(await failing((tx) => tx.query("select 1")))).toBe(true);
    expect(await db.query("select 1 from counters where id = 5")).toEqual([]);
    await Promise.all(Array.from({ length: 6 }, () => db.sqlTx((tx) => increment(tx, 1))));
  });

  test.each([
    ["has a value that cannot be sent", (tx: Sql) => tx.execute("insert into counters values ($1, 0)", [CIRCULAR])],
    ["fails before it has given one of its statements", async () => failsAfter(20)],
  ])("a transaction whose deferred work %s keeps nothing", async (_, work) => {
    const run = db.sqlTx(async (tx) => {
      await tx.query("select 1");
      tx.defer(Promise.all([tx.execute("insert into counters values (6, 0)"), work(tx)]));
    });
    await expect(run).rejects.toThrow(/circular|not given/);
    expect(await db.query("select 1 from counters where id = 6")).toEqual([]);
  });

  test("a transaction is retried when a deferred statement meets a deadlock", async () => {
    let arrived = 0;
    let open = (): void => undefined;
    const both = new Promise<void>((resolve) => (open = resolve));
    const crossing = (first: number, second: number): Promise<void> =>
      db.sqlTx(async (tx) => {
        await increment(tx, first);
        arrived += 1;
        if (arrived === 2) open();
        await both;
        tx.defer(increment(tx, second));
      });
    await Promise.all([crossing(1, 2), crossing(2, 1)]);
    expect(arrived).toBeGreaterThan(2);
  });

  test.each(["tx", "sqlTx"] as const)("a %s transaction that loses its connection before the COMMIT is an error", async (opener) => {
    const error = await failure(
      db[opener](async (tx: Sql) => {
        await increment(tx, 1);
        const [mine] = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
        await withClient(url, (client) => client.query("select pg_terminate_backend($1, 2000)", [mine?.pid]));
      }),
    );
    expect(isUnavailable(error)).toBe(true);
  });
});

describe("a transaction that asks for a second session", () => {
  const asking = (work: () => Promise<unknown>) => failure(db.tx(() => runAs(new Work("jobs"), () => db.tx(work))));
  const NESTED = "a transaction asks for a second session; pass it on to whoever reads";

  test.each([
    ["a statement", () => db.query("select 1")],
    ["a read through Prisma", () => db.system.device.findFirst()],
    ["a transaction", () => db.tx(async (tx) => tx.query("select 1"))],
  ])("for %s is found by every test", async (_, work) => {
    expect(String(await asking(work))).toContain(NESTED);
  });

  test("for work that it only starts is let be", async () => {
    let later: Promise<unknown> = Promise.resolve();
    await db.tx(async (tx) => {
      later = runAs(new Work("jobs"), () => db.query("select 1"));
      await tx.query("select 1");
    });
    await later;
  });
});

describe("errors", () => {
  test("a duplicate row is recognised by its index name, through Prisma and raw SQL", async () => {
    await db.system.device.create({ data: device("dev_one", "same") });
    const throughPrisma = await failure(db.system.device.create({ data: device("dev_two", "same") }));
    const throughSql = await failure(
      db.execute(
        "insert into devices (device_id, tenant_id, deployment_id, agent_id, fingerprint, secret) values ('dev_three', 'ten_1', 'dep_1', 'agt_3', 'same', ''::bytea)",
      ),
    );
    for (const error of [throughPrisma, throughSql]) {
      expect(isUniqueViolation(error)).toBe(true);
      expect(isUniqueViolation(error, "devices_living_tenant_fingerprint_key")).toBe(true);
      expect(isUniqueViolation(error, "devices_agent_id_key")).toBe(false);
      expect(isUnavailable(error) || isUndone(error)).toBe(false);
    }
  });

  test("the database refuses an open command without a deadline, an end without a time, an unknown state and an empty tenant id", async () => {
    const end = (status: string | null, finishedAt: string | null, tenantId = "ten_1"): Promise<number> =>
      db.execute(
        "insert into commands (command_id, tenant_id, device_id, seq, lane, type, payload, exec_timeout_s, created_by, status, finished_at) values ('cmd_1', $3, 'dev_1', 1, 'l', 't', '{}', 1, 'me', $1, $2)",
        [status, finishedAt, tenantId],
      );
    const queue = (status: string, deadline: string | null, tenantId = "ten_1"): Promise<number> =>
      db.execute(
        "insert into command_queue (command_id, tenant_id, device_id, seq, lane, priority, status, deadline_at, available_at, requires_ack, redeliver_safe, max_attempts, history) values ('cmd_1', $3, 'dev_1', 1, 'l', 5, $1, $2, now(), true, true, 1, '[]')",
        [status, deadline, tenantId],
      );
    await expect(queue("queued", null)).rejects.toThrow(/"deadline_at".* violates not-null/);
    await expect(queue("dreaming", "2030-01-01")).rejects.toThrow(/command_queue_status_known/);
    await expect(queue("succeeded", "2030-01-01")).rejects.toThrow(/command_queue_status_known/);
    await expect(queue("queued", "2030-01-01", "")).rejects.toThrow(/command_queue_tenant_named/);
    await expect(end("succeeded", null)).rejects.toThrow(/commands_end_has_time/);
    await expect(end(null, "2030-01-01")).rejects.toThrow(/commands_end_has_time/);
    await expect(end("queued", "2030-01-01")).rejects.toThrow(/commands_status_known/);
    await expect(end("succeeded", "2030-01-01", "")).rejects.toThrow(/commands_tenant_named/);
    expect([await queue("queued", "2030-01-01"), await end("succeeded", "2030-01-01")]).toEqual([1, 1]);
  });

  test("a lock timeout is retryable", async () => {
    await withClient(url, async (client) => {
      await client.query("begin; update counters set value = value where id = 1; lock devices");
      const [throughSql, throughPrisma] = await Promise.all([failure(increment(db, 1)), failure(db.system.device.updateMany({ data: { name: "x" } }))]);
      for (const error of [throughSql, throughPrisma]) expect(isUndone(error)).toBe(true);
    });
  });

  test("a slow statement, a lock, a full pool and a missing database are told apart, through Prisma and raw SQL", async () => {
    expect(await slowReasons).toEqual([
      "statement_timeout",
      "statement_timeout",
      "lock_timeout",
      "lock_timeout",
      "lock_timeout",
      "lock_timeout",
      "no_answer",
      "no_session",
      "no_session",
      "DATABASE_UNAVAILABLE",
    ]);
    expect(databaseError(new Error("a defect"))).toBeNull();
  }, 60_000);

  test("what Prisma reads after another database has closed comes from the open one, and the closed one refuses", async () => {
    const names: string[] = [];
    for (let opened = 0; opened < 3; opened += 1) {
      const one = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 2, log: silentLog });
      const [deploymentId, deviceId] = [`dep_${opened}`, `dev_${opened}`];
      await insertRow(one, "deployments", { tenant_id: "ten_1", deployment_id: deploymentId });
      await one.tx((tx) => tx.system.device.create({ data: { ...device(deviceId), deploymentId } }));
      names.push(...(await one.system.device.findMany({})).map((row) => row.deviceId));
      names.push(...(await one.tx((tx) => tx.system.device.findMany({}))).map((row) => row.deviceId));
      await one.close();
      expect(isUnavailable(await failure(Promise.resolve(one.system.device.count())))).toBe(true);
      expect(isUnavailable(await failure(one.tx((tx) => tx.system.device.count())))).toBe(true);
    }
    expect(names).toEqual(["dev_0", "dev_0", "dev_1", "dev_1", "dev_2", "dev_2"]);
  });

  test("a missing database counts as unavailable", async () => {
    expect(isUnavailable(await failure(openDb({ clock: systemClock, url: "postgresql://a:b@127.0.0.1:1/c", poolSize: 1, log: silentLog })))).toBe(true);
  });
});

describe("lost sessions", () => {
  test("the process survives the loss of all sessions, and statements soon work again", async () => {
    await Promise.all(Array.from({ length: 6 }, () => db.query("select pg_sleep(0.02)")));
    await endAllSessions();
    await eventually(() => db.condition());
    expect(await db.system.device.count()).toBeGreaterThan(0);
  });

  test("a busy session is replaced at the end of its life, so none stays with a former writer", async () => {
    const short = await openDb({ clock: systemClock, url, poolSize: 1, sessionLifeSeconds: 1, log: silentLog });
    const pids = new Set<number>();
    const askOnce = async (): Promise<void> => {
      const [row] = await short.query<{ pid: number }>("select pg_backend_pid() as pid");
      pids.add(row?.pid ?? 0);
    };
    await eventually(async () => {
      await askOnce();
      expect(pids.size).toBeGreaterThan(1);
    });
    await short.close();
  });

  test("while sessions are lost under load, every failure is unavailable and every acknowledged write is in the database", async () => {
    let written = 0;
    let stop = false;
    const strange: unknown[] = [];
    const counted = async (work: () => Promise<unknown>): Promise<void> => {
      while (!stop)
        await work().then(
          () => (written += 1),
          (error: unknown) => void (isUnavailable(error) || strange.push(error)),
        );
    };
    await db.execute("insert into counters values (9, 0)");
    const load = Promise.all([
      counted(() => db.sqlTx((tx) => increment(tx, 9))),
      counted(() => db.tx(async (tx) => increment(tx, 9))),
      counted(() => db.tx((tx) => Promise.all([increment(tx, 9), tx.system.device.updateMany({ data: { name: "x" } })]))),
      counted(() => increment(db, 9)),
      counted(async () => {
        await db.system.device.updateMany({ data: { name: "y" } });
        written -= 1;
      }),
    ]);
    for (let round = 0; round < 15; round += 1) await endAllSessions();
    stop = true;
    await load;
    expect(strange).toEqual([]);
    const [row] = await db.query<{ value: number }>("select value from counters where id = 9");
    // A lost answer may hide a write, so there may be more writes than answers, never fewer.
    expect(row?.value).toBeGreaterThanOrEqual(written);
  });
});
