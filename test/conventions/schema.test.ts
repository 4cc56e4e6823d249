// The schema guarantees that every row has its parents and its tenant. Every exception has a reason.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../server/core/clock.ts";
import { type Db, openDb } from "../../server/platform/database/db.ts";
import { silentLog } from "../../server/platform/telemetry/log.ts";
import { type ForeignKey, insertRow, readForeignKeys, sampleRow, writeRow } from "../kit/gateway/rows.ts";
import { createTestDatabase } from "../kit/stores/database.ts";

/** Columns that refer to another table without a foreign key. */
const UNCHECKED: Readonly<Record<string, string>> = {
  "device_presence.*": "written on every heartbeat, and inserted with its device in one statement",
  "commands.*": "a foreign key slows inserts by 29 % (from 759 to 982 ms for 20,000), and the transaction has locked the device's row anyway",
  "command_queue.*": "inserted with its command in one statement, and deleted in the one that ends it; a foreign key takes a share of every insert",
  "trace_spans.*": "come in batches of thousands, and outlive the devices and commands that they tell of",
  "rollout_devices.command_id": "retention deletes commands, and the history of the rollout stays",
  "apps.command_id": "retention deletes commands, and the app stays",
  "deployments.command_id": "as of the app",
  "bulk_items.command_id": "retention deletes commands, and the item says what became of it",
  "backups.command_id": "as of the app",
  "restores.command_id": "as of the app",
  "volumes.command_id": "as of the app",
  "volume_scans.command_id": "as of the app",
  "untold_outcomes.*": "inserted while the command is locked; a job deletes it when retention has deleted the command",
  "audit_logs.tenant_id": "the log outlives the tenant, and the installation has one too",
  "audit_chains.tenant_id": "the log outlives the tenant, and the installation has one too",
  "security_events.tenant_id": "the installation has its own, and every flush would lock its tenants' rows",
  "security_alerts.tenant_id": "the installation has its own",
  "security_rules.tenant_id": "the installation may have its own",
  "blocked_entities.tenant_id": "the installation has its own",
  "outbox_events.tenant_id": "every event of every node would lock its tenant's row",
  "outbox_pending.tenant_id": "written with its events",
  "outbox_dispatches.tenant_id": "every round of the relay would lock the row of each tenant",
  "idempotency_keys.tenant_id": "every keyed call would lock its tenant's row, and calls outside of tenants have none",
  "used_signatures.agent_id": "every signed change would read the device again, right after the signature check",
  "user_profiles.default_tenant_id": "a person's choice, which counts only while they are a member",
  "enrollments.pairing_id": "progress outlives the pairing",
  "cost_months.tenant_id": "as of the days that it sums",
  "cost_months.device_id": "as of the days that it sums",
  "cost_app_months.tenant_id": "as of the days that it sums",
  "cost_app_months.device_id": "as of the days that it sums",
  "cost_app_months.deployment_id": "as of the days that it sums",
  "cost_totals.tenant_id": "as of the days that it sums",
  "cost_days.tenant_id": "one row per device and day, for days of devices that are gone, too",
  "cost_days.device_id": "as of the tenant; the device '' stands for what all share",
  "cost_app_days.tenant_id": "one row per app and day, for days of apps that are gone, too",
  "cost_app_days.device_id": "as of the tenant",
  "cost_app_days.deployment_id": "as of the tenant",
  "device_metrics.*": "one row per device and minute",
  "webhook_deliveries.tenant_id": "every event that the relay hands on would lock its tenant's row",
  "tenant_metrics.tenant_id": "every round of the relay would lock the row of each tenant",
  "sessions.claimed_tenant_id": "a provider's token may name a tenant that this installation does not have",
  "sign_in_links.claimed_tenant_id": "as the session that it opens",
  "pairings.agent_id": "belongs to the device in the same row",
};

/** Tables whose rows belong to no tenant, or to none yet. */
const WITHOUT_TENANT: Readonly<Record<string, string>> = {
  gateway_nodes: "nodes serve the whole installation",
  acme_accounts: "the installation's own account at a certificate authority",
  installation: "one row for the whole installation",
  blocked_entities_version: "one number for the whole installation",
  feature_flags: "decided for the whole installation",
  announcements: "for everybody in the installation",
  announcement_dismissals: "a person may belong to many tenants",
  job_runs: "jobs serve the whole installation",
  metric_progress: "how far the roll-up has come with all tenants",
  provider_events: "a payment provider's event counts once for the whole installation",
  user_profiles: "a person may belong to several tenants",
  mails: "mail about an account belongs to none",
  users: "a person may belong to many tenants",
  sessions: "a person may belong to many tenants",
  sign_in_links: "lets in a person, who may belong to many tenants",
  used_signatures: "an agent belongs to one tenant, and its id is unique everywhere",
  pairings: "without a tenant until a user claims the code",
  enrollments: "without a tenant until a user claims the code",
};

/** Unique keys of a tenant's rows that do not begin with the tenant. Primary keys of one generated id are exempt. */
const FOUND_BEFORE_TENANT = "found before the tenant is known";
const UNIQUE_EVERYWHERE: Readonly<Record<string, string>> = {
  api_keys_hash_key: FOUND_BEFORE_TENANT,
  invites_hash_key: FOUND_BEFORE_TENANT,
  api_keys_previous_hash_key: FOUND_BEFORE_TENANT,
  devices_agent_id_key: FOUND_BEFORE_TENANT,
  enrollment_tokens_hash_key: FOUND_BEFORE_TENANT,
  pairings_code_hash_key: FOUND_BEFORE_TENANT,
  stream_tickets_pkey: FOUND_BEFORE_TENANT,
  impersonations_hash_key: FOUND_BEFORE_TENANT,
  slug_reservations_pkey: "unique in the whole installation",
  tunnels_hostname_key: "visitors name nothing but a host, so it is one tunnel's in the whole installation",
  tunnels_port_key: "a port of the edge is one tunnel's in the whole installation",
  tunnels_token_hash_key: "a connector names nothing but its token",
  custom_domains_verified_hostname_key: "the first tenant that proves a name has it in the whole installation",
  tenants_slug_key: "unique in the whole installation",
  tenants_durable_object_id_key: "unique in the whole installation",
  outbox_pending_pkey: "the relay takes what waits of all tenants in order of position",
  commands_device_id_seq_key: "numbers per device; every command writes this index, and rebuilding it would stop an installation's queue",
};

let db: Db;
let foreignKeys: readonly ForeignKey[];
beforeAll(async () => {
  db = await openDb({ clock: systemClock, url: await createTestDatabase(), poolSize: 1, log: silentLog });
  foreignKeys = await readForeignKeys(db);
});
afterAll(() => db.close());

const ROLLBACK = new Error("roll back");
/** Runs in a transaction that rolls back. */
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

/** Inserts a child with its parent, even if the column is nullable. */
const insertChild = async (sql: Pick<Db, "query">, { child, columns, parent, parentColumns }: ForeignKey) => {
  // Some children need a device. It has a deployment of its own, so that nothing but the child belongs to the one in question.
  const tenant = parent === "deployments" ? { tenant_id: (await insertRow(sql, "devices"))["tenant_id"] } : {};
  const row = await insertRow(sql, parent, tenant);
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

  test("restricts or cascades the deletion of a parent, as its relation declares", () =>
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

  test("never connects rows of two tenants", () =>
    each(async ({ name, parent, columns }) => {
      if (!(parent in WITHOUT_TENANT)) expect(columns, name).toContain("tenant_id");
    }));

  test("has an index on the child's columns, so deleting a parent reads few rows", async () => {
    const bare = await db.query<{ name: string }>(
      `select conname as name from pg_constraint c where contype = 'f' and connamespace = 'public'::regnamespace and not exists (
         select 1 from pg_index i where i.indrelid = c.conrelid and i.indpred is null
           and (i.indkey::int2[])[0:cardinality(c.conkey) - 1] operator(pg_catalog.@>) c.conkey)`,
    );
    expect(bare).toEqual([]);
  });

  test("is validated for existing rows", async () => {
    expect(await db.query("select conname from pg_constraint where contype = 'f' and not convalidated")).toEqual([]);
  });
});

const insertTenantOf = async (sql: Pick<Db, "query">, columns: readonly string[]): Promise<Readonly<Record<string, unknown>>> =>
  columns.includes("tenant_id") && columns.length > 1 ? { tenant_id: (await insertRow(sql, "tenants"))["tenant_id"] } : {};

test("every column that refers to another table has a foreign key, or a reason against one", async () => {
  const parents: Readonly<Record<string, string>> = {
    tenant_id: "tenants",
    deployment_id: "deployments",
    device_id: "devices",
    agent_id: "devices",
    command_id: "commands",
    pairing_id: "pairings",
  };
  const columns = await db.query<{ table: string; name: string }>(
    `select table_name as table, column_name as name from information_schema.columns join information_schema.tables using (table_schema, table_name)
      where table_schema = 'public' and table_type = 'BASE TABLE' order by 1, 2`,
  );
  const unchecked = columns.filter(({ table, name }) => {
    const parent = Object.entries(parents).find(([key]) => name.endsWith(key))?.[1];
    return parent !== undefined && parent !== table && !foreignKeys.some((key) => key.child === table && key.columns.includes(name));
  });
  const reasons = new Set(unchecked.map(({ table, name }) => (`${table}.*` in UNCHECKED ? `${table}.*` : `${table}.${name}`)));
  expect([...reasons].sort()).toEqual(Object.keys(UNCHECKED).sort());
});

test("every table has a tenant column that is never null, or a reason against one", async () => {
  const rows = await db.query<{ table: string }>(
    `select t.table_name as table from information_schema.tables t where t.table_schema = 'public' and t.table_type = 'BASE TABLE' and t.table_name <> '_prisma_migrations' and not exists (
       select 1 from information_schema.columns c where c.table_name = t.table_name and c.column_name = 'tenant_id' and c.is_nullable = 'NO')`,
  );
  expect(rows.map(({ table }) => table).sort()).toEqual(Object.keys(WITHOUT_TENANT).sort());
});

test("every unique key of a tenant's rows begins with the tenant, or has a reason not to", async () => {
  const rows = await db.query<{ name: string }>(
    `select i.indexrelid::regclass::text as name from pg_index i join pg_attribute first on first.attrelid = i.indrelid and first.attnum = i.indkey[0]
      where i.indisunique and i.indrelid::regclass::text in (select table_name from information_schema.columns where table_schema = 'public' and column_name = 'tenant_id')
        and first.attname <> 'tenant_id' and not (i.indisprimary and i.indnkeyatts = 1 and first.attname like '%\\_id')`,
  );
  expect(rows.map(({ name }) => name).sort()).toEqual(Object.keys(UNIQUE_EVERYWHERE).sort());
});
