// Uploads: the file of an export comes part by part, is read within bounds, and becomes the same plan as its text would. test/release/imports has bombs.
import { createHash } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runJob } from "../../kit/gateway/run-job.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { documentOf } from "./document.ts";
import { exportedFile, type Opened, openImporter } from "./importer.ts";

let world: World;
let beforeLines = async (): Promise<void> => undefined;
beforeAll(async () => {
  world = await startWorld(
    { RATE_LIMIT_STANDARD: "off", RATE_LIMIT_ANONYMOUS: "off" },
    { inProcess: true, settings: { imports: { beforeLines: () => beforeLines() } } },
  );
});
afterAll(() => world.close());
const open = (): Promise<Opened> => openImporter(world);

const MIB = 1_048_576;
const eventsOf = async (importId: string): Promise<readonly string[]> =>
  (await world.sql.query("select type from outbox_events where subject_id = $1 order by position", [importId])).rows.map(({ type }) => type);
const count = async (table: string, importId: string): Promise<number> =>
  (await world.sql.query(`select count(*)::int as n from ${table} where import_id = $1`, [importId])).rows[0].n;

const fleet = (name: string) => ({ name, selector: { tags: [name] } });

describe("a file", () => {
  test("becomes the plan that its text would, and makes another tenant alike", async () => {
    const source = await open();
    await source.must("POST", "/fleets", fleet("porto"));
    await source.must("POST", "/fleets", fleet("faro"));
    const file = await exportedFile(world, source);
    const target = await open();
    // First, because the first reader of some lists makes what every tenant has.
    const byFile = await target.upload(file, { conflict: "overwrite" });
    const byText = await target.plan(gunzipSync(file).toString(), { conflict: "overwrite" });
    expect(byFile).toMatchObject({ status: "ready", format: "export", origin: "this", upload: { receivedBytes: file.length, sizeBytes: file.length } });
    expect([byFile.report, byFile.planHash, byFile.counts]).toEqual([byText.report, byText.planHash, byText.counts]);
    expect(await count("import_parts", byFile.importId)).toBe(0);
    expect(await target.apply(byFile)).toMatchObject({ status: "completed" });
    const again = await target.upload(file, { conflict: "overwrite" });
    expect(again.report.filter(({ action }) => action === "create" || action === "update")).toEqual([]);
  });

  test("comes in parts, each taken once; a gap, another size and what fits nothing are refused", async () => {
    const tenant = await open();
    // Random names do not compress, so the file has several parts.
    const names = Array.from({ length: 20_000 }, (_none, at) => createHash("sha256").update(String(at)).digest("hex"));
    const file = gzipSync(documentOf({ event: names.map((name) => ({ name })), fleet: [fleet("one")] }));
    expect(file.length).toBeGreaterThan(600_000);
    const { importId } = await tenant.must("POST", "/imports", {});
    const part = (from: number, end: number, size = file.length) => tenant.send(importId, file.subarray(from, end), `bytes ${from}-${end - 1}/${size}`);
    const codeOf = async (sent: ReturnType<typeof part>) => (await sent).body.code;
    expect((await part(0, 300_000)).body.data).toMatchObject({ status: "uploading", upload: { receivedBytes: 300_000, sizeBytes: file.length } });
    expect((await part(0, 300_000)).body.data.upload.receivedBytes).toBe(300_000);
    expect(await codeOf(part(300_001, 600_001))).toBe("IMPORT_UPLOAD_OFFSET");
    expect(await codeOf(part(0, 300_001))).toBe("IMPORT_UPLOAD_OFFSET");
    expect(await codeOf(part(300_000, 300_010))).toBe("IMPORT_UPLOAD_INVALID");
    expect(await codeOf(part(300_000, 600_000, file.length + 1))).toBe("IMPORT_UPLOAD_INVALID");
    for (const range of ["bytes 0-1/*", "bytes 5-1/9", "bytes 0-299999/104857601", "bytes */9", "bytes 99999999999999-1/1"])
      expect(await codeOf(tenant.send(importId, file.subarray(0, 300_000), range)), range).toBe("IMPORT_UPLOAD_INVALID");
    expect((await part(300_000, file.length)).body.data.status).toBe("validating");
    await runJob(world, "imports.plan");
    await expect.poll(async () => (await tenant.must("GET", `/imports/${importId}`)).status, { timeout: 20_000 }).toBe("ready");
    // Whoever lost the answer to the last part sends it again.
    expect((await part(300_000, file.length)).body.data.status).toBe("ready");
    expect(await tenant.must("GET", `/imports/${importId}`)).toMatchObject({ lines: 20_001, counts: { create: 1, skip: 20_000 } });
    // History is counted, and has no row.
    expect((await tenant.report(importId)).map(({ kind, key }) => [kind, key])).toEqual([["fleet", "one"]]);
  });

  test("of a tenant that still sends or reads another one waits; none comes for a plan that has its document, or for another tenant's", async () => {
    const [tenant, other] = [await open(), await open()];
    const { importId } = await tenant.must("POST", "/imports", {});
    expect((await tenant.call("POST", "/imports", {})).body).toMatchObject({ code: "IMPORT_IN_PROGRESS", details: { importId } });
    const made = await tenant.plan("format: mooring-manifest/1\nfleets: []");
    expect((await tenant.send(made.importId, gzipSync("x"))).body.code).toBe("INVALID_STATE_TRANSITION");
    expect((await other.send(importId, gzipSync("x"))).body.code).toBe("IMPORT_NOT_FOUND");
    await tenant.call("DELETE", `/imports/${importId}`);
    expect((await tenant.send(importId, gzipSync("x"))).body.code).toBe("IMPORT_NOT_FOUND");
  });

  test("whose node dies is planned anew by another one, three times at most, and leaves each line once", async () => {
    const tenant = await open();
    const file = gzipSync(documentOf({ fleet: Array.from({ length: 1_200 }, (_none, at) => fleet(`f${at}`)) }));
    let calls = 0;
    beforeLines = async () => {
      calls += 1;
      if (calls === 2) throw new Error("killed");
    };
    const made = await tenant.upload(file);
    beforeLines = async () => undefined;
    expect([made["status"], await count("import_lines", made.importId)]).toEqual(["ready", 1_200]);
    beforeLines = async () => {
      throw new Error("killed");
    };
    const failed = await tenant.upload(file);
    beforeLines = async () => undefined;
    expect([failed["status"], await count("import_parts", failed.importId), await eventsOf(failed.importId)]).toEqual(["failed", 0, ["import.failed"]]);
  });

  test("that is deleted while it is read leaves nothing", async () => {
    const tenant = await open();
    const { importId } = await tenant.must("POST", "/imports", {});
    beforeLines = async () => void (await tenant.must("DELETE", `/imports/${importId}`).catch(() => null));
    await tenant.send(importId, gzipSync(documentOf({ fleet: [fleet("one")] })));
    await expect
      .poll(
        async () => {
          await runJob(world, "imports.plan");
          return (await tenant.call("GET", `/imports/${importId}`)).body.code;
        },
        { timeout: 20_000 },
      )
      .toBe("IMPORT_NOT_FOUND");
    beforeLines = async () => undefined;
    expect([await count("import_lines", importId), await count("import_parts", importId)]).toEqual([0, 0]);
  });
});

describe("a file that is no export", () => {
  let tenant: Opened | undefined;
  const LONG = Buffer.alloc(2 * MIB, "a");
  const record = (data: string): string => `{"kind":"#manifest","format":"mooring-export/1","schemaVersion":1}\n{"kind":"fleet","id":"x","data":${data}}\n`;
  /** Text that compresses badly enough to pass the ratio. */
  const noise = (bytes: number): string =>
    Buffer.from(Array.from({ length: bytes / 32 }, (_none, at) => createHash("sha256").update(`${at}`).digest("hex").slice(0, 32)).join("")).toString();
  test.each<[string, () => Buffer, RegExp]>([
    ["no gzip", () => Buffer.from("hello, this is no gzip"), /no whole gzip/],
    ["a gzip that breaks off", () => gzipSync(documentOf({ fleet: [fleet("one")] })).subarray(0, -20), /no whole gzip|last line/],
    ["a line of two mebibytes", () => gzipSync(Buffer.concat([LONG, LONG])), /longer than|times as long/],
    ["one long line of noise", () => gzipSync(noise(2 * MIB)), /line 1: is longer than/],
    ["a text a thousand times as long as its file", () => gzipSync(Buffer.alloc(64 * MIB, "\n")), /times as long|is not an object/],
    ["many members", () => Buffer.concat(Array.from({ length: 50 }, () => gzipSync(documentOf({})))), /line 3: follows the last line/],
    ["a wrong checksum", () => gzipSync(documentOf({ fleet: [fleet("one")] }).replace('"one"', '"two"')), /checksum of the section/],
    [
      "no end",
      () =>
        gzipSync(
          documentOf({ fleet: [fleet("one")] })
            .split("\n")
            .slice(0, -2)
            .join("\n"),
        ),
      /last line is missing/,
    ],
    ["a newer version", () => gzipSync(documentOf({}).replace('"schemaVersion":1', '"schemaVersion":2')), /mooring-export\/1 2/],
    ["bytes that are no UTF-8", () => gzipSync(Buffer.from([0x7b, 0xff, 0xfe, 0x0a])), /UTF-8/],
    ["a NUL", () => gzipSync(record('{"name":"a\\u0000b"}')), /line 2/],
    ["a lone surrogate", () => gzipSync(record('{"name":"\\ud800"}')), /line 2/],
    ["__proto__", () => gzipSync(record('{"__proto__":{"a":1}}')), /line 2/],
    ["a number that is none", () => gzipSync(record('{"amount":1e400}')), /number that is none/],
    ["another tenant", () => gzipSync(record('{"tenantId":"ten_other"}')), /names a tenant/],
    ["deep nesting", () => gzipSync(record(`{"a":${"[".repeat(10_000)}${"]".repeat(10_000)}}`)), /times as long|nested deeper/],
    ["nothing", () => gzipSync(""), /last line is missing/],
  ])("%s: fails with the line, and keeps neither lines nor bytes", async (_name, fileOf, reason) => {
    tenant ??= await open();
    const made = await tenant.upload(fileOf());
    expect(made).toMatchObject({ status: "failed", statusReason: expect.stringMatching(reason), lines: 0 });
    expect([await count("import_lines", made.importId), await count("import_parts", made.importId), await eventsOf(made.importId)]).toEqual([
      0,
      0,
      ["import.failed"],
    ]);
  });
});

describe("replace", () => {
  test("deletes what the document lacks of its kinds after all else, and nothing of other kinds", async () => {
    const tenant = await open();
    for (const name of ["keep", "old"]) await tenant.must("POST", "/fleets", fleet(name));
    await tenant.must("POST", "/webhooks", { url: "https://hooks.example/x", events: ["device.online"] });
    const document = "format: mooring-manifest/1\nfleets: [{ name: keep, selector: { tags: [keep] } }, { name: new, selector: { tags: [new] } }]";
    const merged = await tenant.plan(document, { conflict: "overwrite" });
    expect(merged.counts).toEqual({ unchanged: 1, create: 1 });
    const plan = await tenant.plan(document, { conflict: "overwrite", mode: "replace" });
    expect(plan).toMatchObject({ counts: { unchanged: 1, create: 1, delete: 1 }, deletesToConfirm: 1, lines: 3 });
    expect(plan.report.map(({ key, action, line }) => [key, action, line])).toEqual([
      ["keep", "unchanged", 2],
      ["new", "create", 2],
      ["old", "delete", null],
    ]);
    const refused = await tenant.call("POST", `/imports/${plan.importId}/apply`, { planHash: plan.planHash });
    expect(refused.body).toMatchObject({ code: "IMPORT_DELETES_UNCONFIRMED", details: { deletes: 1 } });
    await tenant.must("POST", `/imports/${plan.importId}/apply`, { planHash: plan.planHash, confirmDeletes: 1 });
    expect(await tenant.ended(plan.importId)).toMatchObject({ status: "completed", applied: { succeeded: 2, failed: 0 } });
    expect((await tenant.must("GET", "/fleets")).map(({ name }: { name: string }) => name).sort()).toEqual(["keep", "new"]);
    expect((await tenant.must("GET", "/webhooks")).length).toBe(1);
    expect((await tenant.plan(document, { conflict: "overwrite", mode: "replace" })).counts).toEqual({ unchanged: 2 });
  });

  test("deletes one of many without a number, and keeps members, devices and what every tenant has", async () => {
    const tenant = await open();
    await tenant.tenant.user("operator");
    await tenant.tenant.device();
    for (let at = 0; at < 11; at += 1) await tenant.must("POST", "/fleets", fleet(`f${at}`));
    // Without alert rules: a job makes a tenant's first ones at a time of its own, and they are deleted like any other.
    const sections = ["members: []", "devices: []", "roles: []", "deployments: []"];
    const fleets = Array.from({ length: 10 }, (_none, at) => `{ name: f${at}, selector: { tags: [f${at}] } }`).join(", ");
    const plan = await tenant.plan(["format: mooring-manifest/1", ...sections, `fleets: [${fleets}]`].join("\n"), { mode: "replace" });
    expect(plan).toMatchObject({ deletesToConfirm: null });
    expect(plan.report.filter(({ action }) => action === "delete").map(({ kind, key }) => [kind, key])).toEqual([["fleet", "f10"]]);
    expect(await tenant.apply(plan)).toMatchObject({ status: "completed" });
  });

  test("is for owners: an admin plans none, and carries none out", async () => {
    const tenant = await open();
    const admin = await tenant.tenant.user("admin");
    await tenant.must("POST", "/fleets", fleet("old"));
    const document = "format: mooring-manifest/1\nfleets: []";
    const planned = await tenant.call("POST", "/imports", { document, mode: "replace" }, admin);
    expect(planned.body).toMatchObject({ code: "FORBIDDEN", details: { requiredPermission: "tenant:delete" } });
    const plan = await tenant.plan(document, { mode: "replace" });
    const applied = await tenant.call("POST", `/imports/${plan.importId}/apply`, { planHash: plan.planHash, confirmDeletes: 1 }, admin);
    expect(applied.body.code).toBe("FORBIDDEN");
    expect((await tenant.must("GET", "/fleets")).length).toBe(1);
  });
});
