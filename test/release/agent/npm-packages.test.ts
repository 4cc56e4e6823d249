// @mooring/agent and @mooring/agent-kit as authors of agents get them: packed, unpacked into a project outside of the repository, and used there.
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { bootstrapTenant, createSandbox, ROOT, runToEnd, type Sandbox, startGatewayProcess } from "../../flows/processes.ts";
import { onSharedServer } from "../../flows/shared-server.ts";
import { eventually } from "../../kit/checks/eventually.ts";

let sandbox: Sandbox;
let project: string;
const Manifest = z.object({ dependencies: z.record(z.string(), z.string()), bin: z.record(z.string(), z.string()) });

const run = async (command: readonly string[], cwd = project) => runToEnd(command, { env: sandbox.env, cwd, withinMs: 120_000 });
const mustRun = async (command: readonly string[], cwd = project): Promise<string> => {
  const { code, stdout, stderr } = await run(command, cwd);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}\n${stdout}\n${stderr}`);
  return stdout;
};
/** Packs what the script has built, and unpacks it as npm would, with nothing beside it but what its manifest names. */
const install = async (script: string, folder: string, name: string): Promise<z.infer<typeof Manifest>> => {
  await mustRun(["npm", "run", "--silent", script], ROOT);
  await mustRun(["npm", "pack", "--silent", "--pack-destination", project], join(ROOT, folder));
  const [tarball = ""] = (await readdir(project)).filter((file) => file.endsWith(".tgz"));
  const target = join(project, "node_modules", name);
  await mkdir(target, { recursive: true });
  await mustRun(["tar", "-xzf", tarball, "-C", target, "--strip-components=1"]);
  await mustRun(["rm", tarball]);
  const manifest = Manifest.parse(JSON.parse(await readFile(join(target, "package.json"), "utf8")));
  for (const dependency of Object.keys(manifest.dependencies))
    await cp(join(ROOT, "node_modules", dependency), join(project, "node_modules", dependency), { recursive: true });
  return manifest;
};

const MAIN = `
import { createAgent, createHttp, createMemoryJournal, type CommandHandlers, pairDevice, systemTime as time } from "@mooring/agent";
import { HOST_KINDS } from "@mooring/agent/host";

const [, , url = "", enrollmentToken = ""] = process.argv;
const device = await pairDevice({ url, enrollmentToken, fingerprint: "sha256:of-this-project" });
const handlers: CommandHandlers = { "water-plants": { long: false, cancelable: false, run: async () => ({ liters: 2 }) } };
const http = createHttp(url, 2);
const settled = new Promise<string>((resolve) => {
  const journal = createMemoryJournal(time.wallMs);
  const on = { ready: () => process.stdout.write(device.deviceId + "\\n"), settled: ({ result }: { result: string }) => resolve(result) };
  const agent = createAgent({ url, http, time, random: Math.random, deviceId: device.deviceId, identity: device, journal, handlers, firstWindowMs: 0, on });
  agent.start();
});
process.stdout.write((await settled) + " " + HOST_KINDS.join() + "\\n");
process.exit(0);
`;

beforeAll(async () => {
  sandbox = await createSandbox(await onSharedServer({}));
  project = join(sandbox.dir, "project");
  await mkdir(project, { recursive: true });
  await writeFile(join(project, "package.json"), '{"type":"module"}');
}, 60_000);
afterAll(() => sandbox?.remove());

test("an agent with a command of its own is written with @mooring/agent, compiles under strict settings, and runs", { timeout: 180_000 }, async () => {
  const { dependencies } = await install("build:agent", "dist/agent-npm", "@mooring/agent");
  expect(Object.keys(dependencies).sort()).toEqual(["ws", "yaml", "zod"]);
  for (const types of ["@types/node", "undici-types"]) await cp(join(ROOT, "node_modules", types), join(project, "node_modules", types), { recursive: true });
  await writeFile(join(project, "main.ts"), MAIN);
  const compilerOptions = { target: "es2023", module: "nodenext", moduleResolution: "nodenext", strict: true, types: ["node"], skipLibCheck: true };
  await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["main.ts"] }));
  expect(await mustRun([process.execPath, join(ROOT, "node_modules/typescript-7/bin/tsc"), "-p", "."])).toBe("");

  const who = await bootstrapTenant(sandbox);
  const gateway = await startGatewayProcess(sandbox.env);
  const headers = { "x-api-key": who.apiKey, "x-svc-tenant-id": who.tenantId, "content-type": "application/json" };
  const Devices = z.object({ data: z.tuple([z.object({ deviceId: z.string() })]) });
  const createCommand = async (): Promise<string> => {
    // Not asked more often than the limit of the key allows.
    const patience = { boundMs: 60_000, stepMs: 500 };
    const { data } = await eventually(async () => Devices.parse(await (await fetch(`${gateway.url}/v1/devices`, { headers })).json()), patience);
    const body = JSON.stringify({ type: "water-plants" });
    expect((await fetch(`${gateway.url}/v1/devices/${data[0].deviceId}/commands`, { method: "POST", headers, body })).status).toBe(201);
    return data[0].deviceId;
  };
  const [printed, deviceId] = await Promise.all([mustRun([process.execPath, "main.js", gateway.url, who.enrollmentToken]), createCommand()]);
  expect(printed).toBe(`${deviceId}\napplied simulated,process,compose\n`);
  expect(await mustRun([process.execPath, "node_modules/@mooring/agent/mooring-agent.mjs", "--version"])).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test("the kit judges an agent from an empty folder with nothing but ws, and says how it could not run", { timeout: 180_000 }, async () => {
  const { dependencies, bin } = await install("build:agent-kit", "dist/agent-kit", "@mooring/agent-kit");
  expect([Object.keys(dependencies), bin]).toEqual([["ws"], { "agent-kit": "./agent-kit.mjs" }]);
  const kit = [process.execPath, "node_modules/@mooring/agent-kit/agent-kit.mjs"];
  expect(await mustRun([...kit, "--list"])).toMatch(/^core: [\s\S]*WAIT-2 [\s\S]*carrier: /);
  // Paths of the command are those of the folder in which somebody runs the kit.
  await cp(join(ROOT, "protocol/examples/python/agent.py"), join(project, "agents/agent.py"));
  const python = ["/usr/bin/python3", "agents/agent.py"];
  const judged = await mustRun([...kit, "--only", "RUN-1,SIGN-2", "--out", "good", "--", ...python]);
  expect(judged).toContain("2 passed, 0 failed, 0 not observable");

  const idle = await run([...kit, "--only", "PAIR-1", "--out", "bad", "--", "sleep", "60"]);
  expect([idle.code, idle.stdout]).toEqual([
    1,
    expect.stringMatching(
      /FAIL PAIR-1[\s\S]*due \(R1\.6\): [\s\S]*seen: nothing[\s\S]*trace: bad\/traces\/PAIR-1\.ndjson[\s\S]*--only PAIR-1 --trace -- sleep 60/,
    ),
  ]);
  const Report = z.object({ failed: z.literal(1), results: z.array(z.object({ id: z.literal("PAIR-1"), verdict: z.literal("fail") })).length(1) });
  expect(Report.safeParse(JSON.parse(await readFile(join(project, "bad/report.json"), "utf8"))).error).toBeUndefined();
  expect(await readFile(join(project, "bad/junit.xml"), "utf8")).toContain('tests="1" failures="1"');

  await writeFile(join(project, "known"), "PAIR-1 # not yet\nRUN-1\n");
  const known = await run([...kit, "--only", "PAIR-1", "--known", "known", "--out", "bad", "--", "sleep", "60"]);
  expect([known.code, known.stdout]).toEqual([0, expect.stringContaining("known")]);
  const fixed = await run([...kit, "--only", "RUN-1", "--known", "known", "--out", "good", "--", ...python]);
  expect([fixed.code, fixed.stdout]).toEqual([1, expect.stringContaining("RUN-1 passes, although it is listed as known")]);
  for (const [words, sentence] of [
    [["--suite", "dance", "--", "sleep"], "there is no suite dance"],
    [["--only", "DANCE-1", "--", "sleep"], "there is no case DANCE-1"],
    [["--at-once", "0", "--", "sleep"], "--at-once"],
    [["--unknown"], "--unknown"],
    [[], "name the agent's command after --"],
    [["--known", "/missing", "--", "sleep"], "--known /missing"],
  ] as const) {
    const { code, stderr } = await run([...kit, ...words]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(sentence)]);
  }
});
