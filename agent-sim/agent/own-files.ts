// The agent's version, and the files that it starts as programs: beside its sources, or built into the one file that runs on devices.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The build of the one file puts this in (server/build.mjs). The files are named as in the repository. */
declare const MOORING_AGENT: { readonly version: string; readonly files: Readonly<Record<string, string>> } | undefined;
const built = typeof MOORING_AGENT === "undefined" ? null : MOORING_AGENT;

/** The nearest folder above `from` that has a package.json. */
export const packageRoot = (from: string): string => {
  for (let folder = from; folder !== dirname(folder); folder = dirname(folder)) if (existsSync(join(folder, "package.json"))) return folder;
  throw new Error(`no package.json above ${from}`);
};

const versionOf = (root: string): string => (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }).version;
export const AGENT_VERSION = built?.version ?? versionOf(packageRoot(import.meta.dirname));

/** The folder that has the agent's own programs, named as in the repository. The one file unpacks them below `folder`, where apps find them after it has ended. */
export const openOwnFiles = (folder: string): string => {
  if (built === null) return packageRoot(import.meta.dirname);
  const root = join(folder, "programs");
  for (const [name, text] of Object.entries(built.files)) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    // An app may read the former one at this moment.
    writeFileSync(`${path}.next`, text, { mode: 0o600 });
    renameSync(`${path}.next`, path);
  }
  return root;
};
