// The volumes of Compose projects, as the engine knows them.
import { dirname, join } from "node:path";
import { z } from "zod";
import { AppId } from "../../../protocol/kit/ids.ts";
import type { HostVolume, VolumePlace } from "../app-data.ts";
import { HostFailure, refuse } from "../host.ts";
import { FORMER, INCOMING } from "../processes/data-words.ts";
import type { HostVolumes } from "../volumes.ts";

const PROJECT = "com.docker.compose.project";
const VOLUME = "com.docker.compose.volume";
const Volume = z.object({ Name: z.string(), Driver: z.string(), Mountpoint: z.string(), Labels: z.record(z.string(), z.string()).nullish() });
export type EngineVolume = z.output<typeof Volume>;

/** Runs the engine's client and returns what it says. Rejects with HostFailure. */
export type RunDocker = (words: readonly string[]) => Promise<string>;

const understand = <S extends z.ZodType>(schema: S, text: string): z.output<S> => {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new HostFailure({ stage: "running", reason: "COMPOSE_FAILED", message: "docker inspect answered in an unknown form" });
  }
};
const inspect = async (docker: RunDocker, names: readonly string[]): Promise<readonly EngineVolume[]> =>
  names.length === 0 ? [] : understand(z.array(Volume), await docker(["volume", "inspect", ...names]));
const namesOf = async (docker: RunDocker, filter: string): Promise<readonly string[]> =>
  (await docker(["volume", "ls", "--quiet", "--filter", filter])).split("\n").filter((line) => line !== "");

/** The volumes of a project that the engine has, by the names of the Compose file. */
const volumesOfProject = async (docker: RunDocker, project: string): Promise<ReadonlyMap<string, EngineVolume>> => {
  const found = await inspect(docker, await namesOf(docker, `label=${PROJECT}=${project}`));
  return new Map(found.flatMap((volume) => (volume.Labels?.[VOLUME] === undefined ? [] : [[volume.Labels[VOLUME], volume]])));
};

/** Beside the engine's folder of the data, which is on the same file system. */
const enginePlaceOf = (name: string, { Mountpoint: path, Driver }: EngineVolume): VolumePlace => {
  if (Driver !== "local" || path === "") refuse("VOLUME_REFUSED", `the volume ${name} is not in a folder of this machine`);
  return { name, path, before: join(dirname(path), FORMER), incoming: join(dirname(path), INCOMING) };
};

/** As Compose makes and finds them. */
const makeVolumes = async (docker: RunDocker, project: string, names: readonly string[]): Promise<void> => {
  for (const name of names) {
    const labels = ["--label", `${PROJECT}=${project}`, "--label", `${VOLUME}=${name}`];
    await docker(["volume", "create", ...labels, `${project}_${name}`]);
  }
};
/** Makes those that are missing: a restore comes to a device that never had the app. */
export const placesOfVolumes = async (docker: RunDocker, project: string, names: readonly string[]): Promise<readonly VolumePlace[]> => {
  if (names.length === 0) return [];
  let found = await volumesOfProject(docker, project);
  if (names.some((name) => !found.has(name))) {
    await makeVolumes(
      docker,
      project,
      names.filter((name) => !found.has(name)),
    );
    found = await volumesOfProject(docker, project);
  }
  return names.map((name) => enginePlaceOf(name, found.get(name) ?? refuse("COMPOSE_FAILED", `the engine did not make the volume ${name}`)));
};

const Container = z.object({
  service: z.string(),
  mounts: z.array(z.object({ Type: z.string(), Name: z.string().default(""), Destination: z.string() })),
});
/** The name that the engine gives a volume to which the project has given none. */
const UNNAMED = /^[0-9a-f]{64}$/;

/** The folders that an image declares as volumes and that the project does not name, in words. The next container gets empty ones. */
export const unnamedMounts = async (docker: RunDocker, containers: readonly string[]): Promise<readonly string[]> => {
  if (containers.length === 0) return [];
  const format = `{"service":{{json (index .Config.Labels "com.docker.compose.service")}},"mounts":{{json .Mounts}}}`;
  const lines = (await docker(["inspect", "--type", "container", "--format", format, ...containers])).split("\n").filter((line) => line !== "");
  return lines.flatMap((line) => {
    const { service, mounts } = understand(Container, line);
    const unnamed = mounts.filter(({ Type, Name }) => Type === "volume" && UNNAMED.test(Name));
    return unnamed.map(
      ({ Destination }) => `${Destination} of the service ${service} is not in this backup: its image declares it, and no volume of the project is there`,
    );
  });
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
