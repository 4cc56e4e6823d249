// A build of this package that lacks something, for controls whose guarantee no row of the database and no setting can break.
import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder } from "../../kit/setup/workspace.ts";
import { OWN_ROOT } from "./node.ts";

/** Files of dist/ with texts that each has once, and what is to stand there instead. */
export type Breaks = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Copies the build, breaks it, and returns the folder of its package. */
export const breakBuild = async (breaks: Breaks): Promise<string> => {
  const root = makeFolder("broken-build");
  await cp(join(OWN_ROOT, "dist"), join(root, "dist"), { recursive: true });
  for (const name of ["package.json", "CHANGELOG.md", "node_modules", "prisma", "server", "agent-sim"]) await symlink(join(OWN_ROOT, name), join(root, name));
  for (const [file, replaced] of Object.entries(breaks)) {
    const path = join(root, "dist", file);
    let text = await readFile(path, "utf8");
    for (const [before, after] of Object.entries(replaced)) {
      if (text.split(before).length !== 2) throw new Error(`${file} does not have "${before}" once`);
      text = text.replace(before, after);
    }
    await writeFile(path, text);
  }
  return root;
};
