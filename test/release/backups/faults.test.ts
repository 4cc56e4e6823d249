// What restic complains of on the way: files that it could not read, and disks that are full. A program before the real restic brings these about.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { HandlerFailure } from "../../../agent-sim/agent/index.ts";
import { desiredApp } from "../../agent-sim/host/desired.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { type EngineHarness, newId, openEngine } from "./real-engine.ts";

let folder: string;
let program: string;
let one: EngineHarness;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "restic-faults-"));
  program = join(folder, "restic");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(() => {
  one = openEngine(program);
});
afterEach(() => one.close());

/** From now on these words of restic end so; all others are its own affair. */
const breaking = (word: string, script: string): void => {
  writeFileSync(program, `#!/bin/sh\nif [ "$1" = ${word} ]; then\n${script}\nfi\nexec restic "$@"\n`);
  chmodSync(program, 0o755);
};
const started = async () => {
  const app = desiredApp(await freePort());
  await one.harness.host.apply(app);
  writeFileSync(one.pathOf(app, "volumes", "files", "key"), "value");
  return app;
};
const stateOf = ({ appId }: { readonly appId: string }) => one.harness.host.report().find((each) => each.appId === appId)?.state;
const failureOf = async (work: Promise<unknown>): Promise<unknown> => {
  const error = await work.then(
    () => "it succeeded",
    (reason: unknown) => reason,
  );
  return error instanceof HandlerFailure ? error.output : error;
};
const COMPLAINT = JSON.stringify({ message_type: "error", error: { message: "permission denied" }, during: "archival", item: "/volumes/files/secret" });
const UNREADABLE = `restic "$@" || exit\necho '${COMPLAINT}' >&2\nexit 3`;
const NO_SPACE = "echo 'Fatal: unable to save snapshot: write /repository/tmp: no space left on device' >&2\nexit 1";

test("a backup that lacks files is partial and names them", async () => {
  breaking("backup", UNREADABLE);
  const app = await started();
  expect(await one.create(app)).toMatchObject({
    partial: true,
    warnings: ["/volumes/files/secret: permission denied"],
    snapshotId: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(stateOf(app)).toBe("running");
});

test("a backup that lacks files stays partial if its agent was killed before it could say so", async () => {
  const app = await started();
  const backupId = newId("bak");
  // What a kill leaves: the mark of the command, as it was when restic ended.
  const marks = join(one.harness.folder, "backups");
  const mark = join(marks, `working-${createHash("sha256").update("one").digest("hex").slice(0, 16)}`);
  breaking("backup", `restic "$@" || exit\necho '${COMPLAINT}' >&2\nsleep 1\ncp ${mark} ${folder}/left\nexit 3`);
  await one.create(app, { backupId });
  expect(readdirSync(marks).filter((name) => name.startsWith("working-"))).toEqual([]);
  rmSync(mark, { force: true });
  writeFileSync(program, `#!/bin/sh\nexec restic "$@"\n`);
  writeFileSync(mark, readFileSync(join(folder, "left")));
  expect(await one.create(app, { backupId })).toMatchObject({ partial: true });
});

test("a repository that has lost the snapshot when restic says that all is written fails the backup", async () => {
  breaking("backup", `restic "$@" || exit\nrm -rf ${one.repository}/snapshots/*\nexit 0`);
  const app = await started();
  expect(await failureOf(one.create(app))).toMatchObject({ stage: "reading_back", reason: "SNAPSHOT_MISSING" });
  expect(stateOf(app)).toBe("running");
});

test("a download has the data as it was, and ends with an error when restic does", async () => {
  breaking("nothing", ":");
  const app = await started();
  const backupId = newId("bak");
  const { snapshotId } = await one.create(app, { backupId });
  const download = async (downloadId: string) => {
    await one.engine.download({ backupId, snapshotId, downloadId, seconds: 900 }, one.context());
    const archive = one.offers.dial(`download:${downloadId}`);
    if (archive === null || typeof archive === "string") throw new Error(`there is no offer: ${archive}`);
    return archive;
  };
  const target = join(folder, "downloaded");
  mkdirSync(target);
  const tar = spawn("tar", ["-xf", "-", "-C", target], { stdio: ["pipe", "ignore", "inherit"] });
  (await download("whole")).pipe(tar.stdin);
  expect(await once(tar, "close")).toEqual([0, null]);
  expect(readFileSync(join(target, "volumes", "files", "key"), "utf8")).toBe("value");
  breaking("dump", "head -c 100000 /dev/zero\necho 'Fatal: ciphertext verification failed' >&2\nexit 1");
  await expect(buffer(await download("broken"))).rejects.toMatchObject({ said: { reason: "REPOSITORY_DAMAGED" } });
});

test.each(["backup", "init"])("a full disk of the repository at restic %s fails the backup by name, and the app runs", async (word) => {
  breaking(word, NO_SPACE);
  const app = await started();
  expect(await failureOf(one.create(app))).toMatchObject({ reason: "DISK_FULL" });
  expect(stateOf(app)).toBe("running");
});

test("a full disk of the target fails a restore by name, and the app runs with its former data", async () => {
  breaking("nothing", ":");
  const app = await started();
  const { snapshotId } = await one.create(app);
  breaking("restore", NO_SPACE);
  expect(await failureOf(one.restore(app, snapshotId))).toMatchObject({ reason: "DISK_FULL", previousData: "kept" });
  expect(stateOf(app)).toBe("running");
});
