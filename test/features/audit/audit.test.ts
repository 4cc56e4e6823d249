// The audit log: what a record shows and hides, that the chain has no gap under load, and that each kind of tampering is found.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AuditLog } from "../../../protocol/index.ts";
import { systemClock } from "../../../server/core/clock.ts";
import { hashOfRow } from "../../../server/features/audit/chain.ts";
import { isSecretName, MASK, readChanges } from "../../../server/features/audit/changes.ts";
import { createAudit } from "../../../server/features/audit/index.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { createSecretBox } from "../../../server/platform/keys/secrets.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { winnersOf } from "../../kit/gateway/races.ts";
import { asBearer, type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";

const FREE = { RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off", RATE_LIMIT_PAIRING: "off" };
let world: World;
let db: Db;
const secretBox = createSecretBox(Buffer.alloc(32, 7));
const auditOf = (keepDays = 365) => createAudit({ clock: systemClock, db, secretBox, keepDays });
beforeAll(async () => {
  world = await startWorld(FREE);
  db = await openDb({ clock: systemClock, url: world.databaseUrl, poolSize: 4, log: silentLog, namedStatements: process.env["TEST_POOLER"] === undefined });
});
afterAll(async () => {
  await db.close();
  await world.close();
});

interface Made {
  readonly tenant: TestTenant;
  readonly owner: Caller;
  readonly keyId: string;
}
const newTenant = async (changes = 0): Promise<Made> => {
  const tenant = await world.tenant();
  const owner = await tenant.user();
  const { body } = await world.call(owner, "POST", "/v1/api-keys", { body: { name: "script" } });
  for (let n = 0; n < changes; n += 1) await world.call(owner, "PATCH", `/v1/api-keys/${body.data.keyId}`, { body: { name: `name ${n}` } });
  return { tenant, owner, keyId: body.data.keyId };
};
const listed = async (owner: Caller, query = ""): Promise<readonly AuditLog[]> => {
  const { body, status } = await world.call(owner, "GET", `/v1/audit-logs?pageSize=100${query}`);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.data;
};
const verdictOf = async (tenantId: string) => {
  for await (const verdict of auditOf().verify(tenantId)) return verdict;
  throw new Error("one tenant has one verdict");
};

describe("a record", () => {
  test("shows who changed what, from where, with the columns before and after", async () => {
    const { owner, keyId, tenant } = await newTenant();
    const headers = { "user-agent": "audit-test/1", "x-request-id": "req_of_the_rename" };
    await world.call(owner, "PATCH", `/v1/api-keys/${keyId}`, { body: { name: "renamed" }, headers });
    const [newest] = await listed(owner);
    expect(newest).toMatchObject({
      tenantId: tenant.tenantId,
      actor: { type: "user", id: tenant.ownerId, ip: "127.0.0.1", userAgent: "audit-test/1" },
      action: "apiKeys.update",
      resource: { type: "api-keys", id: keyId },
      changes: [{ type: "api-keys", id: keyId, before: { name: "script", version: 1 }, after: { name: "renamed", version: 2 } }],
      omitted: 0,
      outcome: "success",
      code: null,
      requestId: "req_of_the_rename",
    });
    expect((await world.call(owner, "GET", `/v1/audit-logs/${newest?.auditId}`)).body.data).toEqual(newest);
  });

  test("shows the row exactly as it was, even when two changes race", async () => {
    const { owner, keyId, tenant } = await newTenant();
    await Promise.all(Array.from({ length: 16 }, (_, n) => world.call(owner, "PATCH", `/v1/api-keys/${keyId}`, { body: { name: `racer ${n}` } })));
    const updates = [...(await listed(owner, "&action=apiKeys.update"))].reverse();
    const names = updates.flatMap(({ changes }) => changes.map(({ before, after }) => [before?.["name"], after?.["name"]]));
    expect(names).toHaveLength(16);
    for (const [index, [before]] of names.entries()) expect(before).toBe(index === 0 ? "script" : names[index - 1]?.[1]);
    expect((await verdictOf(tenant.tenantId)).isIntact).toBe(true);
  });

  test("sees rows that raw SQL writes, and shows none of their bytes", async () => {
    const { owner, tenant } = await newTenant();
    const device = await tenant.device();
    const [made] = await listed(owner, "&action=devices.provision");
    expect(made?.changes).toMatchObject([{ type: "devices", id: device.deviceId, before: null, after: { fingerprint: device.fingerprint, secret: MASK } }]);
  });

  test("holds no secret that an answer or a table has", async () => {
    const { owner, keyId, tenant } = await newTenant();
    const rotated = await world.call(owner, "POST", `/v1/api-keys/${keyId}/rotate`, { body: {} });
    const token = await world.call(owner, "POST", "/v1/pairing/enrollment-tokens", { body: { name: "t" } });
    const device = await tenant.device();
    const { rows } = await world.sql.query("select encode(hash, 'hex') as h from api_keys where tenant_id = $1", [tenant.tenantId]);
    const log = JSON.stringify(await listed(owner));
    for (const secret of [rotated.body.data.apiKey, token.body.data.token, device.identity.secret, ...rows.map(({ h }) => h)])
      expect(log).not.toContain(secret);
    expect(log).toContain(MASK);
  });

  test("is not written when the change is rolled back", async () => {
    const { owner, keyId } = await newTenant();
    const before = await listed(owner);
    expect((await world.call(owner, "PATCH", `/v1/api-keys/${keyId}`, { body: { name: "x", version: 99 } })).status).toBe(409);
    expect(await listed(owner)).toEqual(before);
  });

  test("is written once for a key that is used twice", async () => {
    const { owner } = await newTenant();
    const headers = { "idempotency-key": "the same" };
    for (let n = 0; n < 3; n += 1) expect((await world.call(owner, "POST", "/v1/api-keys", { body: { name: "once" }, headers })).status).toBe(201);
    expect((await listed(owner, "&action=apiKeys.create")).filter(({ changes }) => changes[0]?.after?.["name"] === "once")).toHaveLength(1);
  });

  test("names the operator whose command line made the tenant", async () => {
    const { owner } = await newTenant();
    const oldest = (await listed(owner)).at(-1);
    expect(oldest).toMatchObject({ sequence: 1, previousHash: "", action: "cli.bootstrap", actor: { type: "operator", id: "cli" } });
  });

  test("tells how many rows it leaves out when there are many", async () => {
    const { owner } = await newTenant();
    expect((await world.call(owner, "POST", "/v1/devices/provision", { body: { count: 60 } })).status).toBe(201);
    const [made] = await listed(owner);
    expect([made?.changes.length, made?.omitted]).toEqual([50, 10]);
  });
});

describe("masking", () => {
  test("hides secrets by name at any depth, and bytes of any name", () => {
    const row = { password: "p", settings: { headers: { authorization: "a" }, list: [{ clientSecret: "s", name: "n" }] }, picture: "\\x00ff", api_key: "k" };
    const [captured] = readChanges(`${JSON.stringify({ table: "things", id: "t", tenantId: null, before: null, after: row })}\n`);
    expect(captured?.change.after).toEqual({
      password: MASK,
      settings: { headers: { authorization: MASK }, list: [{ clientSecret: MASK, name: "n" }] },
      picture: MASK,
      apiKey: MASK,
    });
  });

  test("leaves ids and times of secrets readable", () => {
    expect(["secret_rotated_at", "token_id", "previous_valid_until", "key_id", "last4", "name"].filter(isSecretName)).toEqual([]);
    expect(["hash", "previous_hash", "pending_secret", "code_hash", "activation_token_hash", "token"].every(isSecretName)).toBe(true);
  });
});

describe("the list", () => {
  test("filters by actor, action, resource and time", async () => {
    const { owner, keyId, tenant } = await newTenant(2);
    const all = await listed(owner);
    const middle = all[1];
    expect((await listed(owner, `&resource=${keyId}`)).map(({ action }) => action)).toEqual(["apiKeys.update", "apiKeys.update", "apiKeys.create"]);
    expect((await listed(owner, "&resource=api-keys")).length).toBe(3);
    expect((await listed(owner, `&actor=${tenant.ownerId}`)).length).toBe(3);
    expect((await listed(owner, "&actor=cli")).every(({ actor }) => actor.type === "operator")).toBe(true);
    expect((await listed(owner, `&from=${middle?.at}`)).map(({ auditId }) => auditId)).toContain(middle?.auditId);
    expect((await listed(owner, `&to=${middle?.at}`)).map(({ auditId }) => auditId)).not.toContain(middle?.auditId);
  });

  test.each(["from=0000-01-01T00:00:00Z", "to=yesterday", "actor=", "actor=%00", "nobody=1"])("refuses %s", async (query) => {
    const { owner } = await newTenant();
    expect((await world.call(owner, "GET", `/v1/audit-logs?${query}`)).body.code).toBe("VALIDATION_FAILED");
  });

  test("is closed to operators and viewers of a tenant, and shows no other tenant's records", async () => {
    const [ours, theirs] = [await newTenant(), await newTenant()];
    for (const role of ["viewer", "operator"] as const) expect((await world.call(await ours.tenant.user(role), "GET", "/v1/audit-logs")).status).toBe(403);
    const [foreign] = await listed(theirs.owner);
    expect((await world.call(ours.owner, "GET", `/v1/audit-logs/${foreign?.auditId}`)).body.code).toBe("AUDIT_LOG_NOT_FOUND");
    expect(await listed(ours.owner, `&resource=${theirs.keyId}`)).toEqual([]);
  });

  test("shows operators of the installation any tenant's records, and those of none", async () => {
    const { tenant } = await newTenant();
    const operator = await world.operator();
    const { body } = await world.call(operator, "GET", `/v1/admin/audit-logs?tenant=${tenant.tenantId}`);
    expect(body.data.length).toBeGreaterThan(0);
    expect((await world.call(operator, "GET", "/v1/admin/audit-logs")).status).toBe(200);
  });
});

describe("an export", () => {
  const part = async (owner: Caller, query: string) => (await world.call(owner, "GET", `/v1/audit-logs/export?${query}`)).body.data;

  test("gives every record once, in parts, so that a stranger can check the chain", async () => {
    const { owner } = await newTenant(5);
    const logs: AuditLog[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const { content, next } = await part(owner, `max=3&after=${after}`);
      logs.push(
        ...content
          .split("\n")
          .filter(Boolean)
          .map((line: string) => JSON.parse(line)),
      );
      after = next;
    }
    expect(logs.map(({ sequence }) => sequence)).toEqual(logs.map((_, index) => index + 1));
    for (const [index, { actor, resource, at, hash, previousHash, ...log }] of logs.entries()) {
      const row = { ...log, at: new Date(at), actorType: actor.type, actorId: actor.id, actorEmail: actor.email, ip: actor.ip, userAgent: actor.userAgent };
      const chained = {
        ...row,
        tenantId: log.tenantId ?? "-",
        resourceType: resource.type,
        resourceId: resource.id,
        previousHash: Buffer.from(previousHash, "hex"),
      };
      expect(hashOfRow(chained).toString("hex")).toBe(hash);
      expect(previousHash).toBe(index === 0 ? "" : logs[index - 1]?.hash);
    }
  });

  test("sends the whole log as lines, from any record on and filtered, whoever reads it how slowly", async () => {
    const { owner } = await newTenant(5);
    const linesOf = async (query: string): Promise<AuditLog[]> => {
      const { status, body, headers } = await world.call(owner, "GET", `/v1/audit-logs/export.ndjson${query}`);
      expect([status, headers.get("content-disposition")]).toEqual([200, 'attachment; filename="audit-logs.ndjson"']);
      return String(body ?? "")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    };
    const all = await linesOf("");
    const { content } = await part(owner, "max=5000");
    expect(all.map((log) => JSON.stringify(log)).join("\n")).toBe(content.trimEnd());
    expect(await linesOf("?after=2")).toEqual(all.slice(2));
    expect(await linesOf(`?action=apiKeys.update`)).toEqual(all.filter(({ action }) => action === "apiKeys.update"));
    expect(await linesOf(`?after=${all.length}`)).toEqual([]);
    expect((await world.call(owner, "HEAD", "/v1/audit-logs/export.ndjson")).status).toBe(200);
  });

  test("breaks off when it cannot read on, so that nobody takes a part for the whole", async () => {
    const { tenant, owner } = await newTenant();
    await world.sql.query(
      `insert into audit_logs (audit_id, tenant_id, sequence, at, actor_type, actor_id, action, resource_type, outcome, changes, omitted, previous_hash, hash)
       select 'aud_' || n, $1, 1000 + n, now(), 'user', 'u', 'a', 'r', 'success', jsonb_build_array(repeat('x', 3000)), 0, '', '' from generate_series(1, 3000) n`,
      [tenant.tenantId],
    );
    const answer = await fetch(`${world.url}/v1/audit-logs/export.ndjson`, { headers: owner.headers("") });
    expect(answer.status).toBe(200);
    const reader = answer.body?.getReader();
    await reader?.read();
    await world.sql.query("alter table audit_logs rename to audit_logs_away");
    try {
      const rest = (async () => {
        for (;;) if ((await reader?.read())?.done !== false) return "complete";
      })();
      await expect(rest).rejects.toThrow();
    } finally {
      await world.sql.query("alter table audit_logs_away rename to audit_logs");
    }
  });

  test("writes CSV that no spreadsheet runs", async () => {
    const { owner, keyId } = await newTenant();
    await world.call(owner, "PATCH", `/v1/api-keys/${keyId}`, { body: { name: 'a "quoted", name' }, headers: { "user-agent": "=cmd|' /C calc'!A0" } });
    const { content } = await part(owner, "format=csv&action=apiKeys.update");
    const [header, line] = content.split("\r\n");
    expect(header).toMatch(/^sequence,at,auditId,/);
    expect(line).toContain(",'=cmd|' /C calc'!A0,");
    expect(line).toContain('a \\""quoted\\"", name');
  });
});

describe("the chain", () => {
  test("has no gap when two nodes write at once", async () => {
    const { tenant } = await newTenant();
    const other = await startWorld(FREE, { beside: world });
    try {
      const owner = await tenant.user();
      const answers = await Promise.all(
        Array.from({ length: 64 }, (_, n) => (n % 2 === 0 ? world : other).call(owner, "POST", "/v1/api-keys", { body: { name: `key ${n}` } })),
      );
      expect(winnersOf(answers, "DATABASE_BUSY")).toBeGreaterThan(32);
    } finally {
      await other.close();
    }
    const { rows } = await world.sql.query("select sequence::int as n, at from audit_logs where tenant_id = $1 order by sequence", [tenant.tenantId]);
    expect(rows.map(({ n }) => n)).toEqual(rows.map((_, index) => index + 1));
    expect(rows.map(({ at }) => at.getTime())).toEqual(rows.map(({ at }) => at.getTime()).sort((a, b) => a - b));
    expect(await verdictOf(tenant.tenantId)).toMatchObject({ isIntact: true, records: rows.length, broken: null });
  });

  test("stays whole while it is verified under load", async () => {
    const { tenant, owner, keyId } = await newTenant();
    const writing = Promise.all(Array.from({ length: 40 }, (_, n) => world.call(owner, "PATCH", `/v1/api-keys/${keyId}`, { body: { name: `n${n}` } })));
    for (let n = 0; n < 10; n += 1) expect(await verdictOf(tenant.tenantId)).toMatchObject({ broken: null });
    await writing;
  });

  test("is append-only for everybody who does not own the table", async () => {
    const { tenant } = await newTenant();
    for (const sql of ["update audit_logs set actor_id = 'x' where tenant_id = $1", "delete from audit_logs where tenant_id = $1"])
      await expect(world.sql.query(sql, [tenant.tenantId])).rejects.toThrow("append-only");
    await expect(world.sql.query("truncate audit_logs")).rejects.toThrow("append-only");
  });
});

/** What somebody does who owns the database. */
const tamper = async (statements: readonly string[], tenantId: string): Promise<void> => {
  const client = await world.sql.connect();
  try {
    await client.query("begin");
    await client.query("alter table audit_logs disable trigger audit_append_only");
    for (const text of statements) await client.query(text.replaceAll("$1", `'${tenantId}'`));
    await client.query("alter table audit_logs enable trigger audit_append_only");
    await client.query("commit");
  } finally {
    client.release();
  }
};
const OF = "tenant_id = $1 and sequence";

describe("verification finds", () => {
  test.each<readonly [string, readonly string[], number, string]>([
    ["an edited actor", [`update audit_logs set actor_id = 'somebody-else' where ${OF} = 3`], 3, "was changed"],
    ["an edited change", [`update audit_logs set changes = '[]' where ${OF} = 4`], 4, "was changed"],
    ["a moved time", [`update audit_logs set at = at - interval '1 ms' where ${OF} = 4`], 4, "was changed"],
    ["a removed record", [`delete from audit_logs where ${OF} = 4`], 4, "is missing"],
    ["a removed beginning", [`delete from audit_logs where ${OF} <= 2`], 1, "is missing"],
    ["a removed end", [`delete from audit_logs where ${OF} = (select max(sequence) from audit_logs where tenant_id = $1)`], 8, "is missing"],
    [
      "two records in each other's place",
      [
        `update audit_logs set sequence = -1 where ${OF} = 3`,
        `update audit_logs set sequence = 3 where ${OF} = 4`,
        `update audit_logs set sequence = 4 where ${OF} = -1`,
      ],
      3,
      "was changed",
    ],
    [
      "a record that was added",
      [
        `insert into audit_logs select 'aud_forged', tenant_id, sequence + 1, at, actor_type, 'forged', actor_email, ip, user_agent, action, resource_type, resource_id, outcome, code, request_id, changes, omitted, hash, previous_hash
         from audit_logs where ${OF} = 8`,
      ],
      9,
      "stands behind",
    ],
    [
      "a removed end whose chain was shortened",
      [
        `delete from audit_logs where ${OF} = 8`,
        "update audit_chains c set sequence = 7, hash = (select hash from audit_logs l where l.tenant_id = $1 and l.sequence = 7) where c.tenant_id = $1",
      ],
      7,
      "signature",
    ],
    [
      "a removed beginning whose anchor was moved",
      [
        "update audit_chains c set anchor_sequence = 2, anchor_hash = (select hash from audit_logs l where l.tenant_id = $1 and l.sequence = 2) where c.tenant_id = $1",
        `delete from audit_logs where ${OF} <= 2`,
      ],
      8,
      "signature",
    ],
    ["a log whose chain was removed", ["delete from audit_chains where tenant_id = $1"], 1, "stands behind"],
  ])("%s", async (_, statements, sequence, reason) => {
    const { tenant } = await newTenant(4);
    const { records } = await verdictOf(tenant.tenantId);
    expect(records).toBe(8);
    await tamper(statements, tenant.tenantId);
    const verdict = await verdictOf(tenant.tenantId);
    expect([verdict.isIntact, verdict.broken?.sequence]).toEqual([false, sequence]);
    expect(verdict.broken?.reason).toContain(reason);
  });

  test("a shortened chain even after more was written behind it", async () => {
    const { tenant, owner, keyId } = await newTenant(4);
    const shorten = [
      `delete from audit_logs where ${OF} = 8`,
      "update audit_chains c set sequence = 7, hash = (select hash from audit_logs l where l.tenant_id = $1 and l.sequence = 7) where c.tenant_id = $1",
    ];
    await tamper(shorten, tenant.tenantId);
    expect((await world.call(owner, "PATCH", `/v1/api-keys/${keyId}`, { body: { name: "later" } })).status).toBe(200);
    expect((await verdictOf(tenant.tenantId)).broken?.reason).toContain("signature");
  });

  test("a chain that was computed anew without the master key", async () => {
    const { tenant } = await newTenant(4);
    const forger = createAudit({ clock: systemClock, db, secretBox: createSecretBox(Buffer.alloc(32, 8)), keepDays: 365 });
    for await (const { broken } of forger.verify(tenant.tenantId)) expect(broken?.reason).toContain("signature");
  });
});

describe("retention", () => {
  test("leaves a log that verifies, and one that was tampered with as it is", async () => {
    const kept = await newTenant(4);
    const broken = await newTenant(4);
    await tamper(["update audit_chains set signature = '' where tenant_id = $1"], broken.tenant.tenantId);
    const [job] = auditOf(-1).jobs ?? [];
    while ((await job?.run(new AbortController().signal)) === true);
    const left = async ({ tenant }: Made) =>
      (await world.sql.query("select count(*)::int as n from audit_logs where tenant_id = $1", [tenant.tenantId])).rows[0].n;
    expect([await left(kept), await left(broken)]).toEqual([0, 8]);
    expect(await verdictOf(kept.tenant.tenantId)).toMatchObject({ isIntact: true, records: 0, end: { sequence: 8 } });
    await world.call(kept.owner, "PATCH", `/v1/api-keys/${kept.keyId}`, { body: { name: "after" } });
    expect(await verdictOf(kept.tenant.tenantId)).toMatchObject({ isIntact: true, records: 1, end: { sequence: 9 } });
    expect((await listed(kept.owner))[0]?.sequence).toBe(9);
    await tamper([`delete from audit_logs where ${OF} = 9`], kept.tenant.tenantId);
    expect((await verdictOf(kept.tenant.tenantId)).broken).toMatchObject({ sequence: 9, reason: "the record is missing" });
  });

  test("deletes nothing that is younger than its days", async () => {
    const { tenant } = await newTenant(2);
    const [job] = auditOf(1).jobs ?? [];
    await job?.run(new AbortController().signal);
    expect(await verdictOf(tenant.tenantId)).toMatchObject({ isIntact: true, records: 6 });
  });
});

test("a member's token that the operator mints is recorded", async () => {
  const { owner, tenant } = await newTenant();
  asBearer(await tenant.token("viewer"));
  const [newest] = await listed(owner);
  expect(newest).toMatchObject({ action: "cli.token", changes: [{ type: "memberships", before: null, after: { role: "viewer" } }] });
});
