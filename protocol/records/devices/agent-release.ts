// A version of the agent that agents may update themselves to, and the text of it that its publisher signs.
import { z } from "zod";
import { AppSlug } from "../apps/app-spec.ts";

export const MAX_PACKAGE_BYTES = 16_777_216;

export const AgentVersion = z.string().regex(/^\d{1,6}\.\d{1,6}\.\d{1,6}$/);
export const ReleaseChannel = AppSlug.default("stable");
/** Names of Node: `linux`, `darwin`; `x64`, `arm64`. */
export const PlatformName = z.string().regex(/^[a-z0-9_]{1,32}$/);

export const AgentRelease = z.object({
  version: AgentVersion,
  platform: PlatformName.describe("As `process.platform` of Node, or `any`."),
  arch: PlatformName.describe("As `process.arch` of Node, or `any`."),
  channel: AppSlug,
  url: z.string().min(1).max(2_048).describe("Where the package is: a URL, or a path at the gateway, which takes a signed GET."),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  size: z.int().min(1).max(MAX_PACKAGE_BYTES).describe("Of the package, in bytes."),
  mandatory: z.boolean().describe("`true`: agents update by themselves. Otherwise they wait for the command `agent-update`."),
  minVersion: AgentVersion.nullable().describe("Older agents cannot update to it directly."),
});
export type AgentRelease = z.output<typeof AgentRelease>;

/** Fields of later publishers stay: they are signed, too. */
export const SignedRelease = AgentRelease.extend({
  signature: z
    .string()
    .regex(/^[\w-]{86}$/)
    .describe("Ed25519, base64url: over the bytes of `signed`."),
}).loose();
export type SignedRelease = z.output<typeof SignedRelease>;

export const SignedText = z
  .string()
  .max(65_536)
  .nullable()
  .describe(
    "The text that the publisher signed, byte for byte: a JSON object with every field of the release but the signature. If null, it is the JSON of these fields with sorted keys and no spaces.",
  );

/** The text that a publisher signs; also the signed text of a release that comes without it. */
export const releaseText = ({ signature: _, ...fields }: Readonly<Record<string, unknown>>): string =>
  JSON.stringify(Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1))));

export interface OpenedRelease {
  readonly release: SignedRelease;
  /** Verify the signature over exactly these bytes. */
  readonly text: string;
}

/** Reads a release from the text that was signed, so that nothing but this text counts. Throws for any that is none. */
export const openRelease = (given: unknown, signed: string | null): OpenedRelease => {
  const outer = z.looseObject({ signature: z.unknown() }).parse(given);
  const inner = signed === null ? outer : z.looseObject({}).parse(JSON.parse(signed));
  return { release: SignedRelease.parse({ ...inner, signature: outer.signature }), text: signed ?? releaseText(outer) };
};

/** Negative if `a` is older. */
export const compareVersions = (a: string, b: string): number => {
  const [x, y] = [a, b].map((version) => version.split(".").map(Number));
  return [0, 1, 2].map((at) => (x?.[at] ?? 0) - (y?.[at] ?? 0)).find((difference) => difference !== 0) ?? 0;
};

/** The text of a package: the files of one version of the agent, by path. */
export const AgentPackage = z.record(
  z
    .string()
    .regex(/^(?:\w[\w.-]*\/)*\w[\w.-]*$/)
    .max(256),
  z.string(),
);
