// The table of database failures: every error code of PostgreSQL has exactly one meaning, and no other file of the server knows any.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { ERRORS, isRetryable } from "../../../protocol/index.ts";
import {
  type DatabaseFailure,
  databaseError,
  failureOf,
  isConflict,
  isUnavailable,
  isUndone,
  MEANINGS,
  type Meaning,
  TenantShare,
} from "../../../server/platform/database/db-errors.ts";
import { SQL_STATES } from "../../kit/sql-states.ts";

const ROWS = Object.entries(MEANINGS) as readonly (readonly [DatabaseFailure, Meaning])[];
const withCode = (code: string): Error => Object.assign(new Error("refused"), { code });

test("every error code of PostgreSQL that blames no request belongs to one row, and all others to none", () => {
  const found = SQL_STATES.map((state) => [state, ROWS.filter(([, { codes }]) => codes.test(state)).map(([failure]) => failure)] as const);
  expect(SQL_STATES.length).toBeGreaterThan(200);
  expect(found.filter(([, rows]) => rows.length > 1)).toEqual([]);
  const states = (failure: DatabaseFailure): readonly string[] => found.filter(([, [row]]) => row === failure).map(([state]) => state);
  expect(Object.fromEntries(ROWS.map(([failure]) => [failure, states(failure)]))).toEqual({
    conflict: ["40000", "40001", "40P01"],
    lock_timeout: ["55P03"],
    statement_timeout: ["57014"],
    transaction_timeout: ["25P03", "25P04"],
    no_answer: ["40003"],
    no_session: ["53300", "53400"],
    tenant_share: [],
    out_of_memory: ["53000", "53200"],
    read_only: ["25006"],
    full: ["53100", "58030"],
    away: ["08000", "08003", "08006", "08001", "08004", "08007", "08P01", "28000", "28P01", "3D000", "57P01", "57P02", "57P03", "57P04", "57P05"],
  });
});

test("a tenant beyond its share is answered 429 with what it has reached", () => {
  const { code, status, retryAfter, details } = databaseError(new TenantShare("lists", 3)) ?? {};
  expect({ code, status, retryAfter, details }).toEqual({
    ...{ code: "RATE_LIMIT_EXCEEDED", status: 429, retryAfter: 2 },
    details: { bucket: "database.lists", limit: 3, reason: "tenant_share" },
  });
});

test.each(ROWS.filter(([failure]) => failure !== "tenant_share"))(
  "%s is answered 503 with the time to come back, and its columns agree with each other",
  (failure, meaning) => {
    const state = SQL_STATES.find((each) => meaning.codes.test(each)) ?? "";
    const error = withCode(state);
    const answer = databaseError(error);
    expect(ERRORS[meaning.answer].status).toBe(503);
    expect(isRetryable(meaning.answer)).toBe(true);
    expect({ failure: failureOf(error), code: answer?.code, retryAfter: answer?.retryAfter }).toEqual({
      failure,
      code: meaning.answer,
      retryAfter: meaning.retryAfter,
    });
    expect(answer?.retryAfter).toBeGreaterThan(0);
    expect([isConflict(error), isUndone(error), isUnavailable(error)]).toEqual([meaning.repeated, meaning.undone, meaning.lasts]);
    // Repeating by itself what may have been written would write it twice.
    if (meaning.repeated) expect(meaning.undone).toBe(true);
    // A session of which nobody knows what runs on it must not serve another caller.
    if (!meaning.undone) expect(meaning.session).not.toBe("kept");
  },
);

test("no other file of the server names a code of PostgreSQL or of Prisma", () => {
  const server = fileURLToPath(new URL("../../../server", import.meta.url));
  const states = new RegExp(`["'\`|^(](?:${SQL_STATES.join("|")}|P[12]\\d{3})["'\`|$)]`);
  const naming = readdirSync(server, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .filter((name) => states.test(readFileSync(`${server}/${name}`, "utf8")));
  expect(naming.map((name) => name.split("/").at(-1))).toEqual(["db-errors.ts"]);
});
