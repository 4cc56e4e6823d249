// An agent in Python, written from protocol/README.md alone, beside a real gateway: it pairs, and after kill -9 it still runs each command once.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type FakeGateway, type ForeignAnswer, OWN_HEADERS, SECRET, startFakeGateway } from "../../agent-sim/fake-gateway.ts";
import {
  type BootstrapCredentials,
  bootstrapTenant,
  createSandbox,
  type GatewayProcess,
  ROOT,
  runToEnd,
  type Sandbox,
  startGatewayProcess,
} from "../../flows/processes.ts";
import { onSharedServer } from "../../flows/shared-server.ts";
import { eventually } from "../../kit/checks/eventually.ts";

// Debian's packages belong to Debian's own Python.
const PYTHON = "/usr/bin/python3";
const SCRIPT = join(ROOT, "protocol/examples/python/agent.py");
/** The program with the shortest of its random waits, which reach a minute. */
const HASTY =
  "import random, runpy, sys; random.uniform = lambda least, most: min(most, least + 0.05); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')";
const WITHIN_MS = 15_000;
const Command = z.object({ commandId: z.string(), status: z.string(), failureCode: z.string().nullable(), ack: z.object({ output: z.unknown() }).nullable() });
const Timeline = z.object({ events: z.array(z.object({ to: z.string(), from: z.string().nullable() })) });

let sandbox: Sandbox;
let gateway: GatewayProcess;
let who: BootstrapCredentials;
let state: string;
let deviceId: string;
let agent: ChildProcess;
let said = "";

const Answer = z.object({ data: z.unknown() });

const api = async <S extends z.ZodType>(schema: S, path: string, body?: object): Promise<z.infer<S>> => {
  const headers = { "x-api-key": who.apiKey, "x-svc-tenant-id": who.tenantId, "content-type": "application/json" };
  const response = await fetch(`${gateway.url}/v1${path}`, body === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(body) });
  return schema.parse(Answer.parse(await response.json()).data);
};
const queue = (type: string, payload: object): Promise<z.infer<typeof Command>> => api(Command, `/devices/${deviceId}/commands`, { type, payload });
const look = (commandId: string): Promise<z.infer<typeof Command>> => api(Command, `/commands/${commandId}`);
const ended = async (commandId: string): Promise<readonly string[]> =>
  (await api(Timeline, `/commands/${commandId}/timeline`)).events.map(({ to }) => to).filter((to) => ["succeeded", "failed", "rejected"].includes(to));
const effects = (): string => join(state, "effects");
/** The keys of the effects that have begun, oldest first. */
const begun = (): readonly string[] =>
  existsSync(effects()) ? [...readFileSync(effects(), "utf8").matchAll(/^begin (.*)$/gm)].map(([, key = ""]) => key) : [];
const becomes = (commandId: string, status: string): Promise<void> => eventually(async () => expect((await look(commandId)).status).toBe(status), WITHIN_MS);

const environment = (url: string, folder: string): Readonly<Record<string, string>> => ({
  PATH: process.env["PATH"] ?? "",
  MOORING_URL: url,
  MOORING_STATE: folder,
  MOORING_EFFECTS: join(folder, "effects"),
  MOORING_ENROLLMENT_TOKEN: who.enrollmentToken,
});
const start = async (until = "ready"): Promise<void> => {
  agent = spawn(PYTHON, [SCRIPT], { stdio: ["ignore", "pipe", "pipe"], env: environment(gateway.url, state) });
  const from = said.length;
  for (const stream of [agent.stdout, agent.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  await eventually(() => expect(said.slice(from)).toContain(until), WITHIN_MS);
};
const kill = async (): Promise<void> => {
  agent.kill("SIGKILL");
  await once(agent, "exit");
};

beforeAll(async () => {
  sandbox = await createSandbox(await onSharedServer({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off", RATE_LIMIT_CONNECT: "off" }));
  who = await bootstrapTenant(sandbox);
  gateway = await startGatewayProcess(sandbox.env);
  state = join(sandbox.dir, "device");
  await start("paired");
  await kill();
  const path = join(state, "identity.json");
  const identity = z.looseObject({ device_id: z.string(), connect: z.object({}).loose().optional() }).parse(JSON.parse(readFileSync(path, "utf8")));
  deviceId = identity.device_id;
  // A fleet spreads its first connects; a single agent need not wait.
  writeFileSync(path, JSON.stringify({ ...identity, connect: { ...identity.connect, coldStartMs: 0 } }));
  await start();
}, 90_000);
afterAll(async () => {
  agent?.kill("SIGKILL");
  await sandbox?.remove();
});

test("the Python agent has at most 330 lines and needs one package beside the standard library", () => {
  const text = readFileSync(SCRIPT, "utf8");
  expect(text.split("\n").length - 1).toBeLessThanOrEqual(330);
  expect([...text.matchAll(/^from (\w+)/gm)].map(([, name]) => name)).toEqual(["websockets", "websockets"]);
});
test("the agent runs a command and its result arrives", async () => {
  const { commandId } = await queue("echo", { text: "naïve ✓" });
  await becomes(commandId, "succeeded");
  expect((await look(commandId)).ack?.output).toEqual({ text: "naïve ✓" });
});
test("the agent rejects an unknown type and reports the text of an error", async () => {
  const unknown = await queue("x.dance", {});
  await becomes(unknown.commandId, "rejected");
  const broken = await queue("test.effect", { key: "broken", fail: true });
  await becomes(broken.commandId, "failed");
  expect((await look(broken.commandId)).ack?.output).toEqual({ message: "RuntimeError('it fails as ordered')" });
});
test("the agent sends heartbeats", async () => {
  const Device = z.object({ status: z.string(), lastHeartbeatAt: z.string().optional() });
  await eventually(async () => expect((await api(Device, `/devices/${deviceId}`)).lastHeartbeatAt).toBeDefined(), WITHIN_MS);
});

describe("kill -9", () => {
  test("an agent that is killed during a command does not run it again and reports once that it failed", async () => {
    const { commandId } = await queue("test.effect", { key: "killed", ms: 600_000 });
    await eventually(() => expect(begun()).toContain("killed"), WITHIN_MS);
    await kill();
    await start();
    await becomes(commandId, "failed");
    expect([(await look(commandId)).failureCode, begun().filter((line) => line === "killed"), await ended(commandId)]).toEqual([
      "AGENT_RESTARTED",
      ["killed"],
      ["failed"],
    ]);
    await eventually(() => expect(said).toMatch(new RegExp(`confirmed ${commandId}`)));
  });
  test("commands run once each although the agent is killed after each of them", async () => {
    for (const text of ["one", "two", "three"]) {
      const { commandId } = await queue("test.effect", { key: text });
      await becomes(commandId, "succeeded");
      await kill();
      await start();
      expect(await ended(commandId)).toEqual(["succeeded"]);
    }
    expect(begun().filter((key) => !["broken", "killed"].includes(key))).toEqual(["one", "two", "three"]);
  });
  test("a journalled result that was never sent arrives after the next start, without running the command again", async () => {
    const { commandId } = await queue("test.effect", { key: "journalled", ms: 600_000 });
    await eventually(() => expect(begun()).toContain("journalled"), WITHIN_MS);
    await kill();
    appendFileSync(
      join(state, "journal"),
      `${JSON.stringify({ id: commandId, is: { result: { status: "succeeded", output: { kept: true } } } })}\n{"id":"torn`,
    );
    await start();
    await becomes(commandId, "succeeded");
    expect([(await look(commandId)).ack?.output, begun().filter((line) => line === "journalled")]).toEqual([{ kept: true }, ["journalled"]]);
  });
});

test("the agent reconnects after the gateway restarts", async () => {
  await gateway.end("SIGKILL");
  gateway = await startGatewayProcess(sandbox.env);
  const { commandId } = await queue("ping", {});
  await becomes(commandId, "succeeded");
});
test("a second agent process on the same state ends with one sentence", async () => {
  const { code, stderr } = await runToEnd([PYTHON, SCRIPT], { env: environment(gateway.url, state) });
  expect([code, stderr]).toEqual([1, `another agent already uses ${state}; stop it first\n`]);
});

describe("something else than the gateway answers", () => {
  const HTML = { "content-type": "text/html" };
  const PROXY: readonly ForeignAnswer[] = [
    { status: 404, headers: HTML, text: "<html>default backend</html>" },
    { status: 400, headers: { ...HTML, "retry-after": "3600" }, text: "<html>Bad Request</html>" },
    { status: 200, headers: HTML, text: "<html>Welcome</html>" },
    { status: 302, headers: { location: "/elsewhere" }, text: "" },
    { status: 201, headers: OWN_HEADERS, text: "" },
  ];
  let fake: FakeGateway;
  let ran: ChildProcess | null = null;
  beforeAll(async () => {
    fake = await startFakeGateway();
  });
  afterAll(async () => {
    ran?.kill("SIGKILL");
    await fake.close();
  });

  test("the agent goes on pairing until the gateway answers", async () => {
    const answers = [PROXY[0], PROXY[2], PROXY[3]];
    const own = (data: object): ForeignAnswer => ({ status: 201, headers: OWN_HEADERS, text: JSON.stringify({ success: true, data }) });
    const given = { device_id: "dev_1", agent_id: "agt_1", tenant_id: "ten_1", shared_secret: SECRET, connect: { coldStartMs: 0 } };
    fake.foreign = (target) => answers.shift() ?? own(target.endsWith("/initiate") ? { pairing_code: "AAAA-BBBB" } : given);
    ran = spawn(PYTHON, ["-c", HASTY, SCRIPT], { stdio: "ignore", env: environment(fake.url, join(sandbox.dir, "faked")) });
    await eventually(() => expect(existsSync(join(sandbox.dir, "faked/identity.json"))).toBe(true), 40_000);
    ran.kill("SIGKILL");
    await once(ran, "exit");
    expect(fake.requests.filter((line) => line.includes("/elsewhere"))).toEqual([]);
  }, 60_000);

  test("the agent connects again as soon as the gateway answers, without asking REST for leave", async () => {
    const answers = PROXY.slice(0, 3);
    fake.requests.length = 0;
    fake.foreign = () => answers.shift() ?? null;
    // The middle line is damaged: its command has begun and must not run again.
    const line = (text: string): string => `${text}\n`;
    appendFileSync(join(sandbox.dir, "faked/journal"), line('{"id": "cmd_1", "is": {}') + line(JSON.stringify({ id: "cmd_2", is: { confirmed: 1 } })));
    fake.sessions.length = 0;
    ran = spawn(PYTHON, ["-c", HASTY, SCRIPT], { stdio: "ignore", env: environment(fake.url, join(sandbox.dir, "faked")) });
    await eventually(() => expect(fake.sessions).toHaveLength(1), WITHIN_MS);
    expect(fake.requests).toEqual([]);
    const session = await fake.session(0);
    session.send("command", { command: { commandId: "cmd_1", type: "test.effect", payload: { key: "again" } } });
    const results = () => session.frames.flatMap((frame) => (frame.op === "ack" && frame.data.commandId === "cmd_1" ? [frame.data.code] : []));
    await eventually(() => expect(results()).toContain("AGENT_RESTARTED"), WITHIN_MS);
    expect(existsSync(join(sandbox.dir, "faked/effects"))).toBe(false);
  }, 60_000);
});
