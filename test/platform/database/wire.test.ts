// Values as text, as PostgreSQL reads and writes them: compared with a real server, value by value.

import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { arrayText, readTimestamp } from "../../../server/platform/database/pg-text-format.ts";
import { SEED } from "../../kit/gateway/seed.ts";
import { createTestDatabase } from "../../kit/stores/database.ts";

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
let db: Db;
beforeAll(async () => {
  db = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 2, log: silent as never });
});
afterAll(async () => {
  await db.close();
});

// NUL is the one character that text in PostgreSQL cannot hold.
const text = fc.oneof(
  fc.string({ unit: "binary" }).map((value) => value.replaceAll("\0", "")),
  fc.constantFrom("", "NULL", "null", "a,b", "{x}", '"', "\\", " ", "\t", "dev_01", "2026-11-21T20:42:00.000Z"),
);

test("an array of strings survives the round trip, whatever it contains", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.option(text), { maxLength: 12 }), async (items) => {
      const [row] = await db.query<{ items: (string | null)[] }>("select $1::text[] as items", [items]);
      expect(row?.items).toEqual(items);
    }),
    { seed: SEED, numRuns: 300 },
  );
});

test("numbers, booleans, buffers, times, documents and nested arrays survive the round trip", async () => {
  const now = new Date();
  const [row] = await db.query(
    `select $1::bigint[] as numbers, $2::boolean[] as yes, $3::bytea[] as bytes, $4::timestamptz[] as times, $5::jsonb[] as documents, $6::text[][] as nested`,
    [[1, -2, null], [true, false], [Buffer.from([0, 92, 34, 255])], [now, null], [JSON.stringify({ a: ['"', "\\", "NULL"] })], [["a"], ["b,"]]],
  );
  expect(row).toEqual({
    numbers: [1, -2, null],
    yes: [true, false],
    bytes: [Buffer.from([0, 92, 34, 255])],
    times: [now, null],
    documents: [{ a: ['"', "\\", "NULL"] }],
    nested: [["a"], ["b,"]],
  });
});

test("a value without a text form is refused instead of becoming [object Object]", () => {
  expect(() => arrayText([{ a: 1 }])).toThrow(TypeError);
});

test("a time is read as PostgreSQL wrote it", async () => {
  const instant = fc.date({ min: new Date("1000-01-01T00:00:00Z"), max: new Date("9999-12-31T23:59:59Z"), noInvalidDate: true });
  await fc.assert(
    fc.asyncProperty(instant, async (date) => {
      const [row] = await db.query<{ text: string; time: Date }>("select $1::timestamptz(3)::text as text, $1::timestamptz(3) as time", [date]);
      expect(readTimestamp(row?.text ?? "")).toBe(date.getTime());
      expect(row?.time).toEqual(date);
    }),
    { seed: SEED, numRuns: 200 },
  );
});

test.each(["infinity", "2026-11-21 20:42:00.123456+00", "2026-11-21 20:42:00+01", "0044-03-15 12:00:00+00 BC"])(
  "the time %s is left to the driver",
  (other) => {
    expect(readTimestamp(other)).toBeNull();
  },
);
