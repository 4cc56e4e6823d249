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
const notes = (): readonly string[] => (existsSync(join(state, "notes.txt")) ? readFileSync(join(state, "notes.txt"), "utf8").split("\n").slice(0, -1) : []);
const becomes = (commandId: string, status: string): Promise<void> => eventually(async () => expect((await look(commandId)).status).toBe(status), WITHIN_MS);

const start = async (): Promise<void> => {
  agent = spawn(PYTHON, [SCRIPT, "run", state], { stdio: ["ignore", "pipe", "pipe"], env: { PATH: process.env["PATH"] } });
  const from = said.length;
  for (const stream of [agent.stdout, agent.stderr])
    stream?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  await eventually(() => expect(said.slice(from)).toContain("ready"), WITHIN_MS);
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
  const paired = await runToEnd([PYTHON, SCRIPT, "pair", gateway.url, state, who.enrollmentToken], { env: {} });
  expect([paired.code, paired.stderr]).toEqual([0, ""]);
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

test("the Python agent has at most 300 lines and needs one package beside the standard library", () => {
  const text = readFileSync(SCRIPT, "utf8");
  expect(text.split("\n").length - 1).toBeLessThanOrEqual(300);
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
  const broken = await queue("note", {});
  await becomes(broken.commandId, "failed");
  expect((await look(broken.commandId)).ack?.output).toEqual({ message: "KeyError('text')" });
});
test("the agent sends heartbeats", async () => {
  const Device = z.object({ status: z.string(), lastHeartbeatAt: z.string().optional() });
  await eventually(async () => expect((await api(Device, `/devices/${deviceId}`)).lastHeartbeatAt).toBeDefined(), WITHIN_MS);
});

describe("kill -9", () => {
  test("an agent that is killed during a command does not run it again and reports once that it failed", async () => {
    const { commandId } = await queue("note", { text: "killed", seconds: 600 });
    await eventually(() => expect(notes()).toContain("killed"), WITHIN_MS);
    await kill();
    await start();
    await becomes(commandId, "failed");
    expect([(await look(commandId)).failureCode, notes().filter((line) => line === "killed"), await ended(commandId)]).toEqual([
      "AGENT_RESTARTED",
      ["killed"],
      ["failed"],
    ]);
    await eventually(() => expect(said).toMatch(new RegExp(`confirmed ${commandId}`)));
  });
  test("commands run once each although the agent is killed after each of them", async () => {
    for (const text of ["one", "two", "three"]) {
      const { commandId } = await queue("note", { text, seconds: 0 });
      await becomes(commandId, "succeeded");
      await kill();
      await start();
      expect(await ended(commandId)).toEqual(["succeeded"]);
    }
    expect(notes().filter((line) => line !== "killed")).toEqual(["one", "two", "three"]);
  });
  test("a journalled result that was never sent arrives after the next start, without running the command again", async () => {
    const { commandId } = await queue("note", { text: "journalled", seconds: 600 });
    await eventually(() => expect(notes()).toContain("journalled"), WITHIN_MS);
    await kill();
    appendFileSync(
      join(state, "journal"),
      `${JSON.stringify({ id: commandId, is: { result: { status: "succeeded", output: { kept: true } } } })}\n{"id":"torn`,
    );
    await start();
    await becomes(commandId, "succeeded");
    expect([(await look(commandId)).ack?.output, notes().filter((line) => line === "journalled")]).toEqual([{ kept: true }, ["journalled"]]);
  });
});

test("the agent reconnects after the gateway restarts", async () => {
  await gateway.end("SIGKILL");
  gateway = await startGatewayProcess(sandbox.env);
  const { commandId } = await queue("ping", {});
  await becomes(commandId, "succeeded");
});
test("a second agent process on the same state ends with one sentence", async () => {
  const { code, stderr } = await runToEnd([PYTHON, SCRIPT, "run", state], { env: {} });
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
    const paired = await runToEnd([PYTHON, "-c", HASTY, SCRIPT, "pair", fake.url, join(sandbox.dir, "faked"), "token"], { env: {} });
    expect([paired.code, paired.stderr]).toEqual([0, ""]);
    expect(fake.requests.filter((line) => line.includes("/elsewhere"))).toEqual([]);
  }, 60_000);

  test("the agent connects again as soon as the gateway answers, without asking REST for leave", async () => {
    const answers = PROXY.slice(0, 3);
    fake.requests.length = 0;
    fake.foreign = () => answers.shift() ?? null;
    // The middle line is damaged: its command has begun and must not run again.
    const line = (text: string): string => `${text}\n`;
    appendFileSync(join(sandbox.dir, "faked/journal"), line('{"id": "cmd_1", "is": {}') + line(JSON.stringify({ id: "cmd_2", is: { confirmed: 1 } })));
    ran = spawn(PYTHON, ["-c", HASTY, SCRIPT, "run", join(sandbox.dir, "faked")], { stdio: "ignore" });
    await eventually(() => expect(fake.sessions).toHaveLength(1), WITHIN_MS);
    expect(fake.requests).toEqual([]);
    const session = await fake.session(0);
    session.send("command", { command: { commandId: "cmd_1", type: "note", payload: { text: "again" } } });
    const results = () => session.frames.flatMap((frame) => (frame.op === "ack" && frame.data.commandId === "cmd_1" ? [frame.data.code] : []));
    await eventually(() => expect(results()).toContain("AGENT_RESTARTED"), WITHIN_MS);
    expect(existsSync(join(sandbox.dir, "faked/notes.txt"))).toBe(false);
  }, 60_000);
});
