// One key, one run: under concurrency, after a crash, and for a day.
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Db, openDb } from "../../server/platform/db.ts";
import { type Begun, createIdempotency, type Idempotency, type IdempotentCall } from "../../server/platform/idempotency.ts";
import { silentLog } from "../../server/platform/log.ts";
import { createSecretBox } from "../../server/platform/secrets.ts";
import { createTestDatabase } from "../kit/database.ts";

let db: Db;
let idempotency: Idempotency;
beforeAll(async () => {
  db = await openDb({ url: await createTestDatabase(), poolSize: 5, log: silentLog });
  idempotency = createIdempotency({ db, secretBox: createSecretBox(randomBytes(32)) });
});
afterAll(() => db.close());

const call = (body = "a", scope = randomUUID()): IdempotentCall => ({ tenantId: "ten_1", scope, fingerprint: createHash("sha256").update(body).digest() });
const run = (begun: Begun) => {
  if (begun.kind !== "run") throw new Error(`expected to run, got ${begun.kind}`);
  return begun;
};
const kindOf = async (request: IdempotentCall) => (await idempotency.begin(request)).kind;

describe("an idempotency key", () => {
  test("lets exactly one of 30 concurrent requests run", async () => {
    const request = call();
    const kinds = await Promise.all(Array.from({ length: 30 }, () => kindOf(request)));
    expect(kinds.filter((kind) => kind === "run")).toHaveLength(1);
    expect(kinds.filter((kind) => kind === "in_progress")).toHaveLength(29);
  });

  test("repeats the first answer, whatever its shape", async () => {
    for (const body of [{ secret: "s", list: [1, null] }, null, "text", undefined]) {
      const request = call();
      await run(await idempotency.begin(request)).done({ status: 201, body });
      expect(await idempotency.begin(request)).toEqual({ kind: "replay", status: 201, body });
    }
  });

  test("is refused for another payload, during the run and after it", async () => {
    const request = call("a");
    const other = { ...request, fingerprint: call("b").fingerprint };
    const first = run(await idempotency.begin(request));
    expect(await idempotency.begin(other)).toEqual({ kind: "reused", firstSeenAt: expect.any(Date) });
    await first.done({ status: 200, body: {} });
    expect(await kindOf(other)).toBe("reused");
  });

  test("of one tenant is not that of another", async () => {
    const request = call();
    await run(await idempotency.begin(request)).done({ status: 200, body: "of ten_1" });
    expect(await kindOf({ ...request, tenantId: "ten_2" })).toBe("run");
    expect(await kindOf({ ...request, tenantId: null })).toBe("run");
  });

  test("runs again after it was abandoned", async () => {
    const request = call();
    await run(await idempotency.begin(request)).abandon();
    expect(await kindOf(request)).toBe("run");
  });

  test("is taken over from a dead holder, whose late word then changes nothing", async () => {
    const request = call();
    const dead = run(await idempotency.begin(request));
    await db.query("update idempotency_keys set locked_until = locked_until - interval '31 seconds' where scope like $1", [`%${request.scope}`]);
    const successor = run(await idempotency.begin(request));
    await dead.done({ status: 200, body: "late" });
    await dead.abandon();
    expect(await kindOf(request)).toBe("in_progress");
    await successor.done({ status: 200, body: "right" });
    expect(await idempotency.begin(request)).toMatchObject({ kind: "replay", body: "right" });
  });

  test("is free again after a day, and the sweep removes its row", async () => {
    const request = call();
    await run(await idempotency.begin(request)).done({ status: 200, body: "old" });
    await db.query("update idempotency_keys set expires_at = now() - interval '1 second' where scope like $1", [`%${request.scope}`]);
    expect(await kindOf({ ...request, fingerprint: call("b").fingerprint })).toBe("run");
    await db.query("update idempotency_keys set expires_at = now() - interval '1 second' where scope like $1", [`%${request.scope}`]);
    for (const job of idempotency.jobs) await job.run(new AbortController().signal);
    expect(await db.query("select 1 from idempotency_keys where scope like $1", [`%${request.scope}`])).toEqual([]);
  });

  test("keeps its answer unreadable in the database", async () => {
    const request = call();
    await run(await idempotency.begin(request)).done({ status: 201, body: { apiKey: "shown-only-once" } });
    const [row] = await db.query<{ answer: Buffer }>("select answer from idempotency_keys where scope like $1", [`%${request.scope}`]);
    expect(row?.answer.includes("shown-only-once")).toBe(false);
  });
});
