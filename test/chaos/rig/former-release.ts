// The build of the release before this one, made from the commit that CHANGELOG.md names: what runs beside this build while nodes are upgraded one by one.
import { execFile } from "node:child_process";
import { readFile, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { makeFolder } from "../../kit/setup/workspace.ts";
import { OWN_ROOT } from "./node.ts";

const run = promisify(execFile);
const BUILD_MS = 300_000;
const RELEASE = /^## \[(?<version>\d\S*)\].*\n+Commit: (?<commit>[0-9a-f]{40})$/m;

export interface FormerRelease {
  readonly version: string;
  readonly commit: string;
  /** The folder of its package. */
  readonly root: string;
}

/** The newest release whose commit is known: while a release is made, it does not know its own. */
export const formerReleaseIn = (changelog: string): Omit<FormerRelease, "root"> => {
  const { version, commit } = RELEASE.exec(changelog)?.groups ?? {};
  if (version === undefined || commit === undefined) throw new Error("CHANGELOG.md names the commit of no release; write a line such as: Commit: <40 digits>");
  return { version, commit };
};

/** What npm installs, whatever the package's own version is. */
const locked = async (root: string): Promise<string> => {
  const { packages } = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8"));
  delete packages[""].version;
  return JSON.stringify(packages);
};

const make = async (): Promise<FormerRelease> => {
  const { version, commit } = formerReleaseIn(await readFile(join(OWN_ROOT, "CHANGELOG.md"), "utf8"));
  const root = makeFolder("former-release");
  await run("git", ["clone", "--quiet", "--shared", "--no-checkout", OWN_ROOT, root]);
  await run("git", ["checkout", "--quiet", commit], { cwd: root }).catch((error: unknown) => {
    throw new Error(`commit ${commit} of release ${version} is not in this clone; fetch the whole history with: git fetch --unshallow`, { cause: error });
  });
  if ((await locked(root)) === (await locked(OWN_ROOT))) await symlink(join(OWN_ROOT, "node_modules"), join(root, "node_modules"));
  else await run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: root, timeout: BUILD_MS });
  // Without it the build leaves the console out, which no scenario opens.
  await rm(join(root, "portal"), { recursive: true });
  await run(process.execPath, ["server/build.mjs"], { cwd: root, timeout: BUILD_MS });
  return { version, commit, root };
};

let made: Promise<FormerRelease> | null = null;
export const formerRelease = (): Promise<FormerRelease> => {
  made ??= make();
  return made;
};
