// A 5xx does not prove that nothing happened. Whatever becomes of a request under an Idempotency-Key (its COMMIT stalls, the answer to it is
// lost, the call takes too long), repeating it until it succeeds has one effect.
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { createRandom } from "../../agent-sim/agent/index.ts";
import { group, mutation } from "../../protocol/kit/operation.ts";
import { systemClock } from "../../server/core/clock.ts";
import { implement } from "../../server/core/feature.ts";
import { newId } from "../../server/core/ids.ts";
import { createLazyAbort } from "../../server/core/lifecycle/lazy-abort.ts";
import { nothingBlocked, unwatched } from "../../server/core/ports/security.ts";
import { createOperationTable } from "../../server/gateway/call/operation-table.ts";
import { createPipeline } from "../../server/gateway/call/pipeline.ts";
import { createLimits } from "../../server/gateway/call/rate-limits.ts";
import { createMemoryRateLimiter } from "../../server/platform/cluster/rate-limit.ts";
import { type Db, openDb } from "../../server/platform/database/db.ts";
import { databaseError } from "../../server/platform/database/db-errors.ts";
import { createIdempotency } from "../../server/platform/idempotency.ts";
import { createSecretBox } from "../../server/platform/keys/secrets.ts";
import { silentLog } from "../../server/platform/telemetry/log.ts";
import { losingCommits } from "../chaos/check/commits.ts";
import { createProxy, type FaultProxy } from "../chaos/rig/proxy.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { noAudit, userOf } from "../kit/gateway/call.ts";
import { type Answer, asKey, type Caller, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { createTestDatabase, namedStatements } from "../kit/stores/database.ts";

const isReplay = ({ headers }: Answer): boolean => headers.get("idempotent-replayed") === "true";

describe("a failing network", () => {
  /** Two nodes on one database: one close to it, one behind the proxy. */
  let near: World;
  let far: World;
  let proxy: FaultProxy;
  let losing = false;
  let tenant: TestTenant;
  let owner: Caller;
  beforeAll(async () => {
    near = await startWorld();
    const url = new URL(near.databaseUrl);
    const port = Number(url.port);
    proxy = await createProxy({ targets: () => [port], random: createRandom(1), filter: losingCommits(() => losing) });
    url.port = String(proxy.port);
    far = await startWorld({}, { beside: { databaseUrl: url.href, dataDir: near.dataDir } });
    tenant = await near.tenant();
    owner = await tenant.user("owner");
  });
  afterAll(async () => {
    await far.close();
    await proxy.close();
    await near.close();
  });

  const count = async (table: string): Promise<number> =>
    (await near.sql.query(`select count(*)::int as n from ${table} where tenant_id = $1`, [tenant.tenantId])).rows[0].n;

  test.each([
    ["/v1/api-keys", "api_keys", { name: "k" }],
    ["/v1/pairing/enrollment-tokens", "enrollment_tokens", { name: "t" }],
    ["/v1/devices/provision", "devices", { count: 1 }],
  ])("a repeat of POST %s whose COMMIT went unanswered replays its result on every node", async (path, table, body) => {
    const before = await count(table);
    const headers = { "idempotency-key": newId("k") };
    losing = true;
    const lost = await far.call(owner, "POST", path, { body, headers });
    losing = false;
    expect([lost.status, lost.body.code, lost.body.retryable]).toEqual([503, "DATABASE_UNAVAILABLE", true]);
    const repeats = [await far.call(owner, "POST", path, { body, headers }), await near.call(owner, "POST", path, { body, headers })];
    expect(repeats.map((answer) => [answer.status, isReplay(answer)])).toEqual([
      [201, true],
      [201, true],
    ]);
    expect(repeats[0]?.body.data).toEqual(repeats[1]?.body.data);
    expect(await count(table)).toBe(before + 1);
  });

  test("commands whose common COMMIT went unanswered are queued once, and a repeat under the key queues no other", async () => {
    const { deviceId } = await tenant.device();
    const queue = (key: string | null) =>
      far.call(owner, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping" }, headers: key === null ? {} : { "idempotency-key": key } });
    const before = await count("commands");
    const key = newId("k");
    losing = true;
    const lost = await Promise.all([queue(key), ...Array.from({ length: 5 }, () => queue(null))]);
    losing = false;
    expect(lost.map(({ status }) => status)).toEqual(lost.map(() => 503));
    expect(await count("commands")).toBe(before + 6);
    expect(isReplay(await queue(key))).toBe(true);
    expect(await count("commands")).toBe(before + 6);
  });

  test("a command for many devices whose COMMIT went unanswered is queued once for each, and a repeat gives the same commands on every node", async () => {
    const deviceIds = [(await tenant.device()).deviceId, (await tenant.device()).deviceId, (await tenant.device()).deviceId];
    const headers = { "idempotency-key": newId("k") };
    const queue = (on: World) => on.call(owner, "POST", "/v1/devices/commands", { body: { deviceIds, type: "ping" }, headers });
    const before = await count("commands");
    losing = true;
    const lost = await queue(far);
    losing = false;
    expect([lost.status, lost.body.code]).toEqual([503, "DATABASE_UNAVAILABLE"]);
    expect(await count("commands")).toBe(before + 3);
    const repeats = [await queue(far), await queue(near)];
    expect(repeats.map((answer) => [isReplay(answer), answer.body.data.counts])).toEqual(repeats.map(() => [true, { created: 0, replayed: 3, refused: 0 }]));
    expect(repeats[0]?.body.data).toEqual(repeats[1]?.body.data);
    expect(await count("commands")).toBe(before + 3);
  });

  test("a node forgets an API key at once although it cannot know whether the revocation committed", async () => {
    const { keyId, apiKey } = (await near.call(owner, "POST", "/v1/api-keys", { body: { name: "k" } })).body.data;
    const script = asKey(apiKey, tenant.tenantId);
    expect((await far.call(script, "GET", "/v1/devices")).status).toBe(200);
    losing = true;
    expect((await far.call(owner, "DELETE", `/v1/api-keys/${keyId}`)).status).toBe(503);
    losing = false;
    expect((await far.call(script, "GET", "/v1/devices")).status).toBe(401);
  });

  test("24 creations during which the database stops answering have one effect each once all are repeated", {
    timeout: 60_000,
  }, async () => {
    const before = await count("api_keys");
    const keys = Array.from({ length: 24 }, () => newId("k"));
    const create = (key: string) => far.call(owner, "POST", "/v1/api-keys", { body: { name: "k" }, headers: { "idempotency-key": key } });
    const asked = keys.map((key) => create(key).catch(() => null));
    // Stop in the middle: some have committed, the others are at various points.
    await eventually(async () => expect(await count("api_keys")).toBeGreaterThan(before + 2));
    proxy.set({ hold: ["up", "down"], newcomers: "ignore" });
    await Promise.all(asked);
    proxy.calm();
    await Promise.all(keys.map((key) => eventually(async () => expect((await create(key)).status).toBe(201), 30_000)));
    expect(await count("api_keys")).toBe(before + keys.length);
  });
});

describe("timeouts", () => {
  const Out = z.object({ made: z.string() });
  const own = group({
    tag: "Own",
    operations: {
      make: mutation({
        summary: "Makes.",
        auth: ["user"],
        permission: "self",
        tenancy: "none",
        limit: "none",
        input: z.strictObject({ name: z.string() }),
        output: Out,
      }),
    },
  });
  let db: Db;
  let gate = Promise.resolve();
  beforeAll(async () => {
    db = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 4, log: silentLog, namedStatements });
    await db.execute("create table effects (name text not null)");
    await db.execute(`create function dawdle() returns trigger language plpgsql as $$ begin
      if new.name like 'slow%' then perform pg_sleep(1); end if; return null; end $$`);
    // The trigger fires within COMMIT, so the COMMIT itself takes long.
    await db.execute("create constraint trigger dawdle after insert on effects deferrable initially deferred for each row execute function dawdle()");
  });
  afterAll(() => db.close());

  const pipelineOf = () => {
    const handlers = implement(own, {
      make: ({ commit }, { name }) =>
        commit(async (tx) => {
          await tx.query("insert into effects values ($1)", [name]);
          await gate;
          return { made: name };
        }),
    });
    const [entry] = createOperationTable({ own }, { own: { handlers } });
    if (entry === undefined) throw new Error("the catalogue has one operation");
    const pipeline = createPipeline({
      clock: systemClock,
      limits: createLimits({ limiter: createMemoryRateLimiter({ clock: systemClock }), configured: {} }),
      isVisible: async () => true,
      scopeOf: async ({ info }) => ({ ...info, tenantId: null, tenant: null, principal: userOf("u") }),
      idempotency: createIdempotency({ db, secretBox: createSecretBox(randomBytes(32)) }),
      transact: db.tx,
      audit: noAudit,
      holdVersion: async () => undefined,
      useSignature: async () => undefined,
      blocks: nothingBlocked,
      watch: unwatched,
      databaseError,
      duplicateError: () => null,
      record: () => undefined,
      strictOutput: true,
      callTimeoutMs: 100,
    });
    return async (name: string, idempotencyKey: string) => {
      const outcome = await pipeline.call({
        entry,
        info: { requestId: "req_12345678", prefix: "/v1", ip: "192.0.2.1", traceparent: null, shape: "b", shapeChosen: false, headers: {}, peer: "192.0.2.1" },
        transport: "rest",
        tenantHeader: undefined,
        identify: async () => ({ kind: "none" }),
        reidentify: async () => ({ kind: "none" }),
        readInput: () => ({ name }),
        idempotencyKey,
        signed: null,
        gone: createLazyAbort(),
        notes: { calls: [] },
      });
      return outcome.ok
        ? { code: "OK", result: outcome.answer.result, replayed: "Idempotent-Replayed" in outcome.answer.headers }
        : { code: outcome.failure.error.code, reason: outcome.failure.error.details?.["reason"] };
    };
  };
  const effects = async (name: string): Promise<number> => (await db.query("select 1 from effects where name = $1", [name])).length;

  test("a call that times out while it works commits nothing afterwards and happens once when it is repeated", async () => {
    const make = pipelineOf();
    const key = newId("k");
    let open = (): void => undefined;
    gate = new Promise((resolve) => (open = resolve));
    expect(await make("late", key)).toEqual({ code: "SERVICE_UNAVAILABLE", reason: "timeout" });
    expect(await make("late", key)).toMatchObject({ code: "IDEMPOTENCY_IN_PROGRESS" });
    open();
    await eventually(async () => expect(await make("late", key)).toMatchObject({ code: "OK", result: { made: "late" } }));
    expect(await effects("late")).toBe(1);
  });

  test("a call that times out while it commits is first in progress and then replayed", async () => {
    const make = pipelineOf();
    const key = newId("k");
    gate = Promise.resolve();
    expect(await make("slow", key)).toEqual({ code: "SERVICE_UNAVAILABLE", reason: "timeout" });
    expect(await make("slow", key)).toMatchObject({ code: "IDEMPOTENCY_IN_PROGRESS" });
    await eventually(async () => expect(await make("slow", key)).toEqual({ code: "OK", result: { made: "slow" }, replayed: true }));
    expect(await effects("slow")).toBe(1);
  });
});
