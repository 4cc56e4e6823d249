// The releases of the agent in the operator's folder. Their publisher has signed them, and the agents check that: the gateway passes on what was
// signed as it is, with the fields that it does not know.
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { compareVersions, openRelease, type SignedRelease, SignedText } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";

const READ_AGAIN_MS = 1_000;
const MANIFEST = ".release.json";
/** Agents take no larger answer. */
const MAX_PACKAGE_BYTES = 16_777_216;
const MAX_MANIFEST_BYTES = 262_144;

/** As the operation answers. */
interface Offered {
  readonly release: SignedRelease;
  readonly signed: string | null;
}
type Machine = Pick<SignedRelease, "platform" | "arch" | "channel">;

export interface ReleasesDeps {
  readonly folder: string | undefined;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

const isFor = (release: SignedRelease, { platform, arch, channel }: Machine): boolean =>
  release.channel === channel && ["any", platform].includes(release.platform) && ["any", arch].includes(release.arch);

/** A folder, a pipe or an endless file is no package, whatever its name. */
const readBounded = async (path: string, maxBytes: number): Promise<string> => {
  const found = await stat(path);
  if (!found.isFile() || found.size > maxBytes) throw new Error(`it is no file of at most ${maxBytes} bytes`);
  return readFile(path, "utf8");
};

export const createReleases = ({ folder, clock, onError }: ReleasesDeps) => {
  const readRelease = async (name: string): Promise<Offered | null> => {
    try {
      const { signed: text, ...fields }: { readonly signed?: unknown } = JSON.parse(await readBounded(join(folder ?? "", name), MAX_MANIFEST_BYTES));
      const signed = SignedText.parse(text ?? null);
      return { release: openRelease(fields, signed).release, signed };
    } catch (cause) {
      onError(new Error(`the release ${name} of the agent cannot be read`, { cause }));
      return null;
    }
  };
  const readAll = async (): Promise<readonly Offered[]> => {
    if (folder === undefined) return [];
    const names = await readdir(folder).catch((cause: unknown) => {
      onError(new Error(`AGENT_RELEASES_DIR cannot be read: ${folder}`, { cause }));
      return [];
    });
    const releases = await Promise.all(names.filter((name) => name.endsWith(MANIFEST)).map(readRelease));
    return releases.flatMap((release) => release ?? []).sort((a, b) => compareVersions(b.release.version, a.release.version));
  };
  let known = { atMs: Number.NEGATIVE_INFINITY, releases: Promise.resolve<readonly Offered[]>([]) };
  const read = (): Promise<readonly Offered[]> => {
    const nowMs = clock.now().getTime();
    if (nowMs - known.atMs >= READ_AGAIN_MS) known = { atMs: nowMs, releases: readAll() };
    return known.releases;
  };
  return {
    /** The newest version of the channel, for any machine. Null: there is none. "elsewhere": this gateway offers no releases at all, so it knows none. */
    newest: async (channel: string): Promise<string | null | "elsewhere"> => {
      const releases = await read();
      return releases.length === 0 ? "elsewhere" : (releases.find(({ release }) => release.channel === channel)?.release.version ?? null);
    },
    latest: async (machine: Machine): Promise<Offered | null> => {
      return (await read()).find(({ release }) => isFor(release, machine)) ?? null;
    },
    /** The contract lets no name leave the folder. */
    readPackage: async (file: string): Promise<string> => {
      const missing = new AppError("AGENT_PACKAGE_NOT_FOUND", { details: { file } });
      if (folder === undefined) throw missing;
      return readBounded(join(folder, file), MAX_PACKAGE_BYTES).catch((cause: unknown) => {
        if (!(cause instanceof Error && "code" in cause && cause.code === "ENOENT"))
          onError(new Error(`the package ${file} of the agent cannot be read`, { cause }));
        throw missing;
      });
    },
  };
};
