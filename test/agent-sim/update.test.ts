// An agent takes a release only if its publisher signed it, it is newer and meant for this agent, and its package is whole and stays in its folder.
import { createHash, createPrivateKey, sign } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemTime } from "../../agent-sim/agent/index.ts";
import { launchAgent } from "../../agent-sim/update/launcher.ts";
import { checkPackage, checkRelease, createKeys, MAIN, signRelease, UpdateRefused } from "../../agent-sim/update/release.ts";
import { openVersions } from "../../agent-sim/update/versions.ts";
import type { SignedRelease } from "../../protocol/records/devices/agent-release.ts";

const { privateKey, publicKey } = createKeys();
const OWN = { version: "1.2.3", platform: "linux", arch: "x64", channel: "stable", publicKey };
const FILES = { "package.json": '{"version":"1.10.0"}', [MAIN]: "process.exit(0);" };
const TEXT = JSON.stringify(FILES);
const PLAIN = {
  ...{ version: "1.10.0", platform: "any", arch: "any", channel: "stable", url: "/package", mandatory: false, minVersion: null },
  sha256: createHash("sha256").update(TEXT).digest("hex"),
  size: Buffer.byteLength(TEXT),
};
const signed = (differences: Partial<SignedRelease> = {}): SignedRelease => signRelease({ ...PLAIN, ...differences }, privateKey);
const reasonOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (error instanceof UpdateRefused) return error.reason;
    throw error;
  }
  return "taken";
};

test("a newer release that its publisher signed is taken, whatever else is signed in it", () => {
  expect(checkRelease({ release: signed() }, OWN)).toMatchObject({ version: "1.10.0" });
  expect(checkRelease({ release: signed({ notes: "fields of later publishers" }) }, OWN)).toMatchObject({ version: "1.10.0" });
});

/** As a publisher writes it who does not use JavaScript: spaces, another order, a number that JavaScript rounds, the same value in two notations. */
const FOREIGN = JSON.stringify(PLAIN, null, 1).replace("{", '{ "build": 12345678901234567890, "ratio": 1.0, "note": "\\u00e4",');
const signatureOf = (text: string): string => sign(null, Buffer.from(text), createPrivateKey(privateKey)).toString("base64url");

test("the signature counts over the very bytes that were signed, and only these are read", () => {
  const release = { signature: signatureOf(FOREIGN) };
  expect(checkRelease({ release, signed: FOREIGN }, OWN)).toMatchObject({ version: "1.10.0", note: "ä" });
  // What stands beside the signed text decides nothing.
  expect(checkRelease({ release: { ...release, version: "99.0.0", mandatory: true }, signed: FOREIGN }, OWN)).toMatchObject({
    version: "1.10.0",
    mandatory: false,
  });
  expect(reasonOf(() => checkRelease({ release, signed: FOREIGN.replace("1.0,", "1,") }, OWN))).toBe("SIGNATURE_INVALID");
  expect(reasonOf(() => checkRelease({ release, signed: "[]" }, OWN))).toBe("MANIFEST_INVALID");
  expect(reasonOf(() => checkRelease({ release, signed: "{" }, OWN))).toBe("MANIFEST_INVALID");
  expect(reasonOf(() => checkRelease({ release: { ...PLAIN, ...release } }, OWN))).toBe("SIGNATURE_INVALID");
});

test("the agent's own version is nothing to do", () => expect(checkRelease({ release: signed({ version: "1.2.3" }) }, OWN)).toBeNull());

test.each<[string, unknown]>([
  ["MANIFEST_INVALID", { ...signed(), sha256: "short" }],
  ["MANIFEST_INVALID", null],
  ["SIGNATURE_INVALID", { ...signed(), version: "1.11.0" }],
  ["SIGNATURE_INVALID", { ...signed(), mandatory: true }],
  ["SIGNATURE_INVALID", { ...signed(), notes: "added later" }],
  ["SIGNATURE_INVALID", signRelease(PLAIN, createKeys().privateKey)],
  ["OLDER_VERSION", signed({ version: "1.2.2" })],
  ["MIN_VERSION", signed({ minVersion: "1.3.0" })],
  ["NOT_FOR_THIS_AGENT", signed({ platform: "darwin" })],
  ["NOT_FOR_THIS_AGENT", signed({ arch: "arm64" })],
  ["NOT_FOR_THIS_AGENT", signed({ channel: "beta" })],
])("a release is refused: %s", (reason, release) => expect(reasonOf(() => checkRelease({ release }, OWN))).toBe(reason));

const packageOf = (text: string): readonly [string, SignedRelease] => [
  text,
  signed({ size: Buffer.byteLength(text), sha256: createHash("sha256").update(text).digest("hex") }),
];

test("a whole package is taken", () => expect(checkPackage(...packageOf(TEXT))).toEqual(FILES));

test.each<[string, readonly [string, SignedRelease]]>([
  ["SIZE_MISMATCH", [TEXT.slice(0, -1), signed()]],
  ["CHECKSUM_MISMATCH", [TEXT.replace("exit(0)", "exit(1)"), signed()]],
  ["PACKAGE_INVALID", packageOf("no JSON")],
  ["PACKAGE_INVALID", packageOf(JSON.stringify({ ...FILES, "package.json": '{"version":"9.0.0"}' }))],
  ["PACKAGE_INVALID", packageOf(JSON.stringify({ "package.json": FILES["package.json"] }))],
  ...["../outside.js", "a/../../outside.js", "/outside.js", "a//outside.js", "a\\..\\outside.js", ".ssh/config", "a/./b"].map(
    (path): [string, readonly [string, SignedRelease]] => ["PACKAGE_INVALID", packageOf(JSON.stringify({ ...FILES, [path]: "" }))],
  ),
])("a package is refused: %s", (reason, given) => expect(reasonOf(() => checkPackage(...given))).toBe(reason));

test("an installed version replaces what a broken attempt left, and keeps the version that runs", () => {
  const folder = mkdtempSync(join(tmpdir(), "agent-versions-"));
  try {
    const versions = openVersions(folder);
    versions.install("1.3.0", FILES);
    versions.write({ current: "1.3.0" });
    versions.install("1.9.0", { [MAIN]: "old" });
    versions.install("1.10.0", FILES);
    expect([versions.mainOf("1.3.0"), versions.mainOf("1.9.0")].map(existsSync)).toEqual([true, false]);
    expect(readFileSync(versions.mainOf("1.10.0"), "utf8")).toBe(FILES[MAIN]);
    expect(openVersions(folder).read()).toEqual({ current: "1.3.0", trial: null, failed: null });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("a version that crashes again and again after a good trial is given up for the former one, which tells of it", { timeout: 40_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "launcher-"));
  const versions = openVersions(folder);
  const installed = join(folder, "installed.mjs");
  writeFileSync(installed, "process.exit(0);");
  versions.install("60.0.0", {
    "dist/agent-sim/main.js": 'process.send("ready"); setTimeout(() => process.exit(1), 100);',
    "package.json": '{"type":"module"}',
  });
  versions.write({ trial: { version: "60.0.0", sha256: "a".repeat(64) } });
  const said: string[] = [];
  expect(await launchAgent({ versions, installed, args: [], trialMs: 10_000, time: systemTime, say: (text) => said.push(text) })).toBe(0);
  expect(said.filter((line) => line.includes("started again"))).toHaveLength(3);
  expect(versions.read()).toMatchObject({
    current: null,
    trial: null,
    failed: { version: "60.0.0", told: false, message: expect.stringContaining("3 times") },
  });
  rmSync(folder, { recursive: true });
});
