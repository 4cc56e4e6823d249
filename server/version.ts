// The release that runs here, read once at start from package.json and the checkout.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

// package.json lies one folder above the sources and two above the build.
const here = dirname(fileURLToPath(import.meta.url));
const root = [join(here, ".."), join(here, "..", "..")].find((folder) => existsSync(join(folder, "package.json"))) ?? here;

/** The name of the service in health answers and logs. */
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
