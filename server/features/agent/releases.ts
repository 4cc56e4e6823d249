// The releases of the agent in the operator's folder. Their publisher has signed them, and the agents check that.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { compareVersions, SignedRelease } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";

const READ_AGAIN_MS = 1_000;
const MANIFEST = ".release.json";

type Machine = Pick<SignedRelease, "platform" | "arch" | "channel">;

export interface ReleasesDeps {
  readonly folder: string | undefined;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

const isFor = (release: SignedRelease, { platform, arch, channel }: Machine): boolean =>
  release.channel === channel && ["any", platform].includes(release.platform) && ["any", arch].includes(release.arch);

export const createReleases = ({ folder, clock, onError }: ReleasesDeps) => {
  const readRelease = async (name: string): Promise<SignedRelease | null> => {
    try {
      return SignedRelease.parse(JSON.parse(await readFile(join(folder ?? "", name), "utf8")));
    } catch (cause) {
      onError(new Error(`the release ${name} of the agent cannot be read`, { cause }));
      return null;
    }
  };
  const readAll = async (): Promise<readonly SignedRelease[]> => {
    if (folder === undefined) return [];
    const names = await readdir(folder).catch((cause: unknown) => {
      onError(new Error(`AGENT_RELEASES_DIR cannot be read: ${folder}`, { cause }));
      return [];
    });
    const releases = await Promise.all(names.filter((name) => name.endsWith(MANIFEST)).map(readRelease));
    return releases.flatMap((release) => release ?? []).sort((a, b) => compareVersions(b.version, a.version));
  };
  let known = { atMs: Number.NEGATIVE_INFINITY, releases: Promise.resolve<readonly SignedRelease[]>([]) };
  return {
    latest: async (machine: Machine): Promise<SignedRelease | null> => {
      const nowMs = clock.now().getTime();
      if (nowMs - known.atMs >= READ_AGAIN_MS) known = { atMs: nowMs, releases: readAll() };
      return (await known.releases).find((release) => isFor(release, machine)) ?? null;
    },
    /** The contract lets no name leave the folder. */
    readPackage: async (file: string): Promise<string> => {
      const missing = new AppError("AGENT_PACKAGE_NOT_FOUND", { details: { file } });
      if (folder === undefined) throw missing;
      return readFile(join(folder, file), "utf8").catch((error: NodeJS.ErrnoException) => Promise.reject(error.code === "ENOENT" ? missing : error));
    },
  };
};
