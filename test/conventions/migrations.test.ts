// A migration lets the former build go on, and locks no table that holds rows for longer than a moment.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { OUTSIDE_TRANSACTION, statementsOf } from "../../server/platform/database/migrations/migration-scripts.ts";
import { migrationsFolder } from "../../server/platform/database/migrations/schema-engine.ts";

/** The newest migration from before this rule: the installations stood still while it ran. */
const BEFORE_THE_RULE = "20261123043034_drift_and_secret_names";

/** In a comment right above the statement, followed by the reason. */
const REASON = /^--\s*Safe because \S.{10,}/m;

const TABLE = String.raw`(?:only\s+)?(?:if exists\s+)?"?(?<table>\w+)"?`;
const RULES: readonly { readonly pattern: RegExp; readonly because: string }[] = [
  {
    pattern: new RegExp(String.raw`^create\s+(?:unique\s+)?index\s+(?!concurrently)[\s\S]*?\bon\s+${TABLE}`, "i"),
    because: "stops every write while it builds: use CONCURRENTLY",
  },
  { pattern: new RegExp(String.raw`^alter\s+table\s+${TABLE}[\s\S]*\bdrop\s+column\b`, "i"), because: "the former build still reads the column" },
  { pattern: new RegExp(String.raw`^alter\s+table\s+${TABLE}[\s\S]*\brename\b`, "i"), because: "the former build knows the former name" },
  {
    pattern: new RegExp(String.raw`^alter\s+table\s+${TABLE}[\s\S]*\bset\s+not\s+null\b`, "i"),
    because: "reads the whole table under a lock, and the former build may write null",
  },
  {
    pattern: new RegExp(String.raw`^alter\s+table\s+${TABLE}[\s\S]*\balter\s+(?:column\s+)?"?\w+"?\s+(?:set\s+data\s+)?type\b`, "i"),
    because: "rewrites the whole table under a lock",
  },
  { pattern: new RegExp(String.raw`^drop\s+table\s+${TABLE}`, "i"), because: "the former build still uses the table" },
];
const CREATED = /^create\s+(?:unlogged\s+)?table\s+(?:if not exists\s+)?"?(\w+)"?/i;
const OUTSIDE_ONLY =
  /^(?:create\s+(?:unique\s+)?index\s+concurrently\s+"?\w+"?\s+on\b|drop\s+index\s+concurrently\s+if\s+exists\b|alter\s+table\s+\S+\s+validate\s+constraint\b)/i;

interface Piece {
  readonly comment: string;
  readonly statement: string;
}

/** Statements with the comment lines right above each. Function bodies may fall apart, which no rule minds. */
const piecesOf = (script: string): readonly Piece[] =>
  script.split(";").map((part) => {
    const lines = part.trim().split("\n");
    const isComment = (line: string) => line.trim().startsWith("--");
    return {
      comment: lines.filter(isComment).join("\n"),
      statement: lines
        .filter((line) => !isComment(line))
        .join("\n")
        .trim(),
    };
  });

const complaints = (script: string): readonly string[] => {
  if (script.startsWith(OUTSIDE_TRANSACTION))
    return statementsOf(script).flatMap((statement) =>
      OUTSIDE_ONLY.test(statement) ? [] : [`${statement}: does not belong into a script outside of a transaction`],
    );
  const pieces = piecesOf(script);
  const fresh = new Set(pieces.flatMap(({ statement }) => CREATED.exec(statement)?.[1] ?? []));
  return pieces.flatMap(({ comment, statement }) =>
    RULES.flatMap(({ pattern, because }) => {
      const table = pattern.exec(statement)?.groups?.["table"];
      return table === undefined || fresh.has(table) || REASON.test(comment)
        ? []
        : [`${statement.split("\n")[0]}: ${because}; or say above it: -- Safe because ...`];
    }),
  );
};

test("every new migration can run beside the former build, or says why it need not", async () => {
  const names = (await readdir(migrationsFolder(), { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  expect(names).toContain(BEFORE_THE_RULE);
  const found = await Promise.all(
    names
      .filter((name) => name > BEFORE_THE_RULE)
      .map(async (name) => complaints(await readFile(join(migrationsFolder(), name, "migration.sql"), "utf8")).map((complaint) => `${name}: ${complaint}`)),
  );
  expect(found.flat()).toEqual([]);
});

describe("the rule", () => {
  test.each([
    "create index a on devices (b)",
    'CREATE UNIQUE INDEX "a" ON "devices"("b")',
    "alter table devices drop column b",
    'ALTER TABLE "devices" ADD COLUMN "c" TEXT,\nDROP COLUMN "b"',
    "alter table devices rename column a to b",
    "alter table devices alter column a set not null",
    "alter table devices alter column a type bigint",
    "drop table devices",
    "-- Runs outside of a transaction.\nupdate devices set a = 1",
    "-- Runs outside of a transaction.\ncreate index a on devices (b)",
  ])("refuses: %s", (script) => expect(complaints(`${script};\n`)).toHaveLength(1));

  test.each([
    "create table fresh (a int); create index a on fresh (a)",
    "alter table devices add column b text",
    "-- Safe because the table has a row for each plan.\ncreate index a on plans (b)",
    "alter table devices add column b text;\n-- Safe because no build has read it since 0.3.0.\nalter table devices drop column c",
    "-- Runs outside of a transaction.\ncreate index concurrently a on devices (b);\ndrop index concurrently if exists c",
  ])("allows: %s", (script) => expect(complaints(`${script};\n`)).toEqual([]));
});
