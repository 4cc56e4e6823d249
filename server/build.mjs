// Builds dist/, and the console in dist/portal/, when a source is newer than the last build; every command that runs compiled code starts here.
// Plain JavaScript, because it runs before anything is compiled. Writes to standard error only: standard output belongs to the command.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { bundleAgent } from "../agent-sim/package/bundle.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const isForced = process.argv.includes("--force");

const newest = (path, sources = /\.(ts|prisma|json|mjs)$/) => {
  const stat = statSync(path);
  if (!stat.isDirectory()) return sources.test(path) ? stat.mtimeMs : 0;
  return Math.max(
    0,
    ...readdirSync(path)
      .filter((name) => name !== "generated" && name !== "bench")
      .map((name) => newest(join(path, name), sources)),
  );
};

/** A part of dist/: the file that says when it was built, and one that no build lacks. */
const part = (name, file, newestSource) => {
  const stamp = join(root, "dist", `.built-${name}`);
  const isBuilt = existsSync(stamp) && existsSync(join(root, "dist", file));
  return {
    isBuilt,
    isDue: () => isForced || !isBuilt || statSync(stamp).mtimeMs < newestSource(),
    build: async (run) => {
      process.stderr.write(`building the ${name}…\n`);
      rmSync(stamp, { force: true });
      await run();
      mkdirSync(dirname(stamp), { recursive: true });
      writeFileSync(stamp, "");
    },
  };
};

const at = (name) => join(root, name);
const hasConsole = existsSync(at("portal"));
const gateway = part("gateway", "server/main.js", () =>
  Math.max(...["package.json", "tsconfig.json", "prisma", "server", "protocol", "agent-sim"].map(at).map((path) => newest(path))),
);
const agent = part("agent", "agent/mooring-agent.mjs", () => Math.max(newest(at("package.json")), newest(at("agent-sim"), /./), newest(at("protocol"))));
const portal = part("console", "portal/index.html", () => Math.max(newest(at("package.json")), newest(at("portal"), /./), newest(at("protocol"))));

// A production install has no compiler: it runs the build from before it was pruned.
const canBuild = existsSync(at("node_modules/prisma"));
if (!canBuild && !gateway.isBuilt) {
  process.stderr.write(
    "there is no build, and the build tools are not installed; run npm ci && npm run build first, then remove the tools (npm prune --omit=dev)\n",
  );
  process.exit(1);
}

// Vite would build a slower console for another value.
const env = { ...process.env, NODE_ENV: "production", PRISMA_SCHEMA_ENGINE_BINARY: at("package.json") };
// By path: two versions of TypeScript are installed, and npm links the `tsc` of only one.
const run = (tool, args) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [at(join("node_modules", tool)), ...args], { cwd: root, env, encoding: "utf8" });
  if (status !== 0) {
    process.stderr.write(`${stdout ?? ""}${stderr ?? ""}\n${tool} failed; is everything installed (npm ci)?\n`);
    process.exit(1);
  }
};

const WORTH_COMPRESSING = 1_024;
/** Once and as small as it gets (brotli's default): the gateway answers with these bytes as they are. */
const compress = (folder) => {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const bytes = entry.isFile() && /\.(html|js|css|svg|json|webmanifest|txt)$/.test(path) ? readFileSync(path) : null;
    if (bytes === null || bytes.length < WORTH_COMPRESSING) continue;
    writeFileSync(`${path}.br`, brotliCompressSync(bytes));
    writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
  }
};

if (canBuild && gateway.isDue())
  await gateway.build(() => {
    run("prisma/build/index.js", ["generate", "--config", "prisma/config.ts", "--no-hints"]);
    // `npm run check` checks the types; a build should not wait for that.
    run("typescript-7/bin/tsc", ["-p", "server/tsconfig.build.json", "--noCheck"]);
  });

if (canBuild && agent.isDue()) await agent.build(() => bundleAgent(root, at("dist/agent")));

if (canBuild && hasConsole && portal.isDue())
  await portal.build(() => {
    run("vite/bin/vite.js", ["build", "--config", "portal/vite.config.ts", "--logLevel", "warn"]);
    compress(at("dist/portal"));
  });
