// Which release this is: read off the package once, at start.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

// The sources lie one folder below the package, the build two.
const here = dirname(fileURLToPath(import.meta.url));
const root = [join(here, ".."), join(here, "..", "..")].find((folder) => existsSync(join(folder, "package.json"))) ?? here;

/** How the service names itself to others. */
export const SERVICE = "mooring";

export const packageFile = (name: string): string => join(root, name);
export const version: string = (JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as { version: string }).version;

const read = (path: string): string | null => (existsSync(path) ? readFileSync(path, "utf8").trim() : null);

/** The commit of a checkout; `unknown` for an installation without one. */
export const commit = ((): string => {
  const head = read(packageFile(".git/HEAD"));
  const ref = /^ref: (.+)$/.exec(head ?? "")?.[1];
  return (ref === undefined ? head : read(packageFile(`.git/${ref}`))) ?? "unknown";
})();
