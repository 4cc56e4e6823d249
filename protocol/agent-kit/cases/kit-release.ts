// Releases of an agent that the kit offers: signed with the agent's own key or another, with a package that does not run.
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { releaseText } from "../../records/devices/agent-release.ts";

export const UPDATE_KEY = generateKeyPairSync("ed25519");
export const OTHER_KEY = generateKeyPairSync("ed25519");
export const UPDATE_PUBLIC_KEY = String(UPDATE_KEY.publicKey.export({ format: "jwk" }).x);
/** A package in the form of the reference agent, whose version does not run. */
export const PACKAGE = JSON.stringify({ "dist/agent-sim/main.js": "process.exit(9);\n", "package.json": '{"type":"module","version":"999.0.0"}\n' });

export const releaseOf = (version: string, key: KeyObject, { sha256 = createHash("sha256").update(PACKAGE).digest("hex") } = {}) => {
  const release = {
    version,
    platform: "any",
    arch: "any",
    channel: "stable",
    url: "/v1/agent/updates/package",
    sha256,
    size: Buffer.byteLength(PACKAGE),
    mandatory: false,
    minVersion: null,
  };
  const text = releaseText(release);
  return { release: { ...release, signature: sign(null, Buffer.from(text), key).toString("base64url") }, signed: text };
};
