// Builds dist/ when a source is newer than the last build; every command that runs compiled code starts here.
// Plain JavaScript, because it runs before anything is compiled. Writes to standard error only: standard output belongs to the command.
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

// A production install has no compiler: it runs the build from before it was pruned.
const canBuild = existsSync(join(root, "node_modules", "prisma"));
if (!canBuild && !built) {
  process.stderr.write(
    "there is no build, and the build tools are not installed; run npm ci && npm run build first, then remove the tools (npm prune --omit=dev --omit=optional)\n",
  );
  process.exit(1);
}

if (canBuild && (!upToDate || process.argv.includes("--force"))) {
  process.stderr.write("building…\n");
  rmSync(stamp, { force: true });
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: join(root, "package.json") };
  // By path: two versions of TypeScript are installed, and npm links the `tsc` of only one.
  const run = (tool, args) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, "node_modules", tool), ...args], { cwd: root, env, encoding: "utf8" });
    if (status !== 0) {
      process.stderr.write(`${stdout ?? ""}${stderr ?? ""}\n${tool} failed; is everything installed (npm ci)?\n`);
      process.exit(1);
    }
  };
  run("prisma/build/index.js", ["generate", "--config", "prisma/config.ts", "--no-hints"]);
  // `npm run check` checks the types; a build should not wait for that.
  run("typescript-7/bin/tsc", ["-p", "server/tsconfig.build.json", "--noCheck"]);
  writeFileSync(stamp, "");
}
