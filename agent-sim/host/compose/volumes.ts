// The volumes of Compose projects, as the engine knows them.
import { dirname, join } from "node:path";
import { z } from "zod";
import { AppId } from "../../../protocol/kit/ids.ts";
import type { HostVolume, VolumePlace } from "../app-data.ts";
import { HostFailure, refuse } from "../host.ts";
import { FORMER, INCOMING } from "../processes/data-words.ts";
import type { HostVolumes } from "../volumes.ts";

const PROJECT = "com.docker.compose.project";
const Volume = z.object({ Name: z.string(), Driver: z.string(), Mountpoint: z.string(), Labels: z.record(z.string(), z.string()).nullish() });
export type EngineVolume = z.output<typeof Volume>;

/** Runs the engine's client and returns what it says. Rejects with HostFailure. */
export type RunDocker = (words: readonly string[]) => Promise<string>;

const understand = (text: string): readonly EngineVolume[] => {
  try {
    return z.array(Volume).parse(JSON.parse(text));
  } catch {
    throw new HostFailure({ stage: "running", reason: "COMPOSE_FAILED", message: "docker volume inspect answered in an unknown form" });
  }
};
const inspect = async (docker: RunDocker, names: readonly string[]): Promise<readonly EngineVolume[]> =>
  names.length === 0 ? [] : understand(await docker(["volume", "inspect", ...names]));
const namesOf = async (docker: RunDocker, filter: string): Promise<readonly string[]> =>
  (await docker(["volume", "ls", "--quiet", "--filter", filter])).split("\n").filter((line) => line !== "");

/** The volumes of a project that the engine has, by the names of the Compose file. */
export const volumesOfProject = async (docker: RunDocker, project: string): Promise<ReadonlyMap<string, EngineVolume>> => {
  const found = await inspect(docker, await namesOf(docker, `label=${PROJECT}=${project}`));
  return new Map(
    found.flatMap((volume) => (volume.Labels?.["com.docker.compose.volume"] === undefined ? [] : [[volume.Labels["com.docker.compose.volume"], volume]])),
  );
};

/** Beside the engine's folder of the data, which is on the same file system. */
export const enginePlaceOf = (name: string, { Mountpoint: path, Driver }: EngineVolume): VolumePlace => {
  if (Driver !== "local" || path === "") refuse("VOLUME_REFUSED", `the volume ${name} is not in a folder of this machine`);
  return { name, path, before: join(dirname(path), FORMER), incoming: join(dirname(path), INCOMING) };
};

/** The volumes of our apps; those of other projects are none of the agent's business. */
export const createEngineVolumes = (docker: RunDocker, apps: () => readonly string[]): HostVolumes => {
  const list = async (): Promise<readonly HostVolume[]> => {
    const byProject = new Map(apps().map((appId) => [appId.toLowerCase(), appId]));
    const found = await inspect(docker, await namesOf(docker, `label=${PROJECT}`));
    return found.flatMap(({ Name: name, Driver: driver, Mountpoint: path, Labels }) => {
      const project = Labels?.[PROJECT] ?? "";
      const appId = byProject.get(project) ?? null;
      if (appId === null && !AppId.safeParse(project.replace(/_(.*)$/, (_, rest: string) => `_${rest.toUpperCase()}`)).success) return [];
      return [{ name, driver, path, labels: Labels ?? {}, appId, inUse: appId !== null }];
    });
  };
  return {
    list,
    remove: async (wanted) => {
      const found = (await list()).find(({ name }) => name === wanted);
      if (found === undefined) return false;
      if (found.appId !== null) return refuse("VOLUME_IN_USE", `the volume belongs to ${found.appId}`);
      await docker(["volume", "rm", wanted]);
      return true;
    },
  };
};
