// Finds the package's folder, from the sources and from the compiled files alike.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** The nearest folder above `from` that has a package.json. */
export const packageRoot = (from: string): string => {
  for (let folder = from; folder !== dirname(folder); folder = dirname(folder)) if (existsSync(join(folder, "package.json"))) return folder;
  throw new Error(`no package.json above ${from}`);
};
