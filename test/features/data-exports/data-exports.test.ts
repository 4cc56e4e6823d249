// Data exports: what the file has and lacks, that it is whole and of one moment, who gets it, and what becomes of one that does not come to its end.
import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EXPORT_SCOPES } from "../../../protocol/index.ts";
import { systemClock } from "../../../server/core/clock.ts";
import { createExportLinks } from "../../../server/features/data-exports/links.ts";
import { signatureOf } from "../../../server/features/data-exports/writer.ts";
import { createSecretBox } from "../../../server/platform/keys/secrets.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { asBearer, type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { download, exported, linesIn, readExport, textIn } from "./exported.ts";
import { insertExport } from "./samples.ts";

/** What happens before a chunk is kept. */
let beforeChunk = async (): Promise<void> => undefined;
let world: World;
let tenant: TestTenant;
let owner: Caller;
beforeAll(async () => {
  world = await startWorld(
    { RATE_LIMIT_STANDARD: "off", RATE_LIMIT_READS: "off" },
    { inProcess: true, settings: { dataExports: { beforeChunk: () => beforeChunk() } } },
  );
  tenant = await world.tenant();
  owner = await tenant.user("owner");
});
afterAll(() => world.close());

const made = async (as: Caller, route: string, body: object) => {
  const [method = "", path = ""] = route.split(" ");
  const answer = await world.call(as, method, `/v1${path}`, { body });
  expect(answer.body).toMatchObject({ success: true });
  return answer.body.data;
};
const sha256 = (text: string | Uint8Array): string => createHash("sha256").update(text).digest("hex");
const chunksOf = async (exportId: string): Promise<number> =>
  Number((await world.sql.query("select count(*) from data_export_chunks where export_id = $1", [exportId])).rows[0].count);
const eventsOf = async (exportId: string): Promise<readonly string[]> =>
  (await world.sql.query("select type from outbox_events where subject_id = $1 order by position", [exportId])).rows.map(({ type }) => type);

const PLANTED = ["planted-header-value", "whsec_cGxhbnRlZC13ZWJob29rLXNlY3JldC12YWx1ZQ==", "planted-bot-token-12345"];

test("an export has every record of every scope, a checksum for each section and for all, a signature, and no secret", async () => {
  const tenant = await world.tenant();
  const owner = await tenant.user("owner");
  await made(owner, "POST /fleets", { name: "Lisbon", selector: { tags: ["site:lisbon"] } });
  await made(owner, "POST /webhooks", { url: "http://127.0.0.2:8443/x", events: ["device.*"], secret: PLANTED[1], headers: { "x-auth": PLANTED[0] } });
  await made(owner, "POST /alert-channels", { type: "webhook", name: "pager", config: { url: `http://127.0.0.2:8443/${PLANTED[2]}` } });
  await made(owner, "POST /roles", { name: "Night", permissions: ["device:read"] });
  await made(owner, "POST /views", { place: "devices", name: "Offline", search: "status=offline" });
  const { deviceId } = await tenant.device();

  const found = await exported(world, owner);
  expect(found).toMatchObject({
    status: "completed",
    scopes: EXPORT_SCOPES,
    counts: { fleet: 1, webhook: 1, channel: 1, role: 1, view: 1, device: 1, settings: 1 },
  });
  expect(found.secretsMissing).toMatchObject({ webhook: ["secret", "headers"], channel: ["config"] });
  const { bytes, headers } = await download(world, owner, found.exportId);
  expect([bytes.length, sha256(bytes)]).toEqual([found.sizeBytes, found.sha256]);
  expect(headers.get("content-disposition")).toContain(`${found.exportId}.ndjson.gz`);

  const text = textIn(bytes);
  for (const secret of PLANTED) expect(text).not.toContain(secret);
  const lines = linesIn(bytes);
  const [manifest, end] = [lines[0], lines.at(-1)];
  expect(manifest).toMatchObject({ kind: "#manifest", format: "mooring-export/1", schemaVersion: 1, tenantId: tenant.tenantId, snapshot: true });
  const beforeEnd = text.slice(0, text.lastIndexOf('{"kind":"#manifest-end"'));
  const [key] = createSecretBox(Buffer.alloc(32, 7)).deriveAll("data export");
  expect(end).toMatchObject({
    kind: "#manifest-end",
    counts: found.counts,
    sha256: sha256(beforeEnd),
    signature: signatureOf(key ?? new Uint8Array(), sha256(beforeEnd)),
  });
  for (const { section, count, sha256: told } of lines.filter(({ kind }) => kind === "#end")) {
    const own = text.split("\n").filter((line) => line.startsWith(`{"kind":${JSON.stringify(section)}`));
    expect([section, own.length, sha256(own.map((line) => `${line}\n`).join(""))]).toEqual([section, count, told]);
  }
  expect(lines.find(({ kind }) => kind === "fleet")).toMatchObject({ key: "Lisbon", v: 1, data: { name: "Lisbon" }, refs: [] });
  expect(lines.find(({ kind }) => kind === "device")?.["refs"]).toHaveLength(1);
  expect(JSON.stringify(lines.filter(({ kind }) => kind === "device"))).toContain(deviceId);
  expect(await eventsOf(found.exportId)).toEqual(["export.completed"]);
});

test("a download goes on where it broke off, and each is counted and in the audit log once", async () => {
  const { exportId, sizeBytes } = await exported(world, owner, { scopes: ["views", "roles"] });
  const { bytes: whole } = await download(world, owner, exportId);
  const [first, rest] = [await download(world, owner, exportId, { range: "bytes=0-99" }), await download(world, owner, exportId, { range: "bytes=100-" })];
  expect([first.status, rest.status, rest.headers.get("content-range")]).toEqual([206, 206, `bytes 100-${sizeBytes - 1}/${sizeBytes}`]);
  expect(Buffer.concat([first.bytes, rest.bytes]).equals(whole)).toBe(true);
  expect((await download(world, owner, exportId, { range: "bytes=-10" })).bytes.equals(whole.subarray(-10))).toBe(true);
  expect((await download(world, owner, exportId, { range: `bytes=${sizeBytes}-` })).status).toBe(416);
  expect((await readExport(world, owner, exportId)).downloadCount).toBe(2);
  const logged = await world.call(owner, "GET", `/v1/audit-logs?action=dataExports.download&resource=${exportId}`);
  expect(logged.body.data).toHaveLength(2);
});

test("csv has the columns of its one scope, and nothing that a spreadsheet would run", async () => {
  await made(owner, "POST /views", { place: "devices", name: "=1+1", search: "q=a" });
  expect((await world.call(owner, "POST", "/v1/exports", { body: { format: "csv", scopes: ["views", "roles"] } })).status).toBe(400);
  const { exportId } = await exported(world, owner, { format: "csv", scopes: ["views"] });
  const [head = "", ...rows] = textIn((await download(world, owner, exportId)).bytes)
    .trimEnd()
    .split("\r\n");
  expect(head.split(",").slice(0, 3)).toEqual(["viewId", "place", "name"]);
  expect(rows.some((row) => row.includes("'=1+1"))).toBe(true);
});

test("an attempt that is killed at any chunk is begun anew and leaves nothing of itself; the third ends the export", async () => {
  let kills = 2;
  beforeChunk = async () => {
    kills -= 1;
    if (kills >= 0) throw new Error("killed");
  };
  const found = await exported(world, owner, { scopes: ["views"] });
  expect([found.status, await chunksOf(found.exportId)]).toEqual(["completed", 1]);
  kills = 99;
  const failed = await exported(world, owner, { scopes: ["views"] });
  expect(failed).toMatchObject({ status: "failed", statusReason: "INTERNAL_ERROR" });
  expect([await chunksOf(failed.exportId), await eventsOf(failed.exportId)]).toEqual([0, ["export.failed"]]);
  beforeChunk = async () => undefined;
});

test("whoever comes too late to an export that is complete leaves its file alone", async () => {
  const { exportId } = await insertExport(world, tenant, "completed");
  await world.sql.query("update data_exports set status = 'pending' where export_id = $1", [exportId]);
  const holder = await world.sql.connect();
  await holder.query("begin");
  await holder.query("update data_exports set status = 'completed' where export_id = $1", [exportId]);
  const late = runJob(world, "data-exports.make");
  const waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%data_exports%'";
  await expect.poll(async () => (await world.sql.query(waiting)).rowCount, { timeout: 20_000 }).toBeGreaterThan(0);
  await holder.query("commit");
  holder.release();
  await late;
  expect((await download(world, owner, exportId)).bytes.toString()).toBe("file");
});

test("a file that cannot be read any more is refused by name, and breaks no answer off", async () => {
  const { exportId } = await insertExport(world, tenant, "completed");
  await world.sql.query("update data_export_chunks set bytes = sha256(bytes) where export_id = $1", [exportId]);
  const { status, bytes } = await download(world, owner, exportId);
  expect([status, JSON.parse(bytes.toString()).code]).toEqual([409, "EXPORT_EXPIRED"]);
});

test("an export that is cancelled while it is made keeps no chunk", async () => {
  let exportId = "";
  beforeChunk = async () => {
    const making = (await world.call(owner, "GET", "/v1/exports")).body.data[0].exportId;
    expect((await world.call(owner, "DELETE", `/v1/exports/${making}`)).status).toBe(204);
    // Not before: the gateway's own job may have come first, and whoever waits for the id goes on at once.
    exportId = making;
  };
  expect((await world.call(owner, "POST", "/v1/exports", { body: { scopes: ["views"] } })).status).toBe(201);
  const tried = async (): Promise<string> => {
    await runJob(world, "data-exports.make");
    return exportId;
  };
  await expect.poll(tried, { timeout: 20_000 }).not.toBe("");
  beforeChunk = async () => undefined;
  expect([await chunksOf(exportId), (await world.call(owner, "GET", `/v1/exports/${exportId}`)).body.code]).toEqual([0, "EXPORT_NOT_FOUND"]);
});

test("an export ends when its creator may not read all of it any more", async () => {
  const { exportId } = await insertExport(world, tenant, "pending");
  await runJob(world, "data-exports.make");
  expect((await world.call(owner, "GET", `/v1/exports/${exportId}/wait?status=failed&timeout=30`)).body.data).toMatchObject({ statusReason: "ACCESS_LOST" });
});

test("only an unlimited person or key with the permission exports, and never more than they may read", async () => {
  for (const role of ["viewer", "operator"] as const) expect((await world.call(await tenant.user(role), "POST", "/v1/exports", { body: {} })).status).toBe(403);
  const { roleId } = await made(owner, "POST /roles", { name: "Exporter", permissions: ["export:create", "fleet:read"] });
  const { token } = await world.app.mint({ userId: "exporter", tenantId: tenant.tenantId, role: "viewer", ttlSeconds: 600 });
  const { rows } = await world.sql.query("select member_id from memberships where tenant_id = $1 and user_id = 'exporter'", [tenant.tenantId]);
  await made(owner, `PATCH /members/${rows[0].member_id}`, { roleId });
  const as = asBearer(token);
  expect((await world.call(as, "POST", "/v1/exports", { body: { scopes: ["fleets", "audit"] } })).body).toMatchObject({
    code: "FORBIDDEN",
    details: { requiredPermission: "audit:read" },
  });
  expect((await exported(world, as)).scopes).toEqual(["update-policies", "fleets"]);
});

test("a file is gone after its time, and its record says so", async () => {
  const { exportId } = await exported(world, owner, { scopes: ["views"] });
  await world.sql.query("update data_exports set expires_at = now() - interval '1 s' where export_id = $1", [exportId]);
  await runJob(world, "data-exports.forget");
  expect([await chunksOf(exportId), (await readExport(world, owner, exportId)).status]).toEqual([0, "expired"]);
});

test("another tenant's export is unknown, and so is its file", async () => {
  const { exportId } = await exported(world, owner, { scopes: ["views"] });
  const other = await (await world.tenant()).user("owner");
  for (const [method, path] of [
    ["GET", ""],
    ["DELETE", ""],
    ["GET", "/download"],
  ] as const)
    expect((await world.call(other, method, `/v1/exports/${exportId}${path}`)).body.code).toBe("EXPORT_NOT_FOUND");
});

test("a link downloads an export once, for 15 minutes, until another one replaces it, and in its maker's name", async () => {
  const { exportId } = await insertExport(world, tenant, "completed");
  const linkOf = async (as = owner) => (await world.call(as, "POST", `/v1/exports/${exportId}/link`)).body;
  const { url, expiresAt } = (await linkOf()).data;
  expect(expiresAt).toMatch(/Z$/);
  const open = async (address: string): Promise<readonly [number, string]> => {
    const { pathname, search } = new URL(address);
    const answer = await fetch(`${world.url}${pathname}${search}`);
    return [answer.status, answer.status === 200 ? await answer.text() : ((await answer.json()) as { readonly code: string }).code];
  };
  const newer = (await linkOf()).data.url;
  expect(await open(url)).toEqual([404, "EXPORT_LINK_INVALID"]);
  expect(await Promise.all([open(newer), open(newer)]).then((answers) => answers.toSorted(([a], [b]) => a - b))).toEqual([
    [200, "file"],
    [404, "EXPORT_LINK_INVALID"],
  ]);
  expect(await open(newer.replace(/token=./, "token=x"))).toEqual([404, "EXPORT_LINK_INVALID"]);
  const { rows } = await world.sql.query("select actor_type, actor_id from audit_logs where resource_id = $1 and action = 'dataExports.download'", [exportId]);
  expect(rows).toEqual([{ actor_type: "user", actor_id: expect.stringMatching(/^owner-/) }]);
  expect((await linkOf(await (await world.tenant()).user("owner"))).code).toBe("EXPORT_NOT_FOUND");
  const last = (await linkOf()).data.url;
  await world.call(owner, "DELETE", `/v1/exports/${exportId}`);
  expect(await open(last)).toEqual([404, "EXPORT_LINK_INVALID"]);
  const running = await insertExport(world, tenant, "expired");
  expect((await world.call(owner, "POST", `/v1/exports/${running.exportId}/link`)).body.code).toBe("EXPORT_EXPIRED");
});

test("a link that is too old is refused", async () => {
  let now = new Date();
  const links = createExportLinks(createSecretBox(Buffer.alloc(32, 7)), { ...systemClock, now: () => now });
  const { token } = links.make({ tenantId: tenant.tenantId as `ten_${string}`, exportId: "exp_1", by: { type: "user", id: "usr_1" } });
  expect(links.read(token)?.exportId).toBe("exp_1");
  now = new Date(now.getTime() + 900_000);
  expect(links.read(token)).toBeNull();
});
