// `npm run build:agent-kit`: writes the package @mooring/agent-kit to dist/agent-kit, ready for `npm pack`.
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const OUT = join(ROOT, "dist/agent-kit");

const { version, license, dependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  readonly version: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
};
const manifest = {
  name: "@mooring/agent-kit",
  version,
  description: "Judges agents for Mooring, in whatever language they are written",
  license,
  type: "module",
  bin: { "agent-kit": "./agent-kit.mjs" },
  files: ["agent-kit.mjs", "programs"],
  engines: { node: ">=20" },
  dependencies: { ws: `^${dependencies["ws"]}` },
};

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
await build({
  absWorkingDir: ROOT,
  entryPoints: ["protocol/agent-kit/main.ts"],
  outfile: join(OUT, "agent-kit.mjs"),
  bundle: true,
  external: ["ws"],
  platform: "node",
  target: "node20",
  format: "esm",
  legalComments: "none",
  logLevel: "warning",
  banner: { js: "#!/usr/bin/env node" },
});
chmodSync(join(OUT, "agent-kit.mjs"), 0o755);
cpSync(join(ROOT, "protocol/agent-kit/programs"), join(OUT, "programs"), { recursive: true });
writeFileSync(join(OUT, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
for (const [from, to] of [
  ["protocol/agent-kit/README.md", "README.md"],
  ["LICENSE", "LICENSE"],
] as const)
  copyFileSync(join(ROOT, from), join(OUT, to));
