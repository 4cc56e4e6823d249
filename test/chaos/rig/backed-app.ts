// One app of a real agent whose data a scenario changes, backs up, restores and deletes, and what plain restic finds of it.
import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import type { Calls } from "./calls.ts";
import type { ProcessAgent } from "./process-agents.ts";

const run = promisify(execFile);
const BLOB_BYTES = 3_000_000;
const BLOBS = 4;
const INSTALL_MS = 120_000;

const Sheet = z.object({ repository: z.string(), password: z.string(), environment: z.record(z.string(), z.string()) });
type Sheet = z.output<typeof Sheet>;

/** The files that the scenario wrote. The app's own may be written again at any start. */
export const hashOf = (folder: string): string => {
  const hash = createHash("sha256");
  const names = readdirSync(folder).filter((name) => name.startsWith("blob-"));
  for (const name of names.sort())
    hash.update(name).update(
      createHash("sha256")
        .update(readFileSync(join(folder, name)))
        .digest(),
    );
  return hash.digest("hex");
};

export interface BackedApp {
  readonly agent: ProcessAgent;
  readonly appId: string;
  /** Writes other data, and returns its hash. */
  write(): string;
  hash(): string;
  answers(): Promise<boolean>;
}

const Deployed = z.object({ deploymentId: z.string() });
const Active = z.object({ appId: z.string() });

/** Installs a key-value store on the agent's device. */
export const installApp = async (calls: Calls, agent: ProcessAgent, port: number): Promise<BackedApp> => {
  const order = { appName: "key-value", deviceId: agent.deviceId, configuration: { port }, secrets: { KV_TOKEN: "open-sesame" } };
  const { deploymentId } = await calls.data(Deployed, "POST", "/deployments", order);
  await calls.settled(`/deployments/${deploymentId}`, ["active", "failed"], INSTALL_MS);
  const { appId } = await calls.data(Active, "GET", `/deployments/${deploymentId}`);
  const folder = join(agent.data, "apps", appId, "volumes", "data");
  return {
    agent,
    appId,
    hash: () => hashOf(folder),
    write: () => {
      mkdirSync(folder, { recursive: true });
      for (let n = 0; n < BLOBS; n += 1) writeFileSync(join(folder, `blob-${n}`), randomBytes(BLOB_BYTES));
      return hashOf(folder);
    },
    answers: () =>
      fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(2_000) }).then(
        ({ ok }) => ok,
        () => false,
      ),
  };
};

export const sheetOf = (calls: Calls, destinationId: string, deviceId: string): Promise<Sheet> =>
  calls.data(Sheet, "GET", `/backup-destinations/${destinationId}/recovery?deviceId=${deviceId}`);

/** Plain restic, by the recovery sheet. */
export const openPlainRestic = ({ repository, password, environment }: Sheet, folder: string) => {
  const env = {
    PATH: process.env["PATH"],
    HOME: folder,
    RESTIC_CACHE_DIR: join(folder, "cache"),
    RESTIC_REPOSITORY: repository,
    RESTIC_PASSWORD: password,
    ...environment,
  };
  const restic = (...words: readonly string[]) => run("restic", words, { env, cwd: folder, maxBuffer: 16_000_000 });
  return {
    unlock: () => restic("unlock"),
    isSound: () =>
      restic("check", "--read-data").then(
        () => true,
        () => false,
      ),
    /** The hash of the data in this snapshot; null: restic cannot restore it. */
    restoredHash: async (snapshotId: string): Promise<string | null> => {
      const target = join(folder, snapshotId.slice(0, 12));
      try {
        await restic("restore", snapshotId, "--target", target, "--verify");
        return hashOf(join(target, "volumes", "data"));
      } catch {
        return null;
      } finally {
        rmSync(target, { recursive: true, force: true });
      }
    },
  };
};
