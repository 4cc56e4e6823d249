// The versions of the agent in its own folder: which one runs, which one is on trial, and which one has failed.
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { AgentVersion } from "../../protocol/records/devices/agent-release.ts";
import { readText, replaceFile, syncFolder, systemDisk } from "../host/processes/disk.ts";
import { MAIN } from "./release.ts";

const Named = z.object({ version: AgentVersion, sha256: z.string() });
const State = z.object({
  /** Null: the version that was installed by hand. */
  current: AgentVersion.nullable(),
  /** It becomes the current one once it has reached the gateway. */
  trial: Named.nullable(),
  failed: Named.extend({ message: z.string(), told: z.boolean() }).nullable(),
});
export type UpdateState = z.output<typeof State>;
const NONE: UpdateState = { current: null, trial: null, failed: null };

export interface AgentVersions {
  read(): UpdateState;
  write(differences: Partial<UpdateState>): void;
  mainOf(version: string): string;
  install(version: string, files: Readonly<Record<string, string>>): void;
}

export const openVersions = (folder: string): AgentVersions => {
  const at = (...names: readonly string[]): string => join(folder, ...names);
  mkdirSync(at("versions"), { recursive: true, mode: 0o700 });
  const read = (): UpdateState => {
    try {
      return State.parse(JSON.parse(readText(at("update.json")) ?? JSON.stringify(NONE)));
    } catch {
      // Without a readable state, the version that was installed by hand runs.
      return NONE;
    }
  };
  return {
    read,
    write: (differences) => replaceFile(systemDisk, at("update.json"), JSON.stringify({ ...read(), ...differences })),
    mainOf: (version) => at("versions", version, MAIN),
    install: (version, files) => {
      const { current } = read();
      for (const name of readdirSync(at("versions"))) if (name !== current) rmSync(at("versions", name), { recursive: true });
      const next = at("versions", `${version}.next`);
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(next, path)), { recursive: true, mode: 0o700 });
        writeFileSync(join(next, path), text, { mode: 0o600, flag: "wx", flush: true });
      }
      renameSync(next, at("versions", version));
      syncFolder(at("versions"));
    },
  };
};
