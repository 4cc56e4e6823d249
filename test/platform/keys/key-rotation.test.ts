// The master key can change while the installation runs, and no other key is taken for it.

import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { createAudit } from "../../../server/features/audit/index.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { migrate } from "../../../server/platform/database/migrations/migrate.ts";
import { checkMasterKey } from "../../../server/platform/keys/key-check.ts";
import { type KeyProgress, rotateKey } from "../../../server/platform/keys/key-rotation.ts";
import { NOT_SEALED, SEALED, type SealedContext, type SealedPlace } from "../../../server/platform/keys/sealed.ts";
import { createSecretBox, keyIdOf, type SecretBox } from "../../../server/platform/keys/secrets.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { insertRow } from "../../kit/gateway/rows.ts";
import { createEmptyDatabase, createTestDatabase, namedStatements, withClient } from "../../kit/stores/database.ts";

const PLACES = Object.entries<SealedPlace>(SEALED).flatMap(([kind, place]) => place.columns.map((column) => ({ ...place, kind, column })));
const opened: Db[] = [];
const open = async (url: string): Promise<Db> => {
  const db = await openDb({ clock: systemClock, url, poolSize: 4, namedStatements, log: silentLog });
  opened.push(db);
  return db;
};
afterAll(() => Promise.all(opened.map((db) => db.close())));

const [former, next] = [randomBytes(32), randomBytes(32)];
const contextOf = (kind: string, ids: readonly string[]): SealedContext => [kind, ...ids].join("|") as SealedContext; // as: the kinds come from the list

/** So many rows of each place, sealed by the box. */
const fill = async (url: string, box: SecretBox, count: number): Promise<void> =>
  withClient(url, async (client) => {
    for (const { kind, table, column, keys } of PLACES)
      for (let row = 0; row < count; row += 1) {
        const id = `${column}_${String(row).padStart(4, "0")}`;
        const named = Object.fromEntries(keys.map((key) => [key, key === "tenant_id" ? "ten_a" : id]));
        const sealed = box.seal(
          `${kind} ${column} ${row}`,
          contextOf(
            kind,
            keys.map((key) => named[key] ?? ""),
          ),
        );
        await insertRow(client, table, {
          // An account at a certificate authority is the installation's.
          ...(table === "acme_accounts" ? {} : { tenant_id: "ten_a" }),
          ...named,
          // A device has one repository at each destination.
          ...(table === "backup_repositories" ? { destination_id: id } : {}),
          ...(column === "pending_secret" || column === "previous_secret" || column === "headers"
            ? {
                secret: box.seal(
                  "beside",
                  contextOf(
                    kind === "webhook-headers" ? "webhook-secret" : kind,
                    keys.map((key) => named[key] ?? ""),
                  ),
                ),
              }
            : {}),
          [column]: sealed,
        });
      }
  });

/** What each column holds, opened, and with which keys. */
const read = (url: string, box: SecretBox) =>
  withClient(url, async (client) => {
    const found: Record<string, { readonly rows: number; readonly keys: readonly (string | null)[] }> = {};
    for (const { kind, table, column, keys } of PLACES) {
      const { rows } = await client.query<{ context: SealedContext; sealed: Buffer }>(
        `select concat_ws('|', $1::text, ${keys.join(", ")}) as context, ${column} as sealed from ${table} where ${column} is not null`,
        [kind],
      );
      for (const { context, sealed } of rows) box.open(sealed, context);
      found[`${table}.${column}`] = { rows: rows.length, keys: [...new Set(rows.map(({ sealed }) => keyIdOf(sealed)))] };
    }
    return found;
  });

// One rotation, from its beginning to its end.
describe("the rotation", { shuffle: false }, () => {
  let url = "";
  let db: Db;
  let sql: pg.Pool;
  const both = createSecretBox(next, former);
  const rotate = (box: SecretBox, onProgress: (progress: KeyProgress) => void = () => undefined) =>
    rotateKey({ sql, secretBox: box, resign: createAudit({ clock: systemClock, db, secretBox: box, keepDays: 365 }).resign, onProgress });
  beforeAll(async () => {
    url = await createTestDatabase();
    db = await open(url);
    sql = new pg.Pool({ connectionString: url, max: 1 });
    await withClient(url, (client) => insertRow(client, "tenants", { tenant_id: "ten_a" }));
    await fill(url, createSecretBox(former), 205);
    await migrate({ clock: systemClock, url, check: (sql) => checkMasterKey(sql, createSecretBox(former)) });
  }, 120_000);

  afterAll(() => sql.end());

  test("waits for every living node to seal with the new key", async () => {
    await withClient(url, (client) => insertRow(client, "gateway_nodes", { node_id: "node_old", sealing_key: createSecretBox(former).keyId }));
    await expect(rotate(both)).rejects.toThrow(/node_old/);
    await withClient(url, (client) => client.query("update gateway_nodes set seen_at = now() - interval '1 hour'"));
  });

  test("that was interrupted leaves everything readable and goes on", async () => {
    let batches = 0;
    const interrupted = rotate(both, () => {
      batches += 1;
      if (batches === 4) throw new Error("killed");
    });
    await expect(interrupted).rejects.toThrow("killed");
    const between = await read(url, both);
    expect(new Set(Object.values(between).flatMap(({ keys }) => keys)).size).toBe(2);
    await expect(migrate({ clock: systemClock, url, check: (sql) => checkMasterKey(sql, createSecretBox(next)) })).rejects.toThrow(
      /MASTER_KEY: .*another master key/,
    );

    const { resealed, unreadable } = await rotate(both);
    expect({ isRest: resealed > 0, unreadable }).toEqual({ isRest: true, unreadable: 0 });
    // Every place of the list holds rows, and the new key alone opens all of them.
    const after = await read(url, createSecretBox(next));
    for (const [place, { rows, keys }] of Object.entries(after)) expect([place, rows >= 205, keys]).toEqual([place, true, [both.keyId]]);
  });

  test("that is done lets the new key start alone and refuses the former one", async () => {
    const start = (key: Uint8Array) => migrate({ clock: systemClock, url, check: (sql) => checkMasterKey(sql, createSecretBox(key)) });
    expect(await start(next)).toEqual([]);
    await expect(start(former)).rejects.toThrow(/MASTER_KEY: .*MASTER_KEY_OTHER.*master-key rotate/);
    expect(await rotate(createSecretBox(next))).toMatchObject({ resealed: 0, unreadable: 0 });
  });

  test("counts what neither key opens, leaves it, and does not call itself done", async () => {
    const third = createSecretBox(randomBytes(32));
    await withClient(url, (client) => insertRow(client, "mails", { mail_id: "lost", content: third.seal("lost", "mail|lost") }));
    const again = createSecretBox(former, next);
    expect(await rotate(again)).toMatchObject({ unreadable: 1 });
    await expect(migrate({ clock: systemClock, url, check: (sql) => checkMasterKey(sql, createSecretBox(former)) })).rejects.toThrow(/another master key/);
  });
});

test("the audit log's chains are signed again, and one that somebody has moved is still found", async () => {
  const db = await open(await createTestDatabase());
  const auditOf = (box: SecretBox) => createAudit({ clock: systemClock, db, secretBox: box, keepDays: 365 });
  const actor = { type: "operator", id: "cli", email: null } as const;
  for (const tenantId of ["ten_a", "ten_b"])
    await db.tx(async (tx) => {
      const { trail } = auditOf(createSecretBox(former));
      trail.begin(tx);
      await trail.append(tx, { tenantId, actor, action: "test.done", resource: { type: "test", id: null }, code: null, call: null });
    });
  await db.execute("update audit_chains set hash = '\\x00' where tenant_id = 'ten_b'");
  expect(await auditOf(createSecretBox(next, former)).resign()).toBe(1);
  const verdicts = async (box: SecretBox) => {
    const found: Record<string, boolean> = {};
    for await (const { tenantId, isIntact } of auditOf(box).verify()) found[tenantId] = isIntact;
    return found;
  };
  expect(await verdicts(createSecretBox(next))).toEqual({ ten_a: true, ten_b: false });
  expect(await verdicts(createSecretBox(former))).toEqual({ ten_a: false, ten_b: false });
});

describe("the check at start", () => {
  test("of two first starts with different keys, one is refused", async () => {
    const url = await createEmptyDatabase();
    const starts = await Promise.allSettled(
      [former, next].map((key) => migrate({ clock: systemClock, url, check: (sql) => checkMasterKey(sql, createSecretBox(key)) })),
    );
    expect(starts.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  test("an installation from before the check value refuses a key that opens none of its secrets", async () => {
    const url = await createTestDatabase();
    await withClient(url, (client) =>
      insertRow(client, "devices", { tenant_id: "ten_a", device_id: "dev_a", secret: createSecretBox(former).seal("s", "device-secret|ten_a|dev_a") }),
    );
    const start = (key: Uint8Array) => migrate({ clock: systemClock, url, check: (sql) => checkMasterKey(sql, createSecretBox(key)) });
    await expect(start(next)).rejects.toThrow(/MASTER_KEY: this database is sealed with another master key/);
    expect(await start(former)).toEqual([]);
    await expect(start(next)).rejects.toThrow(/another master key/);
  });
});

test("every column of bytes is listed as sealed, or says why it is not", async () => {
  const url = await createTestDatabase();
  const columns = await withClient(url, async (client) => {
    const text = `select table_name || '.' || column_name as name from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
      where table_schema = 'public' and t.table_type = 'BASE TABLE' and udt_name = 'bytea' order by 1`;
    return (await client.query<{ name: string }>(text)).rows.map(({ name }) => name);
  });
  expect([...PLACES.map(({ table, column }) => `${table}.${column}`), ...Object.keys(NOT_SEALED)].sort()).toEqual(columns.sort());
});
