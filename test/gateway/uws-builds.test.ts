// Which build of uWebSockets.js is loaded, and what an operator reads where none fits.
import { expect, test } from "vitest";
import { type Build, type HostMachine, loadFirst, OFFICIAL_LINE } from "../../server/gateway/uws/builds.ts";

const machine: HostMachine = { node: "26.1.0", abi: "147", platform: "linux", arch: "x64", glibc: "2.41" };
const works = (name: Build<string>["name"]): Build<string> => ({ name, covers: `what ${name} covers`, load: async () => name });
const fails = (name: Build<string>["name"], cause: Error = new Error("GLIBC_2.38 not found")): Build<string> => ({
  ...works(name),
  load: () => Promise.reject(cause),
});
const missing = Object.assign(new Error("Cannot find module"), { code: "MODULE_NOT_FOUND" });
const messageFor = async (builds: readonly Build<string>[], given: Partial<HostMachine>): Promise<string> => {
  const error = await loadFirst(builds, () => ({ ...machine, ...given })).catch((cause: unknown) => cause);
  return error instanceof Error ? error.message : "";
};

test("the newer build is taken where it loads, otherwise the older", async () => {
  expect(await loadFirst([works("newer"), works("older")], () => machine)).toEqual({ name: "newer", library: "newer" });
  expect(await loadFirst([fails("newer"), works("older")], () => machine)).toEqual({ name: "older", library: "older" });
});

test("a machine that no build fits reads what it has, what the builds cover, and how to install the official package", async () => {
  const text = await messageFor([fails("newer"), fails("older")], {});
  expect(text).toContain("no binary for Node 26.1.0 (ABI 147) on linux-x64 with glibc 2.41");
  expect(text).toContain("what newer covers");
  expect(text).toContain("what older covers");
  expect(text).toContain(OFFICIAL_LINE);
  expect(await messageFor([fails("newer"), fails("older")], { platform: "freebsd", arch: "arm64", glibc: null })).toContain("on freebsd-arm64. ");
});

test("a system with musl reads that no build runs there", async () => {
  const text = await messageFor([fails("newer"), fails("older")], { glibc: null });
  expect(text).toContain("musl");
  expect(text).toContain("such as Debian");
  expect(text).not.toContain(OFFICIAL_LINE);
});

test("an installation without optional dependencies reads that it lacks one", async () => {
  expect(await messageFor([fails("newer", missing), fails("older")], { node: "24.21.0" })).toContain("without --omit=optional");
});
