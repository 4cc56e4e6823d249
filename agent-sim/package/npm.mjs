// `npm run build:agent`: writes the package @mooring/agent to dist/agent-npm, ready for `npm pack`: the agent as a library, with the command `mooring-agent`.
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleFile, FILES } from "./bundle.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const OUT = join(ROOT, "dist/agent-npm");
/** What authors build on: the agent, and the hosts that run apps. */
const ENTRIES = { ".": "agent-sim/agent/index", "./host": "agent-sim/host/open" };

const ts = createRequire(import.meta.url)("typescript");
const { version, license, dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile);
const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
const program = ts.createProgram(
  Object.values(ENTRIES).map((entry) => join(ROOT, `${entry}.ts`)),
  { ...options, outDir: OUT, rootDir: ROOT, declaration: true, noEmit: false },
);
program.emit(undefined, (path, text) => {
  mkdirSync(dirname(path), { recursive: true });
  // The compiler rewrites the endings of imports in code, but not in declarations.
  writeFileSync(path, path.endsWith(".d.ts") ? text.replaceAll(/((?:from|import\()\s*"\.[^"]*)\.ts"/g, '$1.js"') : text);
});
for (const folder of FILES)
  for (const name of readdirSync(join(ROOT, folder), { recursive: true })) if (name.endsWith(".mjs")) cpSync(join(ROOT, folder, name), join(OUT, folder, name));
await bundleFile(ROOT, { entry: "agent-sim/cli/main.ts", outfile: join(OUT, "mooring-agent.mjs"), version });
chmodSync(join(OUT, "mooring-agent.mjs"), 0o755);
cpSync(join(ROOT, "LICENSE"), join(OUT, "LICENSE"));
cpSync(join(ROOT, "agent-sim/package/README.md"), join(OUT, "README.md"));
const manifest = {
  name: "@mooring/agent",
  version,
  description: "The agent of Mooring: a library for authors of agents, and the command mooring-agent",
  license,
  type: "module",
  exports: Object.fromEntries(Object.entries(ENTRIES).map(([name, entry]) => [name, { types: `./${entry}.d.ts`, default: `./${entry}.js` }])),
  bin: { "mooring-agent": "./mooring-agent.mjs" },
  files: ["agent-sim", "protocol", "mooring-agent.mjs"],
  engines: { node: ">=20.19" },
  dependencies: Object.fromEntries(["ws", "yaml", "zod"].map((name) => [name, `^${dependencies[name]}`])),
};
writeFileSync(join(OUT, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
