// Decides whether the agent takes a release that a gateway offers, and signs releases. Only the publisher has the private key, no gateway.
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { z } from "zod";
import {
  AgentPackage,
  type AgentRelease,
  compareVersions,
  type OpenedRelease,
  openRelease,
  releaseText,
  type SignedRelease,
} from "../../protocol/records/devices/agent-release.ts";

/** Why a release is not taken. */
export class UpdateRefused extends Error {
  override readonly name = "UpdateRefused";
  readonly reason: string;
  readonly version: string | null;

  constructor(reason: string, message: string, version: string | null) {
    super(message);
    [this.reason, this.version] = [reason, version];
  }
}

export interface Own {
  readonly version: string;
  readonly platform: string;
  readonly arch: string;
  readonly channel: string;
  /** Base64url of the 32 bytes of an Ed25519 key. */
  readonly publicKey: string;
}

const isSigned = (text: string, signature: string, publicKey: string): boolean =>
  verify(null, Buffer.from(text), createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: publicKey }, format: "jwk" }), Buffer.from(signature, "base64url"));

/** What a gateway offers. `signed` is missing at gateways that do not pass it on. */
export interface OfferedRelease {
  readonly release: unknown;
  readonly signed?: string | null | undefined;
}

const opened = ({ release, signed = null }: OfferedRelease): OpenedRelease => {
  try {
    return openRelease(release, signed);
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : String(error);
    throw new UpdateRefused("MANIFEST_INVALID", why.slice(0, 500), null);
  }
};

/** Null if the agent has this version already. Throws UpdateRefused. */
export const checkRelease = (offer: OfferedRelease, own: Own): SignedRelease | null => {
  const { release, text } = opened(offer);
  const { version, signature, platform, arch, channel, minVersion } = release;
  const refuse = (reason: string, message: string): never => {
    throw new UpdateRefused(reason, message, version);
  };
  if (!isSigned(text, signature, own.publicKey)) refuse("SIGNATURE_INVALID", "it is not signed with the key of this agent");
  if (!["any", own.platform].includes(platform) || !["any", own.arch].includes(arch) || channel !== own.channel)
    refuse("NOT_FOR_THIS_AGENT", `it is for ${platform} ${arch} ${channel}, not ${own.platform} ${own.arch} ${own.channel}`);
  const age = compareVersions(version, own.version);
  if (age < 0) refuse("OLDER_VERSION", `it is older than ${own.version}`);
  if (minVersion !== null && compareVersions(own.version, minVersion) < 0)
    refuse("MIN_VERSION", `it takes ${minVersion} or newer to update to it, not ${own.version}`);
  return age === 0 ? null : release;
};

export const MAIN = "dist/agent-sim/main.js";

/** The files of a package, which must be the one that the release names. Throws UpdateRefused. */
export const checkPackage = (text: string, { version, size, sha256 }: SignedRelease): Readonly<Record<string, string>> => {
  const bytes = Buffer.from(text);
  const refuse = (reason: string, message: string): never => {
    throw new UpdateRefused(reason, message, version);
  };
  if (bytes.length !== size) refuse("SIZE_MISMATCH", `the package has ${bytes.length} bytes, not ${size}`);
  if (createHash("sha256").update(bytes).digest("hex") !== sha256) refuse("CHECKSUM_MISMATCH", "the package has another SHA-256");
  try {
    const files = AgentPackage.parse(JSON.parse(text));
    const named = z.object({ version: z.literal(version) }).safeParse(JSON.parse(files["package.json"] ?? "null"));
    return named.success && files[MAIN] !== undefined ? files : refuse("PACKAGE_INVALID", `it is no agent of version ${version}`);
  } catch (error) {
    if (error instanceof UpdateRefused) throw error;
    return refuse("PACKAGE_INVALID", "it is no package with paths inside its folder");
  }
};

export const createKeys = (): { readonly privateKey: string; readonly publicKey: string } => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return { privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(), publicKey: publicKey.export({ format: "jwk" }).x ?? "" };
};

export const signRelease = (release: AgentRelease, privateKey: string): SignedRelease => ({
  ...release,
  signature: sign(null, Buffer.from(releaseText(release)), createPrivateKey(privateKey)).toString("base64url"),
});

/** The publisher's file: the release, and the text that was signed. Gateways of version 0.2 read the fields beside it. */
export const releaseFile = (release: SignedRelease): string => JSON.stringify({ ...release, signed: releaseText(release) });
