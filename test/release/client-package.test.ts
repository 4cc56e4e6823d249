// @mooring/client as a customer gets it: packed, installed into a project outside of the repository, compiled under the strictest settings and run.
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bootstrapTenant, createSandbox, ROOT, runToEnd, type Sandbox, startGatewayProcess } from "../flows/processes.ts";

const PACKAGES = ["@trpc/client", "@trpc/server"];
const RUNTIME_PACKAGES = ["eventsource", "eventsource-parser"];
const REACT_PACKAGES = ["@trpc/tanstack-react-query", "@tanstack/react-query", "@tanstack/query-core", "@types/react", "csstype"];
const BUNDLER = { module: "esnext", moduleResolution: "bundler" };
const NODENEXT = { module: "nodenext", moduleResolution: "nodenext" };

let sandbox: Sandbox;
let project: string;

const mustRun = async (command: readonly string[], cwd: string): Promise<string> => {
  const { code, stdout, stderr } = await runToEnd(command, { env: sandbox.env, cwd, withinMs: 120_000 });
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}\n${stdout}\n${stderr}`);
  return stdout;
};
/** Portals compile with either. */
const COMPILERS = ["typescript", "typescript-7"] as const;

/** The compiler's output for the project's files under the strictest settings. It checks libraries too: tRPC's need esnext.disposable. */
const compile = async (files: readonly string[], options: Readonly<Record<string, unknown>>): Promise<string> => {
  const compilerOptions = {
    target: "es2022",
    lib: ["es2022", "dom", "dom.iterable", "esnext.disposable"],
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noPropertyAccessFromIndexSignature: true,
    skipLibCheck: false,
    noEmit: true,
    ...options,
  };
  await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
  let said = "";
  for (const compiler of COMPILERS) {
    const { stdout, stderr } = await runToEnd([process.execPath, join(ROOT, "node_modules", compiler, "bin/tsc"), "-p", "."], {
      env: sandbox.env,
      cwd: project,
      withinMs: 120_000,
    });
    said += stdout + stderr;
  }
  return said;
};

const MAIN = `
import { EventSource } from "eventsource";
import { createMooring, type Device, type DeviceId, type ErrorCode, isMooringError, type LiveEvent } from "@mooring/client";
import { connect, restartApp, watch } from "./portal.js";

declare const process: { readonly argv: readonly string[] };
const [, , url = "", token = ""] = process.argv;
Object.assign(globalThis, { EventSource });

const mooring = connect(url, async () => token);
const provisioned = await mooring.devices.provision.mutate({ count: 2, tags: ["site:home"] });
const { items, total } = await mooring.devices.list.query({ tag: ["site:home"] });
const first: Device | undefined = items[0];
const deviceId: DeviceId = first?.deviceId ?? "";

const events: LiveEvent[] = [];
const completed = new Promise<void>((resolve) => {
  const subscription = watch(mooring, async (event) => {
    events.push(event);
    if (event.type === "stream.position") {
      const command = await mooring.commands.queue.mutate({ deviceId, type: "ping" });
      await mooring.commands.cancel.mutate({ commandId: command.commandId });
    }
    if (event.type === "command.canceled") { subscription.unsubscribe(); resolve(); }
  }, () => undefined);
});
await completed;

const code = await createMooring({ url, token: "wrong" }).general.me.query({}).then(
  (): ErrorCode | undefined => undefined,
  (error: unknown): ErrorCode | undefined => (isMooringError(error) ? error.data?.app.code : undefined),
);
console.log(JSON.stringify({
  provisioned: provisioned.items.length, total, code,
  types: events.map(({ type }) => type),
  queued: await restartApp(mooring, deviceId, "app_1"), unknown: await restartApp(mooring, "dev_unknown", "app_1"),
}));
`;

const WRONG = `
import type { Mooring, MooringError } from "@mooring/client";
export const mistakes = (mooring: Mooring, error: MooringError) => [
  // @ts-expect-error an id is a string
  () => mooring.devices.get.query({ deviceId: 1 }),
  // @ts-expect-error a field is missing
  () => mooring.commands.queue.mutate({ deviceId: "dev_1" }),
  // @ts-expect-error an unknown field
  () => mooring.devices.list.query({ statsu: "online" }),
  // @ts-expect-error this query has no fields
  () => mooring.general.me.query({ verbose: true }),
  // @ts-expect-error a status that does not exist
  async () => (await mooring.devices.get.query({ deviceId: "dev_1" })).status === "onlin",
  // @ts-expect-error a code that does not exist
  () => error.data?.app.code === "DEVICE_NOT_FOND",
  // @ts-expect-error a subscription has no query
  () => mooring.live.watch.query({}),
];
`;

const REACT = `
import { createMooring, type AppRouter } from "@mooring/client";
import { QueryClient } from "@tanstack/react-query";
import { createTRPCOptionsProxy } from "@trpc/tanstack-react-query";
import { useDevices, useTRPC } from "./react-query.js";

export const useNames = (): readonly (string | undefined)[] => useDevices().data?.items.map(({ name }) => name) ?? [];
const client = createMooring({ url: "", token: "t" });
const mooring = createTRPCOptionsProxy<AppRouter>({ client, queryClient: new QueryClient() });
export const key = mooring.commands.get.queryKey({ commandId: "cmd_1" });
export const useMistakes = () => [
  // @ts-expect-error an unknown field
  useTRPC().devices.list.queryOptions({ statsu: "online" }),
  // @ts-expect-error a query has no mutation
  mooring.devices.list.mutationOptions(),
];
`;

/** The package's plain types and the contract's inferred ones must be assignable to each other once ids are plain strings. */
const SAME = `
import type { inferRouterError, inferRouterInputs, inferRouterOutputs } from "@trpc/server";
import type { AppRouter as Packed, ErrorCode } from "@mooring/client";
import type { AppRouter as Contract, ErrorCode as ContractCode } from "${ROOT}protocol/index.ts";

type Text<T, R> = string extends R ? string : T;
type Texts<T> = T extends \`\${string}_\${infer R}\` ? Text<T, R> : T extends AsyncIterable<infer I, infer R> ? AsyncIterable<Texts<I>, R> : T extends object ? { [K in keyof T]: Texts<T[K]> } : T;
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : "the contract has more") : "the package has more";
type Operations<A, B> = { [G in keyof A & keyof B]: { [N in keyof A[G] & keyof B[G]]: Same<A[G][N], Texts<B[G][N]>> } };
type Wrong<T> = { [G in keyof T]: { [N in keyof T[G]]: T[G][N] extends true ? never : [G, N, T[G][N]] }[keyof T[G]] }[keyof T];

type Names<T> = { [G in keyof T]: \`\${G & string}.\${keyof T[G] & string}\` }[keyof T];
type Right<T> = [Wrong<T>] extends [never] ? true : Wrong<T>;

export const inputs: Right<Operations<inferRouterInputs<Packed>, inferRouterInputs<Contract>>> = true;
export const outputs: Right<Operations<inferRouterOutputs<Packed>, inferRouterOutputs<Contract>>> = true;
export const names: Same<Names<inferRouterInputs<Packed>>, Names<inferRouterInputs<Contract>>> = true;
export const codes: Same<ErrorCode, ContractCode> = true;
export const errors: Same<inferRouterError<Packed>, inferRouterError<Contract>> = true;
`;

beforeAll(async () => {
  sandbox = await createSandbox();
  project = join(sandbox.dir, "portal");
  await mkdir(project);
  await mustRun(["npm", "run", "--silent", "build:client"], ROOT);
  await mustRun(["npm", "pack", "--silent", "--pack-destination", sandbox.dir, join(ROOT, "dist/client")], sandbox.dir);
  const [tarball = ""] = (await readdir(sandbox.dir)).filter((name) => name.endsWith(".tgz"));
  await writeFile(join(project, "package.json"), JSON.stringify({ name: "portal", private: true, type: "module" }));
  // Copy the peer dependencies from the checkout, so that nothing is downloaded.
  await mustRun(["npm", "install", "--silent", "--offline", "--legacy-peer-deps", "--no-audit", join(sandbox.dir, tarball)], project);
  for (const name of [...PACKAGES, ...RUNTIME_PACKAGES, ...REACT_PACKAGES, "react"])
    await cp(join(ROOT, "node_modules", name), join(project, "node_modules", name), { recursive: true });
  for (const name of ["portal.ts", "react-query.ts"]) await cp(join(ROOT, "docs/examples", name), join(project, name));
  for (const [name, text] of Object.entries({ "main.ts": MAIN, "react.ts": REACT, "wrong.ts": WRONG, "same.ts": SAME }))
    await writeFile(join(project, name), text);
}, 120_000);
afterAll(() => sandbox.remove());

describe("package", () => {
  test("the package contains the client and nothing of the server", async () => {
    const installed = join(project, "node_modules/@mooring/client");
    expect((await readdir(installed)).sort()).toEqual([
      "LICENSE",
      "README.md",
      "contract.d.ts",
      "index.d.ts",
      "index.js",
      "mooring.js",
      "package.json",
      "router.d.ts",
    ]);
    const imported = (await Promise.all(["index.js", "index.d.ts", "contract.d.ts", "router.d.ts"].map((name) => readFile(join(installed, name), "utf8"))))
      .flatMap((text) => [...text.matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map(([, name]) => name))
      .sort();
    expect([...new Set(imported)]).toEqual(["./contract.js", "./router.js", "@trpc/client", "@trpc/server"]);
    const manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8")) as Record<string, unknown>;
    const { version } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as { version: string };
    expect([manifest["name"], manifest["version"], manifest["dependencies"]]).toEqual(["@mooring/client", version, undefined]);
  });

  test.each([
    ["a bundler", BUNDLER],
    ["Node", NODENEXT],
  ])("the package compiles in a strict project for %s, and every planted mistake is an error", { timeout: 120_000 }, async (_, options) => {
    expect(await compile(["main.ts", "portal.ts", "wrong.ts"], options)).toBe("");
  });

  test("the package works with React Query", { timeout: 120_000 }, async () => {
    expect(await compile(["react-query.ts", "react.ts"], { ...BUNDLER, jsx: "react-jsx" })).toBe("");
  });

  test("the package's types equal the contract's", { timeout: 120_000 }, async () => {
    const options = { ...NODENEXT, target: "es2023", lib: ["es2023", "es2024.string", "dom"], skipLibCheck: true, allowImportingTsExtensions: true };
    expect(await compile(["same.ts"], { ...options, types: ["node"], typeRoots: [join(ROOT, "node_modules/@types")] })).toBe("");
  });

  test("its README shows the examples that this test compiles", async () => {
    const readme = await readFile(join(project, "node_modules/@mooring/client/README.md"), "utf8");
    for (const name of ["portal.ts", "react-query.ts"])
      expect(readme).toContain(`\`\`\`ts\n${await readFile(join(ROOT, "docs/examples", name), "utf8")}\`\`\``);
  });
});

test("a portal lists devices, queues a command, watches events and reads errors by their code", { timeout: 120_000 }, async () => {
  const gateway = await startGatewayProcess(sandbox.env);
  const { token, apiKey } = await bootstrapTenant(sandbox);
  expect(await compile(["main.ts", "portal.ts"], { ...NODENEXT, noEmit: false })).toBe("");
  const said = JSON.parse(await mustRun([process.execPath, "main.js", gateway.url, token], project)) as Record<string, unknown>;
  expect(said).toEqual({
    provisioned: 2,
    total: 2,
    code: "UNAUTHORIZED",
    types: expect.arrayContaining(["stream.position", "command.queued", "command.canceled"]),
    queued: "queued",
    unknown: "gone",
  });
  // The program is one file: it runs where none of the portal's packages is.
  const program = join(sandbox.dir, "mooring.js");
  await cp(join(project, "node_modules/@mooring/client/mooring.js"), program);
  expect(await readFile(program, "utf8")).not.toMatch(/\bZodObject\b/);
  expect(await mustRun([program, "--help"], sandbox.dir)).toContain("mooring devices");
  const { code, stdout } = await runToEnd([program, "devices", "--json"], {
    env: { ...sandbox.env, MOORING_URL: gateway.url, MOORING_KEY: apiKey },
    cwd: sandbox.dir,
    withinMs: 30_000,
  });
  expect([code, JSON.parse(stdout).length]).toEqual([0, 2]);
  await gateway.end("SIGTERM");
});
