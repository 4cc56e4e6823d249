// `npm run build:client`: writes the package @mooring/client to dist/client, ready for `npm pack`.
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import ts from "typescript";
import { declareContract } from "./declarations.ts";

const ROOT = new URL("../../", import.meta.url);
const OUT = new URL("dist/client/", ROOT);
const read = (path: string): Promise<string> => readFile(new URL(path, ROOT), "utf8");

const compilerOptions: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  verbatimModuleSyntax: true,
  rewriteRelativeImportExtensions: true,
};

/** Needs one file at a time, because every export states its type. */
const declarationOf = (text: string, fileName: string): string => {
  const { outputText, diagnostics = [] } = ts.transpileDeclaration(text, { fileName, compilerOptions, reportDiagnostics: true });
  if (diagnostics.length > 0) throw new Error(diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n")).join("\n"));
  // The compiler rewrites import extensions in code but not in declarations.
  return outputText.replaceAll(/(from "\.[^"]*)\.ts"/g, '$1.js"');
};

const indented = (text: string): string => ts.createPrinter().printFile(ts.createSourceFile("contract.d.ts", text, ts.ScriptTarget.Latest));

const { version, license } = JSON.parse(await read("package.json")) as { version: string; license: string };
const [index, router, readme, licence] = await Promise.all([
  read("protocol/client/index.ts"),
  read("protocol/client/router.ts"),
  read("protocol/client/README.md"),
  read("LICENSE"),
]);

/** From the version that @trpc/tanstack-react-query requires; the gateway's tests use a later one. */
const TRPC = "^11.22.1";
const manifest = {
  name: "@mooring/client",
  version,
  description: "Typed client for portals of the Mooring gateway, with batching, retries and live streams",
  license,
  type: "module",
  sideEffects: false,
  exports: { ".": { types: "./index.d.ts", default: "./index.js" } },
  bin: { mooring: "./mooring.js" },
  files: ["*.js", "*.d.ts"],
  engines: { node: ">=20" },
  peerDependencies: { "@trpc/client": TRPC, "@trpc/server": TRPC },
};

const files = {
  "package.json": `${JSON.stringify(manifest, null, 2)}\n`,
  "index.js": ts.transpileModule(index, { fileName: "index.ts", compilerOptions }).outputText,
  "index.d.ts": declarationOf(index, "index.ts"),
  "router.d.ts": declarationOf(router, "router.ts"),
  "contract.d.ts": indented(declareContract()),
  "README.md": readme,
  LICENSE: licence,
};
await rm(OUT, { recursive: true, force: true });
await mkdir(OUT, { recursive: true });
await Promise.all(Object.entries(files).map(([name, text]) => writeFile(new URL(name, OUT), text)));
// One file that needs nothing else, so that the command line starts at once and runs without the portal's packages.
await build({
  entryPoints: [fileURLToPath(new URL("protocol/client/cli/main.ts", ROOT))],
  outfile: fileURLToPath(new URL("mooring.js", OUT)),
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  banner: { js: "#!/usr/bin/env node" },
  logLevel: "warning",
});
await chmod(new URL("mooring.js", OUT), 0o755);
