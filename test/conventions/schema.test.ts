// The database keeps what the design promises: every row has its parents, every tenant's row says whose it is, and what stands apart says why.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Db, openDb } from "../../server/platform/db.ts";
import { silentLog } from "../../server/platform/log.ts";
import { createTestDatabase } from "../kit/database.ts";
import { type ForeignKey, insertRow, readForeignKeys, sampleRow, writeRow } from "../kit/rows.ts";

/** Columns that name a row of another table, which PostgreSQL does not check. */
const UNCHECKED: Readonly<Record<string, string>> = {
  "device_presence.*": "written on every heartbeat, and inserted with its device in one statement",
  "commands.*": "its insert would take 29 % longer (759 against 982 ms for 20,000); the same transaction has locked the device's row",
  "command_keys.*": "inserted and deleted with its command in one statement; 6 % of every insert",
  "command_events.*": "inserted and deleted with its command in one statement; 10 % of every insert",
  "untold_outcomes.*": "inserted while the command is locked; a job deletes it when retention has deleted the command",
  "outbox_events.tenant_id": "each event would lock the one row of its tenant, which all nodes share",
  "idempotency_keys.tenant_id": "each keyed call would lock the one row of its tenant, and calls outside of tenants have none",
  "used_signatures.agent_id": "each signed change would read the device again, which the signature's check has just found",
  "enrollments.pairing_id": "progress outlives the attempt to pair",
  "pairings.agent_id": "the agent of the device that the row names as well",
};

/** Tables whose rows belong to no tenant, or to none yet. */
const WITHOUT_TENANT: Readonly<Record<string, string>> = {
  gateway_nodes: "they serve the whole installation",
  used_signatures: "an agent belongs to one tenant, and its id is unique everywhere",
  pairings: "nobody's until somebody claims the code",
  enrollments: "nobody's until the code is claimed",
};

/** Unique keys of a tenant's rows that do not begin with the tenant. A primary key of one generated id is not asked. */
const FOUND_BEFORE_TENANT = "found before the tenant is known";
const UNIQUE_EVERYWHERE: Readonly<Record<string, string>> = {
  api_keys_hash_key: FOUND_BEFORE_TENANT,
  api_keys_previous_hash_key: FOUND_BEFORE_TENANT,
  devices_agent_id_key: FOUND_BEFORE_TENANT,
  enrollment_tokens_hash_key: FOUND_BEFORE_TENANT,
  pairings_code_hash_key: FOUND_BEFORE_TENANT,
  stream_tickets_pkey: FOUND_BEFORE_TENANT,
  tenants_slug_key: "one name in the whole installation",
  tenants_durable_object_id_key: "one name in the whole installation",
  command_events_pkey: "one command's history; the index is written four times for every command",
  commands_device_id_seq_key:
    "a device's numbers; the index is written for every command, and an installation's queue cannot stand still while it is built anew",
};

let db: Db;
let foreignKeys: readonly ForeignKey[];
beforeAll(async () => {
  db = await openDb({ url: await createTestDatabase(), poolSize: 1, log: silentLog });
  foreignKeys = await readForeignKeys(db);
});
afterAll(() => db.close());

const ROLLBACK = new Error("roll back");
/** Nothing of it stays. */
const undone = async (run: (tx: Pick<Db, "query">) => Promise<void>): Promise<void> => {
  const end = db.sqlTx(async (tx) => {
    await run(tx);
    throw ROLLBACK;
  });
  await expect(end).rejects.toBe(ROLLBACK);
};
const each = async (run: (key: ForeignKey) => Promise<void>): Promise<void> => {
  expect(foreignKeys.length).toBeGreaterThan(10);
  for (const key of foreignKeys) await run(key);
};
const valuesOf = (row: Readonly<Record<string, unknown>>, columns: readonly string[]): readonly unknown[] => columns.map((column) => row[column]);
const where = (columns: readonly string[]): string => columns.map((column, at) => `${column} = $${at + 1}`).join(" and ");

/** A child with this parent, also where the column may stay empty. */
const insertChild = async (sql: Pick<Db, "query">, { child, columns, parent, parentColumns }: ForeignKey) => {
  const row = await insertRow(sql, parent);
  return insertRow(sql, child, Object.fromEntries(columns.map((column, at) => [column, row[parentColumns[at] ?? ""]])));
};

describe("a foreign key", () => {
  test("refuses a row without its parent", () =>
    each(async ({ name, child, columns }) => {
      const orphan = columns.at(-1) ?? "";
      const refused = db.sqlTx(async (tx) => {
        const row = await sampleRow(tx, child, await insertTenantOf(tx, columns));
        await writeRow(tx, child, { ...row, [orphan]: "nowhere" });
      });
      await expect(refused, name).rejects.toMatchObject({ code: "23503", constraint: name });
    }));

  test("keeps a parent that has children, or takes them along, as its relation says", () =>
    each(async (key) => {
      const { name, child, columns, parent, parentColumns, onDelete } = key;
      if (onDelete === "r") {
        const refused = db.sqlTx(async (tx) => {
          const made = await insertChild(tx, key);
          await tx.query(`delete from ${parent} where ${where(parentColumns)}`, valuesOf(made, columns));
        });
        await expect(refused, name).rejects.toMatchObject({ code: expect.stringMatching(/^2300[13]$/) });
        return;
      }
      expect(onDelete, name).toBe("c");
      await undone(async (tx) => {
        const made = await insertChild(tx, key);
        const values = valuesOf(made, columns);
        await tx.query(`delete from ${parent} where ${where(parentColumns)}`, values);
        expect(await tx.query(`select 1 from ${child} where ${where(columns)}`, values), name).toEqual([]);
      });
    }));

  test("never joins a tenant's row to another tenant's", () => each(async ({ name, columns }) => expect(columns, name).toContain("tenant_id")));

  test("has an index on the child's side, so that a delete of the parent reads few rows", async () => {
    const bare = await db.query<{ name: string }>(
      `select conname as name from pg_constraint c where contype = 'f' and connamespace = 'public'::regnamespace and not exists (
         select 1 from pg_index i where i.indrelid = c.conrelid and i.indpred is null
           and (i.indkey::int2[])[0:cardinality(c.conkey) - 1] operator(pg_catalog.@>) c.conkey)`,
    );
    expect(bare).toEqual([]);
  });

  test("holds for what was there before, too", async () => {
    expect(await db.query("select conname from pg_constraint where contype = 'f' and not convalidated")).toEqual([]);
  });
});

const insertTenantOf = async (sql: Pick<Db, "query">, columns: readonly string[]): Promise<Readonly<Record<string, unknown>>> =>
  columns.includes("tenant_id") && columns.length > 1 ? { tenant_id: (await insertRow(sql, "tenants"))["tenant_id"] } : {};

test("every column that names another table's row has a foreign key, or a reason against it", async () => {
  const parents: Readonly<Record<string, string>> = {
    tenant_id: "tenants",
    deployment_id: "deployments",
    device_id: "devices",
    agent_id: "devices",
    command_id: "commands",
    pairing_id: "pairings",
  };
  const columns = await db.query<{ table: string; name: string }>(
    `select table_name as table, column_name as name from information_schema.columns where table_schema = 'public' order by 1, 2`,
  );
  const unchecked = columns.filter(({ table, name }) => {
    const parent = Object.entries(parents).find(([key]) => name.endsWith(key))?.[1];
    return parent !== undefined && parent !== table && !foreignKeys.some((key) => key.child === table && key.columns.includes(name));
  });
  const reasons = new Set(unchecked.map(({ table, name }) => (`${table}.*` in UNCHECKED ? `${table}.*` : `${table}.${name}`)));
  expect([...reasons].sort()).toEqual(Object.keys(UNCHECKED).sort());
});

test("every table says whose its rows are, or why they are nobody's", async () => {
  const rows = await db.query<{ table: string }>(
    `select t.table_name as table from information_schema.tables t where t.table_schema = 'public' and t.table_name <> '_prisma_migrations' and not exists (
       select 1 from information_schema.columns c where c.table_name = t.table_name and c.column_name = 'tenant_id' and c.is_nullable = 'NO')`,
  );
  expect(rows.map(({ table }) => table).sort()).toEqual(Object.keys(WITHOUT_TENANT).sort());
});

test("every unique key of a tenant's rows begins with the tenant, or says why not", async () => {
  const rows = await db.query<{ name: string }>(
    `select i.indexrelid::regclass::text as name from pg_index i join pg_attribute first on first.attrelid = i.indrelid and first.attnum = i.indkey[0]
      where i.indisunique and i.indrelid::regclass::text in (select table_name from information_schema.columns where table_schema = 'public' and column_name = 'tenant_id')
        and first.attname <> 'tenant_id' and not (i.indisprimary and i.indnkeyatts = 1 and first.attname like '%\\_id')`,
  );
  expect(rows.map(({ name }) => name).sort()).toEqual(Object.keys(UNIQUE_EVERYWHERE).sort());
});
