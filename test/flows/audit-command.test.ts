// The audit log on the command line: a whole log verifies, a changed one is named with exit code 1, and the export is complete.
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase } from "../kit/stores/database.ts";
import { bootstrapTenant, createSandbox, node, type Sandbox } from "./processes.ts";

let sandbox: Sandbox;
let sql: pg.Client;
let tenantId: string;
beforeAll(async () => {
  const databaseUrl = await createTestDatabase();
  sandbox = await createSandbox({ DATABASE_URL: databaseUrl, MASTER_KEY: Buffer.alloc(32, 3).toString("base64") });
  ({ tenantId } = await bootstrapTenant(sandbox));
  await bootstrapTenant(sandbox, "--slug", "another");
  sql = new pg.Client({ connectionString: databaseUrl });
  await sql.connect();
}, 60_000);
afterAll(async () => {
  await sql.end();
  await sandbox.remove();
});

const cli = (...args: readonly string[]) => node("server/cli.js", args, { env: sandbox.env });

test("a log that nobody has touched verifies with exit code 0", async () => {
  const { code, stdout } = await cli("audit", "verify");
  expect([code, stdout.trim().split("\n")]).toEqual([
    0,
    [expect.stringMatching(/^ten_\w+ {2}whole: 3 records, ends with 3 [0-9a-f]{64}$/), expect.any(String)],
  ]);
});

test("the export has every record of the tenant, one per line", async () => {
  const { code, stdout } = await cli("audit", "export", "--tenant", tenantId);
  const lines = stdout.trim().split("\n");
  expect([code, lines.map((line) => JSON.parse(line).sequence)]).toEqual([0, [1, 2, 3]]);
  const csv = await cli("audit", "export", "--tenant", tenantId, "--format", "csv");
  expect(csv.stdout.split("\r\n")[0]).toMatch(/^sequence,at,/);
});

test("a wrong use of the command says so with exit code 2", async () => {
  for (const args of [["audit"], ["audit", "export"], ["audit", "export", "--tenant", "t", "--format", "xml"], ["audit", "verify", "--what"]])
    expect((await cli(...args)).code).toBe(2);
});

test("a changed record is named, and the exit code is 1", async () => {
  await sql.query("alter table audit_logs disable trigger audit_append_only");
  const { rows } = await sql.query("update audit_logs set actor_id = 'nobody' where tenant_id = $1 and sequence = 2 returning audit_id", [tenantId]);
  const { code, stdout } = await cli("audit", "verify", "--tenant", tenantId);
  expect([code, stdout.trim()]).toEqual([1, `${tenantId}  BROKEN at record 2 (${rows[0].audit_id}): the record was changed`]);
  const all = await cli("audit", "verify", "--json");
  const verdicts = all.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect([all.code, verdicts.filter(({ isIntact }) => !isIntact).map((verdict) => verdict.tenantId)]).toEqual([1, [tenantId]]);
});
