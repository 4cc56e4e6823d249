// Builds dist/ when a source is newer than the last build; everything that runs compiled code comes through here.
// Plain JavaScript, because it runs before there is anything compiled. Speaks on standard error only: standard output belongs to the command.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stamp = join(root, "dist", ".built");

const newest = (path) => {
  const stat = statSync(path);
  if (!stat.isDirectory()) return /\.(ts|prisma|json|mjs)$/.test(path) ? stat.mtimeMs : 0;
  return Math.max(
    0,
    ...readdirSync(path)
      .filter((name) => name !== "generated" && name !== "bench")
      .map((name) => newest(join(path, name))),
  );
};

const sources = ["package.json", "tsconfig.json", "prisma", "server", "protocol", "agent-sim"].map((name) => join(root, name));
const built = existsSync(stamp);
const upToDate = built && statSync(stamp).mtimeMs >= Math.max(...sources.map(newest));

// A production install has no compiler: it runs what was built before it was pruned.
const canBuild = existsSync(join(root, "node_modules", "prisma"));
if (!canBuild && !built) {
  process.stderr.write(
    "there is no build here and nothing to build with; build first (npm ci && npm run build), then drop what building needs (npm prune --omit=dev --omit=optional)\n",
  );
  process.exit(1);
}

if (canBuild && (!upToDate || process.argv.includes("--force"))) {
  process.stderr.write("building…\n");
  rmSync(stamp, { force: true });
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: join(root, "package.json") };
  // By path: two versions of TypeScript are installed, and npm links the `tsc` of either.
  const run = (tool, args) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, "node_modules", tool), ...args], { cwd: root, env, encoding: "utf8" });
    if (status !== 0) {
      process.stderr.write(`${stdout ?? ""}${stderr ?? ""}\n${tool} failed; is everything installed (npm ci)?\n`);
      process.exit(1);
    }
  };
  run("prisma/build/index.js", ["generate", "--config", "prisma/config.ts", "--no-hints"]);
  // Types are the business of `npm run check`; who only wants to run it should not wait for them.
  run("typescript-7/bin/tsc", ["-p", "server/tsconfig.build.json", "--noCheck"]);
  writeFileSync(stamp, "");
}
