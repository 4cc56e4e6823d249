// Raw SQL stays in the listed files, and each statement fits the schema: PostgreSQL can plan it and returns the columns of its row type.
import { join } from "node:path";
import type pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { declaredStatements } from "../../server/core/statements.ts";
import { describeStatement, planStatement, type ResultColumn } from "../kit/checks/statement-columns.ts";
import { createTestDatabase, withClient } from "../kit/stores/database.ts";
import { type DeclaredStatement, type Kind, readSources, type Sources } from "./source-statements.ts";

/** The files with raw SQL: the hot paths, and what Prisma cannot say (locks, comparisons of two columns, sets of rows in one statement). */
const RAW = [
  "server/core/leader-election.ts",
  "server/core/many/work-rows.ts",
  "server/core/people/actors.ts",
  "server/core/rows/event-version.ts",
  "server/core/statements.ts",
  "server/features/admin/jobs.ts",
  "server/features/admin/store.ts",
  ...["alerts", "incidents", "notifications", "observe", "preview", "rules"].map((name) => `server/features/alerts/store/${name}.ts`),
  "server/features/api-keys/store.ts",
  ...["app-figures", "apps", "installed", "many"].map((name) => `server/features/apps/store/${name}.ts`),
  ...["destinations", "repositories"].map((name) => `server/features/backup-destinations/store/${name}.ts`),
  ...["backups", "restores"].map((name) => `server/features/backups/store/${name}.ts`),
  ...["policies", "runs"].map((name) => `server/features/backup-policies/store/${name}.ts`),
  "server/features/volumes/store.ts",
  "server/features/audit/store.ts",
  ...["items", "operations"].map((name) => `server/features/bulk-operations/store/${name}.ts`),
  ...["claim", "create", "finish", "list", "lock", "outcomes", "read", "retention", "save", "stuck", "timeline"].map(
    (name) => `server/features/commands/store/${name}.ts`,
  ),
  "server/features/imports/store.ts",
  ...["budgets", "ledger", "rates", "reports"].map((name) => `server/features/costs/store/${name}.ts`),
  "server/features/deployments/store/deployments.ts",
  ...["agents", "contact", "devices", "enrol", "fleets", "groups", "hello", "list", "machine-groups", "offline", "presence", "seen", "sweep", "targets"].map(
    (name) => `server/features/devices/store/${name}.ts`,
  ),
  "server/features/domains/acme/store.ts",
  "server/features/domains/store.ts",
  "server/features/mesh-routes/store.ts",
  "server/features/overview/store.ts",
  "server/features/tunnels/store.ts",
  "server/features/fleets/store.ts",
  "server/features/live/store.ts",
  ...["enrollments", "pairings", "tokens"].map((name) => `server/features/pairing/store/${name}.ts`),
  ...["devices", "freeze", "members", "rollouts"].map((name) => `server/features/rollouts/store/${name}.ts`),
  "server/features/security/block-rows.ts",
  "server/features/security/event-rows.ts",
  "server/features/tenants/store/any-tenant.ts",
  "server/features/tenants/store/metrics.ts",
  ...["forget", "narrow", "read", "write"].map((name) => `server/features/traces/store/${name}.ts`),
  ...["events", "fan-out", "maintenance", "work"].map((name) => `server/features/webhooks/store/${name}.ts`),
  ...["database/database-clock", "database/durability", "idempotency", "mail/mail-rows", "outbox/outbox-rows", "signature-memory"].map(
    (name) => `server/platform/${name}.ts`,
  ),
];

/** JavaScript types by PostgreSQL's type number, as server/platform/database/pg-text-format.ts decodes them. */
const KINDS: Readonly<Record<number, readonly Kind[]>> = {
  16: ["boolean"],
  17: ["bytes"],
  20: ["number"],
  21: ["number"],
  23: ["number"],
  25: ["string"],
  114: ["object", "array", "unknown"],
  701: ["number"],
  1009: ["array"],
  // 'infinity' is a number.
  1184: ["Date", "number"],
  3802: ["object", "array", "unknown"],
};

let sources: Sources;
let url: string;
const texts = new Map<string, string>();
beforeAll(async () => {
  sources = readSources();
  for (const file of RAW) await import(join(import.meta.dirname, "../..", file));
  for (const [text, name] of declaredStatements()) texts.set(name, text);
  url = await createTestDatabase();
}, 120_000);

const differences = ({ row }: Pick<DeclaredStatement, "row">, columns: readonly ResultColumn[]): readonly string[] => {
  const answered = new Set(columns.map(({ name }) => name));
  const missing = [...row].flatMap(([name, { isOptional }]) => (isOptional || answered.has(name) ? [] : [`${name} is not returned`]));
  const wrong = columns.flatMap(({ name, oid }) => {
    const field = row.get(name);
    if (field === undefined) return [`${name} is returned, but not declared`];
    const possible = KINDS[oid] ?? [];
    return [...field.kinds].every((kind) => possible.includes(kind)) ? [] : [`${name} is ${[...field.kinds].join(" or ")} but PostgreSQL returns type ${oid}`];
  });
  return [...missing, ...wrong];
};

/** The defects of each faulty statement, by name. */
const findDefects = async (client: pg.Client): Promise<Readonly<Record<string, unknown>>> => {
  const found: Record<string, unknown> = {};
  for (const statement of sources.statements) {
    const text = texts.get(statement.name) ?? "";
    try {
      const wrong = differences(statement, await describeStatement(client, text));
      if (wrong.length > 0) found[statement.name] = wrong;
      await planStatement(client, text);
    } catch (error) {
      found[statement.name] = String(error);
    }
  }
  return found;
};

describe("raw SQL", () => {
  test("is declared only in the listed files", () => {
    expect([...new Set(sources.statements.map(({ file }) => file))].sort()).toEqual([...RAW].sort());
  });

  test("reaches the database as declared statements", () => {
    expect([...sources.plain]).toEqual([]);
  });

  test("has a unique name for each statement", () => {
    expect(sources.statements.map(({ name }) => name).sort()).toEqual([...texts.keys()].sort());
  });
});

describe("every statement", () => {
  test("can be planned and returns the columns of its row type", () =>
    withClient(url, async (client) => {
      expect(sources.statements.length).toBeGreaterThan(40);
      expect(await findDefects(client)).toEqual({});
    }));

  test("fails the check if its column has another name in the database", () =>
    withClient(url, async (client) => {
      await client.query("alter table command_queue rename column max_attempts to most_attempts");
      try {
        expect(Object.keys(await findDefects(client)).sort()).toEqual(["commands.insert", "commands.poll"]);
      } finally {
        await client.query("alter table command_queue rename column most_attempts to max_attempts");
      }
    }));

  test("fails the check if its row type differs from the returned columns", async () => {
    const row = new Map([
      ["at", { isOptional: false, kinds: new Set<Kind>(["string"]) }],
      ["gone", { isOptional: false, kinds: new Set<Kind>(["number"]) }],
    ]);
    const columns = await withClient(url, (client) => describeStatement(client, "select now() as at, 1 as extra"));
    expect(differences({ row }, columns)).toEqual([
      "gone is not returned",
      "at is string but PostgreSQL returns type 1184",
      "extra is returned, but not declared",
    ]);
  });
});
