// The folder of the agent's releases holds what the operator puts there, also things that are no releases.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { createReleases } from "../../../server/features/agent/releases.ts";

let folder: string;
let errors: unknown[];
const releases = () => createReleases({ folder, clock: systemClock, onError: (error) => errors.push(error) });
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "releases-"));
  errors = [];
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a package is served as it is", async () => {
  writeFileSync(join(folder, "a.package.json"), "{}");
  expect(await releases().readPackage("a.package.json")).toBe("{}");
  expect(errors).toEqual([]);
});
test("a package that is not there is not found", async () => {
  await expect(releases().readPackage("a.package.json")).rejects.toMatchObject({ code: "AGENT_PACKAGE_NOT_FOUND" });
  expect(errors).toEqual([]);
});
test.each([
  ["folder", (path: string) => mkdirSync(path)],
  ["pipe", (path: string) => execFileSync("mkfifo", [path])],
  ["file that is too large", (path: string) => writeFileSync(path, Buffer.alloc(16_777_217))],
])("a %s that is named like a package is not found, and the operator hears why", async (_what, make) => {
  make(join(folder, "a.package.json"));
  await expect(releases().readPackage("a.package.json")).rejects.toMatchObject({ code: "AGENT_PACKAGE_NOT_FOUND" });
  expect(errors).toEqual([expect.objectContaining({ message: "the package a.package.json of the agent cannot be read" })]);
});
test.each([
  ["folder", (path: string) => mkdirSync(path)],
  ["pipe", (path: string) => execFileSync("mkfifo", [path])],
])("a %s that is named like a release is none, and the operator hears why", async (_what, make) => {
  make(join(folder, "a.release.json"));
  expect(await releases().latest({ platform: "linux", arch: "x64", channel: "stable" })).toBeNull();
  expect(errors).toEqual([expect.objectContaining({ message: "the release a.release.json of the agent cannot be read" })]);
});
