// A tenant that fills what it may fill: its own calls wait and are refused, and nobody else notices.
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../kit/checks/eventually.ts";
import { type Answer, anonymous, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

let world: World;
let greedy: TestTenant;
let other: TestTenant;
beforeAll(async () => {
  world = await startWorld({ DATABASE_POOL: "8", DATABASE_TENANT_PERCENT: "50" });
  [greedy, other] = [await world.tenant(), await world.tenant()];
});
afterAll(() => world.close());

const times = <T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: count }, (_, index) => make(index)));
const codes = (answers: readonly Answer[]): ReadonlySet<unknown> => new Set(answers.map(({ status, body }) => (status < 400 ? status : body.code)));

/** Probes within a second share one run of the checks. */
const readyAnswers = (status: number, word: string, message?: string): Promise<void> =>
  eventually(async () => {
    const answer = await world.call(anonymous, "GET", "/v1/readyz");
    const database = answer.body.data.checks.find(({ name }: { name: string }) => name === "database");
    expect([answer.status, database]).toEqual([status, { name: "database", status: word, ...(message === undefined ? {} : { message }) }]);
  });

test("25 parallel readers of one key behind a locked table leave another tenant's creates and reads, all agents and readiness alone", async () => {
  const [mine, theirs] = [await greedy.device(), await other.device()];
  const create = (tenant: TestTenant, deviceId: string) => world.call(tenant.apiKey, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping" } });
  const read = (tenant: TestTenant, deviceId: string) => world.call(tenant.apiKey, "GET", `/v1/devices/${deviceId}`);
  // Fill the caches before the lock, so that only the lists wait.
  for (const [tenant, { deviceId }] of [[greedy, mine] as const, [other, theirs] as const])
    await Promise.all([create(tenant, deviceId), read(tenant, deviceId)]);
  const holder = await world.sql.connect();
  let slow: Promise<Answer[]> | undefined;
  try {
    await holder.query("begin; lock table fleets in access exclusive mode");
    slow = times(25, () => world.call(greedy.apiKey, "GET", "/v1/fleets"));
    const beside = await Promise.all([
      times(30, () => create(other, theirs.deviceId)),
      times(10, () => create(greedy, mine.deviceId)),
      times(10, () => read(other, theirs.deviceId)),
      times(10, () => world.call(theirs.as, "GET", "/v1/agent/me")),
      times(3, () => world.call(anonymous, "GET", "/v1/readyz")),
    ]);
    expect(beside.map(codes)).toEqual([new Set([201]), new Set([201]), new Set([200]), new Set([200]), new Set([200])]);
    // Those with a session run out of time, and the others learn that they are too many.
    const answers = await slow;
    const refused = answers.filter(({ status, body }) => status !== 503 || body.code !== "DATABASE_BUSY");
    expect(refused.length).toBeGreaterThan(20);
    for (const { status, headers, body } of refused)
      expect([status, Number(headers.get("retry-after")) > 0, body.details]).toEqual([
        429,
        true,
        { bucket: "database.lists", limit: 1, reason: "tenant_share" },
      ]);
  } finally {
    await holder.query("rollback");
    holder.release();
    await slow;
  }
  expect((await world.call(greedy.apiKey, "GET", "/v1/fleets")).status).toBe(200);
});

test("creates that wait for a locked table are told once, together, and none waits twice", async () => {
  const { deviceId } = await other.device();
  const holder = await world.sql.connect();
  try {
    await holder.query("begin; lock table commands in exclusive mode");
    const before = await rolledBack();
    const answers = await times(40, () => world.call(other.apiKey, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping" } }));
    expect(codes(answers)).toEqual(new Set(["DATABASE_BUSY"]));
    expect(new Set(answers.map(({ headers }) => Number(headers.get("retry-after")) > 0))).toEqual(new Set([true]));
    // Two batches at most: the first call alone, the others meanwhile. In halves there were twice as many waits as calls.
    expect((await rolledBack()) - before).toBeLessThanOrEqual(10);
    const { body, status } = await world.call(anonymous, "GET", "/v1/readyz");
    expect([status, body.data.checks.find(({ name }: { name: string }) => name === "database")]).toEqual([
      200,
      { name: "database", status: "degraded", message: "answers, but writes wait for locks of others" },
    ]);
  } finally {
    await holder.query("rollback");
    holder.release();
  }
});

const rolledBack = async (): Promise<number> => {
  await world.sql.query("select pg_stat_force_next_flush()");
  const { rows } = await world.sql.query("select xact_rollback::int as count from pg_stat_database where datname = current_database()");
  return rows[0].count;
};

test.each([
  ["25006", "DATABASE_READ_ONLY", "refuses writes: it is read-only"],
  ["53100", "DATABASE_FULL", "refuses writes: its disk is full or fails"],
])("a write that PostgreSQL refuses with %s is answered 503 %s, and readiness says which", async (sqlState, code, message) => {
  const { deviceId } = await other.device();
  await world.sql.query(`create function refuse() returns trigger language plpgsql as $$ begin raise exception using errcode = '${sqlState}'; end $$;
    create trigger refuse before insert on commands for each row execute function refuse()`);
  try {
    const answers = await times(10, () => world.call(other.apiKey, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping" } }));
    expect(answers.map(({ status, body, headers }) => [status, body.code, body.retryable, Number(headers.get("retry-after")) > 0])).toEqual(
      answers.map(() => [503, code, true, true]),
    );
    await readyAnswers(503, "unhealthy", message);
  } finally {
    await world.sql.query("drop function refuse cascade");
  }
  expect((await world.call(other.apiKey, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping" } })).status).toBe(201);
  await readyAnswers(200, "healthy");
});
