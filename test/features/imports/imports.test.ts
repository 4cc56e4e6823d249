// Imports: a document becomes a plan, exactly that plan is carried out by the operations that people use, and nothing is gained that its author lacks.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { newId } from "../../../server/core/ids.ts";
import { takeRecords } from "../../../server/features/imports/manifest.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { exported, type Opened, openImporter } from "./importer.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_ANONYMOUS: "off" });
});
afterAll(() => world.close());

const open = (): Promise<Opened> => openImporter(world);

const MANIFEST = `format: mooring-manifest/1
update-policies:
  - name: careful
    subject: { kind: agent }
    phases: [{ percent: 10 }, { percent: 90 }]
fleets:
  - name: lisbon
    selector: { tags: ["site:lisbon"] }
    updatePolicyId: update-policy/careful
roles:
  - name: Night shift
    permissions: [device:read, device:command]
alert-rules:
  - name: Hot
    metric: device.cpu
    threshold: 95
    scope: { fleetIds: [fleet/lisbon] }
webhooks:
  - url: https://hooks.example/mooring
    events: [device.offline, device.online]
backup-policies:
  - name: nightly
    schedule: "0 3 * * *"
    target: { fleetIds: [fleet/lisbon] }
    retention: { keepDaily: 7 }
`;

describe("a manifest", () => {
  test("makes what it names in an empty tenant, is unchanged the second time, and shows drift as a plan", async () => {
    const tenant = await open();
    const first = await tenant.plan(MANIFEST, { conflict: "overwrite" });
    expect(first.report.filter(({ action }) => action !== "create").map(({ key, code, message }) => [key, code, message])).toEqual([]);
    expect(first).toMatchObject({ status: "ready", format: "manifest", origin: "written", lines: 6, counts: { create: 6 } });
    const done = await tenant.apply(first);
    expect((await tenant.report(first.importId)).filter(({ status }) => status !== "succeeded")).toEqual([]);
    expect(done).toMatchObject({ status: "completed", applied: { succeeded: 6, failed: 0 } });
    const [fleet] = await tenant.must("GET", "/fleets");
    const [policy] = await tenant.must("GET", "/fleets/update-policies");
    expect(fleet).toMatchObject({ name: "lisbon", updatePolicyId: policy.updatePolicyId });
    const rule = (await tenant.must("GET", "/alert-rules?pageSize=50")).find(({ name }: { name: string }) => name === "Hot");
    expect(rule.scope.fleetIds).toEqual([fleet.fleetId]);
    const second = await tenant.plan(MANIFEST, { conflict: "overwrite" });
    expect(second.report.filter(({ action }) => action !== "unchanged")).toEqual([]);
    expect(second.counts).toEqual({ unchanged: 6 });
    await tenant.must("PATCH", `/alert-rules/${rule.ruleId}`, { threshold: 70 });
    const drift = await tenant.plan(MANIFEST, { conflict: "overwrite" });
    expect(drift.counts).toEqual({ unchanged: 5, update: 1 });
    expect(drift.report.find(({ action }) => action === "update")?.changes).toEqual([{ field: "threshold", from: 70, to: 95 }]);
    await tenant.apply(drift);
    expect((await tenant.must("GET", `/alert-rules/${rule.ruleId}`)).threshold).toBe(95);
  });

  test.each(
    [
      ["format: mooring-manifest/1\nfleets: [", "IMPORT_INVALID"],
      ["fleets: []", "IMPORT_VERSION_UNSUPPORTED"],
      ["format: mooring-manifest/2\nfleets: []", "IMPORT_VERSION_UNSUPPORTED"],
      ["format: mooring-manifest/1\nrockets: []", "IMPORT_INVALID"],
      ["format: mooring-manifest/1\nfleets: {}", "IMPORT_INVALID"],
      ["format: mooring-manifest/1\nfleets: [7]", "IMPORT_INVALID"],
      ["format: mooring-manifest/1\nfleets: [{ name: a, __proto__: { x: 1 } }]", "IMPORT_INVALID"],
      ['format: mooring-manifest/1\nfleets: [{ name: "a\\0b" }]', "IMPORT_INVALID"],
      ["format: mooring-manifest/1\nfleets: [{ name: a, tenantId: ten_other }]", "IMPORT_INVALID"],
      ["format: mooring-manifest/1\nbudgets: [{ name: a, amount: 1e400 }]", "IMPORT_INVALID"],
      ["format: mooring-manifest/1\nfleets: &f [{ name: a }]\nroles: *f", "IMPORT_INVALID"],
      ["format: mooring-manifest/1\nfleets: [{ name: a, selector: &s { tags: [x] } }, { name: b, selector: *s }]", "IMPORT_INVALID"],
      ["format: mooring-manifest/1\nfleets:\n  - &a { name: a }\n  - <<: *a", "IMPORT_INVALID"],
      ["format: mooring-manifest/1\nfleets: [*nobody]", "IMPORT_INVALID"],
      ["format: mooring-manifest/1\nfleets: [!!binary aGVsbG8=]", "IMPORT_INVALID"],
      ["format: mooring-manifest/1\nfleets:\n  - ? { a: 1 }\n    : b", "IMPORT_INVALID"],
      ["format: mooring-manifest/1\n---\nfleets: []", "IMPORT_INVALID"],
      [`format: mooring-manifest/1\nfleets: ${"[".repeat(400_000)}`, "IMPORT_INVALID"],
      [`{"format":"mooring-export/1","schemaVersion":1}\n${"[".repeat(400_000)}`, "IMPORT_INVALID"],
      [`format: mooring-manifest/1\nfleets:\n${"- ".repeat(50_000)}x`, "IMPORT_INVALID"],
      [`format: mooring-manifest/1\nfleets: ${"{ a: ".repeat(50_000)}`, "IMPORT_INVALID"],
      [`format: mooring-manifest/1\nfleets: [{ ${Array.from({ length: 20_000 }, (_, at) => `k${at}: 1`).join(", ")} }]`, "IMPORT_INVALID"],
      ["format: mooring-manifest/1\nfleets: [{ name: a, name: b }]", "IMPORT_INVALID"],
      [`format: mooring-manifest/1\nfleets: [{ name: ${"a".repeat(300_000)} }]`, "IMPORT_INVALID"],
      ["- a\n- b", "IMPORT_INVALID"],
      ["\u00ff\u00fe", "IMPORT_INVALID"],
      [`format: mooring-manifest/1\nfleets: [{ name: ${"[".repeat(50)}${"]".repeat(50)} }]`, "IMPORT_INVALID"],
      [`format: mooring-manifest/1\nfleets: [${"{ name: a },".repeat(5_001)}]`, "IMPORT_INVALID"],
    ].map(([document = "", code = ""]) => [document.slice(0, 80), document, code] as const),
  )("%j is refused as a whole", async (_beginning, document, code) => {
    const { status, body } = await (await shared()).call("POST", "/imports", { document });
    expect([status, body.code]).toEqual([422, code]);
  });

  test("refuses single lines and leaves the others", async () => {
    const tenant = await open();
    const { report } = await tenant.plan(
      `format: mooring-manifest/1
fleets:
  - { name: good, selector: { tags: [a] } }
  - { name: good, selector: { tags: [b] } }
  - { name: typo, selectr: { tags: [a] } }
  - { name: dangling, updatePolicyId: update-policy/nowhere }
  - { name: "", selector: { tags: [a] } }
devices:
  - { fingerprint: nobody, name: x }
channels:
  - { type: slack, name: ops }
alert-rules:
  - { name: on it, metric: device.cpu, threshold: 90, scope: { fleetIds: [fleet/dangling] } }
`,
    );
    expect(report.map(({ key, action, code }) => [key, action, code])).toEqual([
      ["good", "create", null],
      ["good", "refuse", "DUPLICATE"],
      ["typo", "refuse", "UNKNOWN_FIELD"],
      ["dangling", "refuse", "REFERENCE_UNKNOWN"],
      ["", "refuse", "VALIDATION_FAILED"],
      ["nobody", "refuse", "RECORD_NOT_FOUND"],
      ["slack ops", "refuse", "SECRET_REQUIRED"],
      ["on it", "refuse", "REFERENCE_UNKNOWN"],
    ]);
  });
});

let once: Promise<Opened> | undefined;
const shared = (): Promise<Opened> => {
  once ??= open();
  return once;
};

test("a manifest reads no page of a tenant that has too many records, but the one that says so", async () => {
  let read = 0;
  const pages = async function* () {
    for (; read < 100; read += 1) yield [{ name: "one" }, { name: "other" }];
  };
  expect((await takeRecords(pages(), 5)).length).toBeGreaterThan(5);
  expect(read).toBe(2);
});

test("a tenant written as a manifest is unchanged by it, and makes another tenant alike", async () => {
  const [source, target] = [await open(), await open()];
  // It gives both the rules that every tenant begins with. Later than other rules, they would be first in a list.
  await runJob(world, "alerts.evaluate");
  await source.apply(await source.plan(MANIFEST));
  const device = await source.tenant.device();
  await source.must("PATCH", `/devices/${device.deviceId}`, { name: "kitchen", tags: ["site:lisbon"] });
  const text = async ({ owner }: Opened): Promise<string> => (await fetch(`${world.url}/v1/export?format=manifest`, { headers: owner.headers("") })).text();
  const written = await text(source);
  expect(written).toContain("updatePolicyId: update-policy/careful");
  const again = await source.plan(written, { conflict: "overwrite" });
  expect(again.report.filter(({ action }) => action !== "unchanged")).toEqual([]);
  const { devices: _devices, members: _members, ...rest } = parse(written);
  const done = await target.apply(await target.plan(stringify(rest), { conflict: "overwrite" }));
  expect(done).toMatchObject({ status: "completed" });
  const { members: _own, ...made } = parse(await text(target));
  expect(made).toEqual(rest);
});

/** What happened, and who is there, differs between two tenants that are alike. */
const NO_WISH: ReadonlySet<string> = new Set(["event", "audit-log", "member", "#manifest", "#end", "#manifest-end"]);
const OWN = /^(?:tenantId|secretHint)$|At$|By$/;
/** The records of an export without ids, times, secrets and names of people: an id that it knows becomes the kind and the key of its record. */
const wishesIn = (text: string): readonly unknown[] => {
  const lines = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .filter(({ kind }) => !NO_WISH.has(kind));
  const names = new Map(lines.map(({ kind, id, key }) => [id, `${kind}/${key}`]));
  const plain = (name: string, value: unknown): unknown => (OWN.test(name) ? undefined : (names.get(value) ?? value));
  return lines.map(({ kind, key, data }) => JSON.stringify({ kind, key, data }, plain)).sort();
};

describe("an export", () => {
  test("of one tenant makes another one equal but for ids, times and secrets, and then nothing is left to do", async () => {
    const source = await open();
    await source.apply(await source.plan(MANIFEST));
    const device = await source.tenant.device();
    await source.must("POST", "/saved-views", { place: "devices", name: "all", search: "" }).catch(() => null);
    await source.must("PATCH", `/devices/${device.deviceId}`, { name: "kitchen", tags: ["site:lisbon"] });
    const file = await exported(world, source);
    const target = await open();
    const first = await target.plan(file, { conflict: "overwrite" });
    expect(first).toMatchObject({ format: "export", origin: "this" });
    expect(
      first.report.filter(({ action, kind }) => action === "refuse" && kind !== "device").map(({ kind, key, code, message }) => [kind, key, code, message]),
    ).toEqual([]);
    expect(first.report.find(({ kind }) => kind === "device")).toMatchObject({ action: "refuse", code: "RECORD_NOT_FOUND" });
    const done = await target.apply(first);
    expect(
      (await target.report(first.importId)).filter(({ status }) => status === "failed").map(({ kind, key, code, message }) => [kind, key, code, message]),
    ).toEqual([]);
    expect(done.status).toBe("completed");
    const again = await target.plan(file, { conflict: "overwrite" });
    expect(again.report.filter(({ action }) => action === "create" || action === "update").map(({ kind, key, changes }) => [kind, key, changes])).toEqual([]);
    const own = await source.plan(file, { conflict: "overwrite" });
    expect(own.report.filter(({ action }) => action === "create" || action === "update").map(({ kind, key, changes }) => [kind, key, changes])).toEqual([]);
  });

  test("differs from that of the tenant that it has made in ids, times, secrets and people, and in nothing else", async () => {
    const source = await open();
    await source.apply(await source.plan(MANIFEST));
    const file = await exported(world, source);
    const target = await open();
    await target.apply(await target.plan(file, { conflict: "overwrite" }));
    expect(wishesIn(await exported(world, target))).toEqual(wishesIn(file));
  });

  test("of which one byte has changed is refused with its line, and one that others have signed is foreign", async () => {
    const source = await open();
    await source.must("POST", "/fleets", { name: "porto", selector: { tags: ["site:porto"] } });
    const file = await exported(world, source);
    const refused = async (document: string) => (await source.call("POST", "/imports", { document })).body;
    expect(await refused(file.replace("porto", "corto"))).toMatchObject({ code: "IMPORT_INVALID", details: { reason: expect.stringContaining("checksum") } });
    expect(await refused(file.slice(0, -2))).toMatchObject({ code: "IMPORT_INVALID" });
    expect(await refused(file.split("\n").slice(0, -2).join("\n"))).toMatchObject({ code: "IMPORT_INVALID", details: { reason: "the last line is missing" } });
    expect(await refused(`${file}{"kind":"fleet"}\n`)).toMatchObject({ code: "IMPORT_INVALID", details: { reason: "follows the last line" } });
    const foreign = file
      .replace(/"signature":"."/, '"signature":"0"')
      .replace(/"signature":"(\w)(\w+)"/, (_all, first, rest) => `"signature":"${first === "0" ? "1" : "0"}${rest}"`);
    expect(await source.plan(foreign)).toMatchObject({ origin: "foreign" });
  });
});

const eventsOf = async (importId: string): Promise<readonly string[]> =>
  (await world.sql.query("select type from outbox_events where subject_id = $1 order by position", [importId])).rows.map(({ type }) => type);

/** From its second step on, the import is one of somebody who is no member: who is, stays so for some seconds in the cache. */
const isLostAfterStep = async (importId: string): Promise<void> => {
  await world.sql.query(`create function lose() returns trigger language plpgsql as $$ begin new.applied_by := '${newId("usr")}'; return new; end $$`);
  await world.sql.query(
    `create trigger lose before update on imports for each row when (new.import_id = '${importId}' and new.succeeded > 0) execute function lose()`,
  );
};

describe("a plan", () => {
  const FLEET = "format: mooring-manifest/1\nfleets: [{ name: f, selector: { tags: [b] } }]";

  test("leaves what differs, refuses it, or changes it, as its author says", async () => {
    const tenant = await open();
    await tenant.must("POST", "/fleets", { name: "f", selector: { tags: ["a"] } });
    const actions = async (conflict: string) => (await tenant.plan(FLEET, { conflict })).report.map(({ action, code }) => [action, code]);
    expect([await actions("fail"), await actions("skip"), await actions("overwrite")]).toEqual([
      [["refuse", "CONFLICT"]],
      [["skip", "CONFLICT"]],
      [["update", null]],
    ]);
  });

  test("is carried out only as it was read: another hash, another version and a second time are refused", async () => {
    const tenant = await open();
    const { fleetId } = await tenant.must("POST", "/fleets", { name: "f", selector: { tags: ["a"] } });
    const plan = await tenant.plan(FLEET, { conflict: "overwrite" });
    const other = await tenant.call("POST", `/imports/${plan.importId}/apply`, { planHash: "0".repeat(64) });
    expect(other.body.code).toBe("IMPORT_PLAN_CHANGED");
    await tenant.must("PATCH", `/fleets/${fleetId}`, { selector: { tags: ["c"] } });
    expect(await tenant.apply(plan)).toMatchObject({ status: "completed_with_errors", applied: { succeeded: 0, failed: 1 } });
    expect(await tenant.report(plan.importId)).toMatchObject([{ status: "failed", code: "VERSION_CONFLICT" }]);
    expect((await tenant.call("POST", `/imports/${plan.importId}/apply`, { planHash: plan.planHash })).body.code).toBe("INVALID_STATE_TRANSITION");
    const dry = await tenant.plan(FLEET, { conflict: "overwrite", mode: "dry_run" });
    expect((await tenant.call("POST", `/imports/${dry.importId}/apply`, { planHash: dry.planHash })).body.code).toBe("INVALID_STATE_TRANSITION");
  });

  test("gives nobody a right that they lack: an admin's role with an owner's permission fails in its line", async () => {
    const tenant = await open();
    const admin = await tenant.tenant.user("admin");
    const document = "format: mooring-manifest/1\nroles: [{ name: Gods, permissions: [tenant:delete] }]\nfleets: [{ name: fine, selector: { tags: [a] } }]";
    const plan = await tenant.plan(document, {}, admin);
    await tenant.apply(plan, admin);
    expect((await tenant.report(plan.importId)).map(({ key, status, code }) => [key, status, code])).toEqual(
      [
        ["fine", "succeeded", null],
        ["Gods", "failed", "PRIVILEGE_ESCALATION"],
      ].toSorted((a, b) => (a[0] === "Gods" ? -1 : b[0] === "Gods" ? 1 : 0)),
    );
    expect((await tenant.call("POST", "/imports", { document }, await tenant.tenant.user("operator"))).body.code).toBe("FORBIDDEN");
  });

  test("ends when whoever applies it loses the right, and keeps what was done before", async () => {
    const tenant = await open();
    const fleets = Array.from({ length: 60 }, (_none, at) => `{ name: f${at}, selector: { tags: [t${at}] } }`);
    const plan = await tenant.plan(`format: mooring-manifest/1\nfleets: [${fleets.join(", ")}]`);
    await isLostAfterStep(plan.importId);
    await tenant.must("POST", `/imports/${plan.importId}/apply`, { planHash: plan.planHash });
    const row = await tenant.ended(plan.importId);
    expect(row).toMatchObject({ status: "failed", statusReason: expect.any(String), applied: { failed: 0 } });
    const done = (await tenant.report(plan.importId)).filter(({ status }) => status === "succeeded");
    expect(done.length).toBe(row.applied.succeeded);
    expect([done.length > 0, done.length < 60]).toEqual([true, true]);
    expect((await tenant.must("GET", "/fleets?pageSize=100")).length).toBe(done.length);
    expect(await eventsOf(plan.importId)).toEqual(["import.failed"]);
  });

  test("leaves each change in the audit log", async () => {
    const tenant = await open();
    const made = await tenant.plan(FLEET);
    const done = await tenant.apply(made);
    expect(await eventsOf(made.importId)).toEqual(["import.completed"]);
    expect(done.status).toBe("completed");
    const { rows } = await world.sql.query("select actor_id, resource_id from audit_logs where tenant_id = $1 and action = 'imports.apply'", [
      tenant.tenant.tenantId,
    ]);
    expect(rows.map(({ actor_id }) => actor_id)).toContain(tenant.tenant.ownerId);
  });

  test("of another tenant is unknown", async () => {
    const [one, two] = [await open(), await open()];
    const { importId, planHash } = await one.plan(FLEET);
    for (const [method, path] of [
      ["GET", ""],
      ["GET", "/report"],
      ["POST", "/apply"],
      ["DELETE", ""],
    ] as const)
      expect((await two.call(method, `/imports/${importId}${path}`, method === "POST" ? { planHash } : undefined)).body.code, path).toBe("IMPORT_NOT_FOUND");
  });
});
