// Makes what a gateway offers to devices without further packages: the agent as one file with its libraries and programs, its unit, and the script
// that installs them. Plain JavaScript, because the build runs it.
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { sumFiles } from "./sums.mjs";

/** The agent starts these as programs, so it unpacks them. */
export const FILES = ["agent-sim/programs", "agent-sim/host/processes"];

const ownFiles = (root) =>
  Object.fromEntries(
    FILES.flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true })
        .map((name) => `${folder}/${name}`)
        .filter((path) => path.endsWith(".mjs")),
    )
      .sort()
      .map((path) => [path, readFileSync(join(root, path), "utf8")]),
  );

/** Leaves out what the agent never calls: operations of portals, and messages of zod in other languages. */
const leaner = (root) => ({
  name: "leaner",
  setup: (build) => {
    build.onResolve({ filter: /^\..*\.ts$/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path),
      sideEffects: !resolveDir.startsWith(join(root, "protocol")) && !path.includes("/protocol/"),
    }));
    build.onResolve({ filter: /\/locales\/index\.js$/ }, ({ path, resolveDir }) => ({ path: join(resolveDir, path), namespace: "english" }));
    build.onLoad({ filter: /./, namespace: "english" }, ({ path }) => ({ contents: 'export { default as en } from "./en.js";', resolveDir: dirname(path) }));
  },
});

/** One file with the agent's libraries and programs. */
export const bundleFile = async (root, { entry, outfile, version }) => {
  // A production install has no build tools, and never gets here.
  const { build } = createRequire(import.meta.url)("esbuild");
  await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile,
    bundle: true,
    minify: true,
    plugins: [leaner(root)],
    platform: "node",
    target: "node20.11",
    format: "esm",
    legalComments: "none",
    logLevel: "warning",
    define: { MOORING_AGENT: JSON.stringify({ version, files: ownFiles(root) }) },
    // `ws` and `yaml` are CommonJS.
    banner: {
      js: '#!/usr/bin/env node\nimport { createRequire as createAgentRequire } from "node:module"; const require = createAgentRequire(import.meta.url);',
    },
  });
};

export const bundleAgent = async (root, folder) => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  mkdirSync(folder, { recursive: true });
  await bundleFile(root, { entry: "agent-sim/cli/main.ts", outfile: join(folder, "mooring-agent.mjs"), version });
  for (const name of ["install.sh", "mooring-agent.service"]) copyFileSync(join(root, "agent-sim/package", name), join(folder, name));
  sumFiles(folder, version);
};
