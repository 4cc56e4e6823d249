// `npm run check:openapi`: common tools check the OpenAPI documents, and the clients that they generate work against a running gateway.
// Each run fetches the tools at exactly these versions, so a checkout stays small.
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createSandbox, node, ROOT, runToEnd, startGatewayProcess } from "../flows/processes.ts";
import type { ClientCredentials } from "./credentials.ts";

const TOOLS = {
  redocly: { packages: ["@redocly/cli@2.77.0"], command: "redocly" },
  spectral: { packages: ["@stoplight/spectral-cli@6.16.3"], command: "spectral" },
  openapiTypescript: { packages: ["openapi-typescript@7.13.0", "typescript@5.9.3"], command: "openapi-typescript" },
  // The newest version that runs on Node 20.
  heyApi: { packages: ["@hey-api/openapi-ts@0.95.0", "typescript@5.9.3"], command: "openapi-ts" },
} as const;
const OPENAPI_FETCH = "openapi-fetch@0.17.0";

const HERE = join(ROOT, "test/openapi-clients");
const WORK = join(ROOT, "dist/openapi-clients");
const PREFIXES = { "v1.json": "/v1", "api-v1.json": "/api/v1" } as const;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

type OutputCheck = (output: string) => boolean;

const step = async (what: string, command: readonly string[], isGood: OutputCheck = () => true): Promise<void> => {
  const { code, stdout, stderr } = await runToEnd(command, { env: { CI: "1" }, cwd: WORK, withinMs: 300_000 });
  if (code !== 0 || !isGood(stdout)) throw new Error(`${what}: failed\n${stdout}\n${stderr}`);
  say(`${what}: passed`);
};
const tool = (what: string, { packages, command }: (typeof TOOLS)[keyof typeof TOOLS], args: readonly string[], isGood?: OutputCheck): Promise<void> =>
  step(what, ["npx", "--yes", ...packages.flatMap((name) => ["-p", name]), "--", command, ...args], isGood);
/** Redocly's exit code ignores warnings. */
const withoutWarnings: OutputCheck = (output) => {
  const { totals } = JSON.parse(output) as { totals: { errors: number; warnings: number } };
  return totals.errors + totals.warnings === 0;
};

const TSCONFIG = {
  compilerOptions: {
    target: "es2023",
    module: "esnext",
    moduleResolution: "bundler",
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    types: ["node"],
  },
  include: ["flows/*.ts"],
};

const check = async (baseUrl: string, credentials: Omit<ClientCredentials, "baseUrl">): Promise<void> => {
  for (const [file, prefix] of Object.entries(PREFIXES)) {
    const answer = await fetch(`${baseUrl}${prefix}/openapi.json`);
    await writeFile(join(WORK, file), JSON.stringify(await answer.json(), null, 2));
  }
  const files = Object.keys(PREFIXES);
  for (const file of files) await tool(`Redocly's recommended rules on ${file}`, TOOLS.redocly, ["lint", "--format", "json", file], withoutWarnings);
  await tool("Spectral's rules", TOOLS.spectral, ["lint", "--ruleset", join(HERE, "spectral.yaml"), "--fail-severity", "hint", ...files]);
  await tool("openapi-typescript", TOOLS.openapiTypescript, ["v1.json", "--output", "flows/generated/paths.ts"]);
  await tool("@hey-api/openapi-ts", TOOLS.heyApi, ["--input", "v1.json", "--output", "flows/generated/hey-api"]);
  await step("openapi-fetch", ["npm", "install", "--no-audit", "--no-fund", "--no-save", OPENAPI_FETCH]);
  await step("both clients compile", [process.execPath, join(ROOT, "node_modules/typescript/bin/tsc"), "-p", "."]);
  for (const name of ["openapi-fetch", "hey-api"]) {
    const flow = (await import(pathToFileURL(join(WORK, "flows", `${name}.ts`)).href)) as { pairToTimeline(given: ClientCredentials): Promise<void> };
    await flow.pairToTimeline({ ...credentials, baseUrl: `${baseUrl}/v1` });
    say(`${name}, from pairing to timeline: passed`);
  }
};

await rm(WORK, { recursive: true, force: true });
await mkdir(WORK, { recursive: true });
await cp(join(HERE, "flows"), join(WORK, "flows"), { recursive: true });
for (const name of ["credentials.ts", "redocly.yaml", ".redocly.lint-ignore.yaml"]) await cp(join(HERE, name), join(WORK, name));
await writeFile(join(WORK, "package.json"), JSON.stringify({ type: "module", private: true }));
await writeFile(join(WORK, "tsconfig.json"), JSON.stringify(TSCONFIG));
const sandbox = await createSandbox();
try {
  const gateway = await startGatewayProcess(sandbox.env);
  const { code, stdout, stderr } = await node("server/cli.js", ["bootstrap", "--json"], { env: sandbox.env });
  if (code !== 0) throw new Error(stderr);
  await check(gateway.url, JSON.parse(stdout) as ClientCredentials);
  await gateway.end("SIGTERM");
} finally {
  await sandbox.remove();
}
