// One key has one effect: under concurrency, after a crash, and for a day.

import { createHash, randomBytes, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../server/core/clock.ts";
import type { IdempotentCall, KnownCall, StoredAnswer } from "../../server/core/ports/idempotency.ts";
import { type Db, openDb } from "../../server/platform/database/db.ts";
import { createIdempotency, type PostgresIdempotencyStore } from "../../server/platform/idempotency.ts";
import { createSecretBox } from "../../server/platform/keys/secrets.ts";
import { silentLog } from "../../server/platform/telemetry/log.ts";
import { createTestDatabase, withClient } from "../kit/stores/database.ts";

let db: Db;
let url = "";
let idempotency: PostgresIdempotencyStore;
beforeAll(async () => {
  url = await createTestDatabase();
  db = await openDb({ clock: systemClock, url, poolSize: 5, log: silentLog });
  idempotency = createIdempotency({ db, secretBox: createSecretBox(randomBytes(32)) });
  await db.execute("create table effects (scope text not null)");
});
afterAll(() => db.close());

const call = (body = "a", scope = randomUUID()): IdempotentCall => ({ tenantId: "ten_1", scope, fingerprint: createHash("sha256").update(body).digest() });
const OK: StoredAnswer = { status: 201, body: { made: true } };

/** Runs a keyed operation; resolves to the known answer if it must not run. */
const run = (request: IdempotentCall, answer = OK, during: () => Promise<unknown> = async () => undefined): Promise<KnownCall | null> =>
  db.sqlTx(async (tx) => {
    const known = await idempotency.claim(tx, request);
    if (known !== null) return known;
    await tx.execute("insert into effects values ($1)", [request.scope]);
    await during();
    await idempotency.keep(tx, request, answer);
    return null;
  });
const effects = async ({ scope }: IdempotentCall): Promise<number> => (await db.query("select 1 from effects where scope = $1", [scope])).length;
const age = ({ scope }: IdempotentCall) =>
  db.query("update idempotency_keys set expires_at = now() - interval '1 second' where scope = $1 returning 1", [scope]);

/** A point that waits until the test opens it. */
const createGate = () => {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
};

describe("idempotency keys", () => {
  test("of 30 concurrent requests with one key, one has its effect", async () => {
    const request = call();
    const told = await Promise.all(Array.from({ length: 30 }, () => run(request)));
    expect(told.filter((known) => known === null)).toHaveLength(1);
    expect(new Set(told.map((known) => known?.kind ?? "ran"))).not.toContain("reused");
    expect(await effects(request)).toBe(1);
  });

  test("a key is in progress while its transaction is open, and a repeat learns so at once", async () => {
    const request = call();
    const [entered, left] = [createGate(), createGate()];
    const first = run(request, OK, () => {
      entered.open();
      return left.opened;
    });
    await entered.opened;
    expect(await run({ ...request })).toEqual({ kind: "in_progress" });
    expect(await idempotency.find(request)).toBeNull();
    left.open();
    expect(await first).toBeNull();
    expect(await run(request)).toEqual({ kind: "replay", ...OK });
    expect(await effects(request)).toBe(1);
  });

  test("a repeat gets the first answer, whatever its shape", async () => {
    for (const body of [{ secret: "s", list: [1, null] }, null, "text", undefined]) {
      const request = call();
      await run(request, { status: 201, body });
      expect(await idempotency.find(request)).toEqual({ kind: "replay", status: 201, body });
      expect(await run(request)).toEqual({ kind: "replay", status: 201, body });
    }
  });

  test("a key with another payload is refused", async () => {
    const request = call("a");
    const other = { ...request, fingerprint: call("b").fingerprint };
    await run(request);
    expect(await idempotency.find(other)).toEqual({ kind: "reused", firstSeenAt: expect.any(Date) });
    expect(await run(other)).toMatchObject({ kind: "reused" });
    expect(await effects(request)).toBe(1);
  });

  test("two tenants may use the same key", async () => {
    const request = call();
    await run(request);
    expect(await run({ ...request, tenantId: "ten_2" })).toBeNull();
    expect(await run({ ...request, tenantId: null })).toBeNull();
  });

  test("a failed transaction leaves neither effect nor answer, and the key may run again", async () => {
    const request = call();
    await expect(run(request, OK, () => Promise.reject(new Error("changed my mind")))).rejects.toThrow("changed my mind");
    expect(await effects(request)).toBe(0);
    expect(await run(request)).toBeNull();
  });

  test("a key stays in progress while an orphaned transaction may still commit, and then replays its answer", async () => {
    const request = call();
    await withClient(url, async (lost) => {
      await lost.query("begin");
      await idempotency.claim({ query: async (text, values = []) => (await lost.query(text, [...values])).rows }, request);
      expect(await run(request)).toEqual({ kind: "in_progress" });
      await idempotency.keep({ query: async (text, values = []) => (await lost.query(text, [...values])).rows }, request, OK);
      expect(await run(request)).toEqual({ kind: "in_progress" });
      await lost.query("commit");
    });
    expect(await run(request)).toEqual({ kind: "replay", ...OK });
    expect(await effects(request)).toBe(0);
  });

  test("an effect that bypasses the claim is rolled back", async () => {
    const request = call();
    await run(request);
    const bypassing = db.sqlTx(async (tx) => {
      await tx.execute("insert into effects values ($1)", [request.scope]);
      await idempotency.keep(tx, request, OK);
    });
    await expect(bypassing).rejects.toThrow(/idempotency_keys_pkey/);
    expect(await effects(request)).toBe(1);
  });

  test("a key is free again after a day, and the sweep deletes its row", async () => {
    const request = call();
    await run(request);
    expect(await age(request)).toHaveLength(1);
    expect(await idempotency.find(request)).toBeNull();
    expect(await run({ ...request, fingerprint: call("b").fingerprint })).toBeNull();
    expect(await age(request)).toHaveLength(1);
    for (const job of idempotency.jobs) await job.run(new AbortController().signal);
    expect(await db.query("select 1 from idempotency_keys where scope = $1", [request.scope])).toEqual([]);
  });

  test("the stored answer is unreadable in the database", async () => {
    const request = call();
    await run(request, { status: 201, body: { apiKey: "shown-only-once" } });
    const [row] = await db.query<{ answer: Buffer }>("select answer from idempotency_keys where scope = $1", [request.scope]);
    expect(row?.answer.includes("shown-only-once")).toBe(false);
  });
});
