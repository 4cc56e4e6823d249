// The gateway passes on what the publisher of a release signed as it is, so that agents of every version can verify it.
import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkRelease, createKeys, releaseFile, signRelease } from "../../../agent-sim/update/release.ts";
import { releaseText } from "../../../protocol/records/devices/agent-release.ts";
import { type Device, startWorld, type World } from "../../kit/gateway/world.ts";

const { privateKey, publicKey } = createKeys();
const OWN = { version: "1.2.3", platform: "linux", arch: "x64", channel: "stable", publicKey };
const PLAIN = { version: "2.0.0", platform: "any", arch: "any", channel: "stable", url: "/package", mandatory: false, minVersion: null };
const RELEASE = { ...PLAIN, sha256: "0".repeat(64), size: 1 };
/** Of a publisher that is newer than the gateway. */
const NEWER = { ...RELEASE, notes: { zulu: 1, alpha: ["ä", 1.5] }, attestation: "in-toto" };

let world: World;
let device: Device;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agent-releases-"));
  world = await startWorld({ AGENT_RELEASES_DIR: folder, RATE_LIMIT_AGENT: "off" });
  device = await (await world.tenant()).device();
});
afterAll(async () => {
  await world.close();
  await rm(folder, { recursive: true });
});

let channels = 0;
/** A channel of its own for each, so that the gateway's memory of a second does not matter. */
const offered = async (fileOf: (channel: string) => string) => {
  const channel = `channel-${channels++}`;
  await writeFile(join(folder, `${channel}.release.json`), fileOf(channel));
  const read = async () => (await world.call(device.as, "GET", `/v1/agent/updates/latest?platform=linux&arch=x64&channel=${channel}`)).body.data;
  await expect.poll(async () => (await read()).release, { timeout: 20_000 }).not.toBeNull();
  return { offer: await read(), own: { ...OWN, channel } };
};
/** What agents of version 0.2 do. */
const verifiedByOldAgents = ({ release }: { readonly release: Record<string, unknown> }): boolean =>
  verify(
    null,
    Buffer.from(releaseText(release)),
    createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: publicKey }, format: "jwk" }),
    Buffer.from(String(release["signature"]), "base64url"),
  );

test("agents old and new take a release with fields that the gateway does not know", async () => {
  const { offer, own } = await offered((channel) => releaseFile(signRelease({ ...NEWER, channel }, privateKey)));
  expect(checkRelease(offer, own)).toMatchObject({ version: "2.0.0", attestation: "in-toto" });
  expect(verifiedByOldAgents(offer)).toBe(true);
});

test("a release that was written before the signed text was passed on is taken by agents old and new", async () => {
  const { offer, own } = await offered((channel) => JSON.stringify(signRelease({ ...NEWER, channel }, privateKey)));
  expect(offer.signed).toBeNull();
  expect(checkRelease(offer, own)).toMatchObject({ version: "2.0.0" });
  expect(verifiedByOldAgents(offer)).toBe(true);
});

test("the gateway changes no byte of a text that it would write otherwise", async () => {
  let text = "";
  const { offer, own } = await offered((channel) => {
    text = JSON.stringify({ ...RELEASE, channel }, null, 2).replace("{", '{ "build": 12345678901234567890, "ratio": 1.0, "version": "1.0.0",');
    return JSON.stringify({ signature: sign(null, Buffer.from(text), createPrivateKey(privateKey)).toString("base64url"), signed: text });
  });
  expect(offer.signed).toBe(text);
  expect(checkRelease(offer, own)).toMatchObject({ version: "2.0.0" });
});

test("a file that is no release, or is too large, is left out, and a folder named like a package is none", async () => {
  await writeFile(join(folder, "broken.release.json"), "{");
  await writeFile(join(folder, "list.release.json"), "[]");
  await writeFile(join(folder, "null.release.json"), "null");
  await writeFile(
    join(folder, "large.release.json"),
    JSON.stringify({ ...signRelease({ ...RELEASE, channel: "large" }, privateKey), more: "x".repeat(300_000) }),
  );
  await mkdir(join(folder, "folder.release.json"));
  const { offer } = await offered((channel) => releaseFile(signRelease({ ...RELEASE, channel }, privateKey)));
  expect(offer.release.version).toBe("2.0.0");
  const large = await world.call(device.as, "GET", "/v1/agent/updates/latest?platform=linux&arch=x64&channel=large");
  expect(large.body.data).toEqual({ release: null, signed: null });
  await mkdir(join(folder, "folder.package.json"));
  expect(await world.call(device.as, "GET", "/v1/agent/updates/packages/folder.package.json")).toMatchObject({
    status: 404,
    body: { code: "AGENT_PACKAGE_NOT_FOUND" },
  });
});
