// The agent's engine with real restic: what a backup holds, what a restore brings back, and what is said when either fails.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HandlerFailure } from "../../../agent-sim/agent/index.ts";
import { desiredApp, inMode } from "../../agent-sim/host/desired.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { type EngineHarness, newId, openEngine, remove, treeHash } from "./real-engine.ts";

let one: EngineHarness;
beforeAll(() => {
  one = openEngine();
});
afterAll(() => one.close());

const started = async () => {
  const app = desiredApp(await freePort());
  await one.harness.host.apply(app);
  const files = one.pathOf(app, "volumes", "files");
  return { app, files };
};
const stateOf = ({ appId }: { readonly appId: string }) => one.harness.host.report().find((each) => each.appId === appId)?.state;
const failureOf = async (work: Promise<unknown>): Promise<unknown> => {
  const error = await work.then(
    () => "it succeeded",
    (reason: unknown) => reason,
  );
  return error instanceof HandlerFailure ? error.output : error;
};
/** A name with a line break and with bytes that are no UTF-8. */
const ODD = Buffer.concat([Buffer.from("a\nb"), Buffer.from([0xff, 0xfe])]);

test("names that are no text, links, hard links, holes and modes come back as they were, and a link out of the volume stays a link", async () => {
  const { app, files } = await started();
  writeFileSync(Buffer.concat([Buffer.from(`${files}/`), ODD]), "odd");
  symlinkSync("/etc/passwd", join(files, "out"));
  symlinkSync("nowhere", join(files, "dangling"));
  writeFileSync(join(files, "first"), "the same");
  linkSync(join(files, "first"), join(files, "second"));
  writeFileSync(join(files, "holes"), "x");
  truncateSync(join(files, "holes"), 50_000_000);
  mkdirSync(join(files, "private"), { mode: 0o500 });
  execFileSync("mkfifo", [join(files, "pipe")]);
  chmodSync(join(files, "first"), 0o640);
  const before = treeHash(files);

  const made = await one.create(app);
  expect(made).toMatchObject({ partial: false, warnings: [], consistency: "stopped", snapshotId: expect.stringMatching(/^[0-9a-f]{64}$/) });
  remove(files);
  writeFileSync(one.pathOf(app, "volumes", "stray"), "none of a volume");
  const brought = await one.restore(app, made.snapshotId);
  expect(brought).toEqual({ files: made.files, bytes: made.size, verified: true });
  expect(treeHash(files)).toBe(before);
  expect(readlinkSync(join(files, "out"))).toBe("/etc/passwd");
  expect(lstatSync(join(files, "first")).ino).toBe(lstatSync(join(files, "second")).ino);
  // restic keeps holes from 0.15 on; before, the file has the same bytes and more blocks.
  const keepsHoles = !/^0\.1[0-4]\./.test((await one.engine.version()) ?? "");
  expect(statSync(join(files, "holes")).blocks * 512 < 5_000_000).toBe(keepsHoles);
  expect(stateOf(app)).toBe("running");
  expect(readdirSync(one.pathOf(app)).filter((name) => ["incoming", "former"].includes(name) && readdirSync(one.pathOf(app, name)).length > 0)).toEqual([]);
});

test("a repeated order finds the work of an interrupted one, and one that had ended is not carried out again", async () => {
  const { app, files } = await started();
  writeFileSync(join(files, "key"), "1");
  const backupId = newId("bak");
  const made = await one.create(app, { backupId });
  // The mark of a command that did not end.
  const marks = () => readdirSync(join(one.harness.folder, "backups")).filter((name) => name.startsWith("working-"));
  expect(marks()).toEqual([]);
  writeFileSync(join(one.harness.folder, "backups", `working-${createHash("sha256").update("one").digest("hex").slice(0, 16)}`), "");
  const again = await one.create(app, { backupId });
  expect(again.snapshotId).toBe(made.snapshotId);
  expect(marks()).toEqual([]);

  const restoreId = newId("rst");
  await one.restore(app, made.snapshotId, { restoreId });
  writeFileSync(join(files, "key"), "written since");
  await one.restore(app, made.snapshotId, { restoreId });
  expect(readFileSync(join(files, "key"), "utf8")).toBe("written since");
});

test("a dry run changes nothing and tells files, bytes, space and what would be replaced; a selective restore replaces what it names", async () => {
  const { app, files } = await started();
  mkdirSync(join(files, "a*b"));
  writeFileSync(join(files, "a*b", "x"), "kept");
  mkdirSync(join(files, "acb"));
  writeFileSync(join(files, "acb", "x"), "other");
  const made = await one.create(app);
  writeFileSync(join(files, "a*b", "x"), "new");
  writeFileSync(join(files, "acb", "x"), "new");
  const before = treeHash(files);
  const { plan } = await one.restore(app, made.snapshotId, { dryRun: true });
  expect(plan).toEqual({ files: made.files, bytes: made.size, freeBytes: expect.any(Number), replaces: ["files"] });
  expect(treeHash(files)).toBe(before);
  expect(await failureOf(one.restore(app, made.snapshotId, { overwriteExisting: false }))).toMatchObject({ reason: "RESTORE_TARGET_EXISTS" });

  const selective = { restoreType: "selective", paths: ["files/a*b"] } as const;
  expect((await one.restore(app, made.snapshotId, { ...selective, paths: [...selective.paths], dryRun: true })).plan).toMatchObject({
    files: 1,
    bytes: 4,
    replaces: ["files/a*b"],
  });
  expect(await one.restore(app, made.snapshotId, { ...selective, paths: [...selective.paths] })).toMatchObject({ files: 1, bytes: 4 });
  expect([readFileSync(join(files, "a*b", "x"), "utf8"), readFileSync(join(files, "acb", "x"), "utf8")]).toEqual(["kept", "new"]);
  expect(await failureOf(one.restore(app, made.snapshotId, { restoreType: "selective", paths: ["files/none"] }))).toMatchObject({ reason: "PATH_MISSING" });
  for (const path of ["files/../../record.json", "/etc/passwd", "..", "files/\0"])
    expect(await failureOf(one.restore(app, made.snapshotId, { restoreType: "selective", paths: [path] }))).toMatchObject({ reason: "PATH_REFUSED" });
  // A link that the app has made must not lead the agent out of the volume.
  rmSync(join(files, "a*b"), { recursive: true });
  mkdirSync(join(one.harness.folder, "elsewhere", "x"), { recursive: true });
  symlinkSync(join(one.harness.folder, "elsewhere"), join(files, "a*b"));
  expect(await failureOf(one.restore(app, made.snapshotId, { restoreType: "selective", paths: ["files/a*b/x"] }))).toMatchObject({
    reason: "LINK_REFUSED",
    previousData: "kept",
  });
  expect(stateOf(app)).toBe("running");
});

test("an app that is not healthy with the restored data has its former data again", async () => {
  const { app, files } = await started();
  writeFileSync(join(files, "key"), "old");
  const made = await one.create(app);
  writeFileSync(join(files, "key"), "newer");
  const failure = await failureOf(one.restore(inMode(app, "exit"), made.snapshotId));
  expect(failure).toMatchObject({ reason: "NOT_HEALTHY_AFTER_RESTORE", stage: "health", previousData: "kept" });
  expect(readFileSync(join(files, "key"), "utf8")).toBe("newer");
  expect(stateOf(app)).toBe("running");
});

test("data comes to a device that never had the app", async () => {
  const { app, files } = await started();
  writeFileSync(join(files, "key"), "travels");
  const made = await one.create(app);
  const other = desiredApp(await freePort());
  await one.restore(other, made.snapshotId);
  expect(readFileSync(one.pathOf(other, "volumes", "files", "key"), "utf8")).toBe("travels");
  expect(stateOf(other)).toBe("running");
});

test("a cancelled backup leaves the app running and no lock in the way", async () => {
  const { app, files } = await started();
  execFileSync("sh", ["-c", `head -c 300000000 /dev/urandom > ${join(files, "big")}`]);
  const cancel = new AbortController();
  const backupId = newId("bak");
  const work = one.engine.create({ backupId, app, type: "full", consistency: "template" }, one.context(cancel.signal));
  const ended = work.then(
    () => "completed",
    (error: unknown) => error,
  );
  await eventually(() => expect(existsSync(join(one.repository, "locks")) && readdirSync(join(one.repository, "locks")).length).toBeGreaterThan(0));
  cancel.abort("cancelled");
  expect(await ended).toBe("cancelled");
  await eventually(() => expect(stateOf(app)).toBe("running"));
  remove(join(files, "big"));
  const made = await one.create(app);
  await one.engine.delete({ destinationId: newId("bkd"), snapshotIds: [made.snapshotId, "0".repeat(64)] }, one.context());
  expect(await one.engine.prune({ destinationId: newId("bkd") }, one.context())).toMatchObject({ checked: true });
});

test("verification reads every block: a changed byte is found, and a repository that is gone or has another password is named", async () => {
  const { app, files } = await started();
  writeFileSync(join(files, "key"), execFileSync("head", ["-c", "100000", "/dev/urandom"]));
  const made = await one.create(app);
  const order = { backupId: newId("bak"), appId: app.appId, snapshotId: made.snapshotId } as const;
  expect(await one.engine.verify({ ...order, mode: "checksum" }, one.context())).toEqual({ bytes: made.size });
  expect(await one.engine.verify({ ...order, mode: "restore_test" }, one.context())).toEqual({ bytes: made.size });

  one.environment["RESTIC_PASSWORD"] = "another";
  expect(await failureOf(one.create(app))).toMatchObject({ reason: "REPOSITORY_PASSWORD_WRONG" });
  one.environment["RESTIC_PASSWORD"] = "correct horse";
  const packs = readdirSync(join(one.repository, "data"), { recursive: true, encoding: "utf8" }).filter((name) => name.length > 64);
  for (const pack of packs) {
    const path = join(one.repository, "data", pack);
    const bytes = readFileSync(path);
    if (bytes.length < 50_000) continue;
    bytes[1_000] = (bytes[1_000] ?? 0) ^ 1;
    chmodSync(path, 0o600);
    writeFileSync(path, bytes);
  }
  expect(await failureOf(one.engine.verify({ ...order, mode: "checksum" }, one.context()))).toMatchObject({ reason: "REPOSITORY_DAMAGED" });
  one.environment["RESTIC_REPOSITORY"] = join(one.harness.folder, "gone");
  expect(await failureOf(one.engine.verify({ ...order, mode: "checksum" }, one.context()))).toMatchObject({ reason: "REPOSITORY_MISSING" });
  one.environment["RESTIC_REPOSITORY"] = one.repository;
  expect(stateOf(app)).toBe("running");
});
