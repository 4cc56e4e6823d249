// `mooring`, the command line of a tenant: what it finds, orders and prints, against a gateway with a device whose tunnels are real.
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemTime } from "../../../agent-sim/agent/index.ts";
import { CLI_COMMANDS, reference } from "../../../protocol/client/cli/commands.ts";
import { createPrinter } from "../../../protocol/client/cli/output.ts";
import { run } from "../../../protocol/client/cli/run.ts";
import { CLI_PAGE } from "../../conventions/write-cli.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type RunningAgent, startAgent } from "../../kit/gateway/agents.ts";
import { TEMPLATE } from "../../kit/gateway/app-template.ts";
import { askAs } from "../../kit/gateway/ask.ts";
import { type SimulatedDevice, startSimulatedDevice } from "../../kit/gateway/simulated-device.ts";
import { type Caller, type Device, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { freePort } from "../../kit/net/free-port.ts";

let world: World;
let tenant: TestTenant;
let owner: Caller;
let machine: SimulatedDevice;
/** With the ordinary commands. */
let runner: Device;
let agent: RunningAgent;
let appId: string;
let key: string;
let home: string;
const origin = createServer((_request, response) => void response.end("the app itself"));
const ask = (method: string, path: string, body?: object) => askAs(world, owner, method, path, body);

beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off" });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  ({ apiKey: key } = await ask("POST", "/api-keys", { name: "command line", role: "admin" }));
  machine = await startSimulatedDevice(world, tenant);
  runner = await tenant.device();
  agent = await startAgent(world.url, runner);
  await ask("PATCH", `/devices/${runner.deviceId}`, { name: "runner" });
  await ask("PATCH", `/devices/${machine.device.deviceId}`, { name: "attic" });
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  const { port } = origin.address() as AddressInfo; // as: it listens on TCP
  const order = { appId: TEMPLATE, deviceId: machine.device.deviceId, name: "store", configuration: { port } };
  const { deploymentId } = await ask("POST", "/deployments", order);
  ({ appId } = await eventually(async () => {
    const found = await ask("GET", `/deployments/${deploymentId}`);
    expect(found.status).toBe("active");
    return found;
  }));
  home = await mkdtemp(join(tmpdir(), "mooring-home-"));
});
afterAll(async () => {
  await agent?.stop();
  await machine?.stop();
  origin.closeAllConnections();
  origin.close();
  await world.close();
  await rm(home, { recursive: true, force: true });
});

const sink = () => {
  let text = "";
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      text += String(chunk);
      done();
    },
  });
  return { stream, text: () => text };
};
interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}
const begin = (words: readonly string[], env: Readonly<Record<string, string>>, answer = "") => {
  const [out, err, stop] = [sink(), sink(), new AbortController()];
  const ended = run(words, {
    env: { HOME: home, ...env },
    stdout: out.stream,
    stderr: err.stream,
    signal: stop.signal,
    ask: async () => answer,
    time: systemTime,
  });
  return { out: out.text, stop: () => stop.abort(), ended: ended.then((code): Said => ({ code, out: out.text(), err: err.text() })) };
};
const mooring = (...words: string[]): Promise<Said> => begin(words, { MOORING_URL: world.url, MOORING_KEY: key }).ended;
const commandsQueued = async (type: string): Promise<number> =>
  (await world.sql.query("select count(*)::int as count from commands where tenant_id = $1 and type = $2", [tenant.tenantId, type])).rows[0].count;

describe("signing in", () => {
  test("keeps the key where nobody else reads it, until signing out", async () => {
    const env = { XDG_CONFIG_HOME: join(home, "config") };
    expect((await begin(["devices"], env).ended).err).toContain("you are not signed in; run mooring login");
    expect(await begin(["login", world.url], env, key).ended).toMatchObject({ code: 0 });
    const file = join(home, "config", "mooring", "credentials.json");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await begin(["whoami"], env).ended).out).toContain(`of ${tenant.tenantId}, with the role admin`);
    await writeFile(file, "{");
    expect((await begin(["whoami"], env).ended).err).toContain("is damaged; run mooring login again");
    expect(await begin(["logout"], env).ended).toMatchObject({ code: 0 });
    expect((await begin(["whoami"], env).ended).code).toBe(1);
  });

  test("takes no key that the gateway refuses, and sends none as plain text over a network", async () => {
    const wrong = await begin(["login", world.url], {}, "svk_live_wrong").ended;
    expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining("UNAUTHORIZED")]);
    expect((await begin(["login", "http://mooring.example.org"], {}, key).ended).err).toContain("would carry the key as plain text; use https");
    expect((await begin(["login", "mooring"], {}, key).ended).err).toContain("is no URL");
    expect((await begin(["login", world.url], {}, "hunter2").ended).err).toContain("an API key begins with svk_");
    expect((await begin(["whoami"], {}).ended).code).toBe(1);
  });
});

describe("manifests", () => {
  test("are planned as a diff, applied, unchanged the second time, and show drift", async () => {
    const file = join(home, "tenant.yaml");
    const fleets = (tag: string): string => `format: mooring-manifest/1\nfleets:\n  - name: from a file\n    selector: { tags: [${tag}] }\n`;
    await writeFile(file, fleets("one"));
    const planned = await mooring("plan", file);
    expect([planned.code, planned.out]).toEqual([1, expect.stringContaining("+ fleet from a file (line 3)")]);
    expect((await ask("GET", "/fleets")).map(({ name }: { name: string }) => name)).not.toContain("from a file");
    expect(await mooring("apply", file)).toMatchObject({ code: 0, out: expect.stringContaining("completed: 1 done, 0 failed") });
    expect(await mooring("apply", file)).toMatchObject({ code: 0, out: expect.stringContaining("no changes") });
    expect((await mooring("plan", file)).code).toBe(0);
    await writeFile(file, fleets("two"));
    const drift = JSON.parse((await mooring("plan", file, "--json")).out);
    expect((await ask("GET", "/imports")).filter(({ mode }: { mode: string }) => mode === "dry_run")).toEqual([]);
    expect(drift.report).toMatchObject([{ action: "update", changes: [{ field: "selector" }] }]);
    await writeFile(file, `${fleets("two")}  - name: dangling\n    updatePolicyId: update-policy/none\n`);
    expect(await mooring("apply", file, "--strict")).toMatchObject({ code: 1, out: expect.stringContaining("! fleet dangling") });
    expect(await mooring("apply", file)).toMatchObject({ code: 1, out: expect.stringContaining("1 done, 0 failed, 1 refused") });
    expect((await mooring("manifest")).out).toContain("name: from a file");
    expect((await mooring("plan", join(home, "none.yaml"))).err).toContain("cannot be read");
  });
});

describe("a manifest with a deployment", () => {
  test("installs the app on the device that it names, once", async () => {
    const file = join(home, "apps.yaml");
    const record = ["name: second store", `template: ${TEMPLATE}`, "deviceId: device/attic", `configuration: { port: ${await freePort()} }`];
    await writeFile(file, `format: mooring-manifest/1\ndeployments:\n  - ${record.join("\n    ")}\n`);
    expect(await mooring("apply", file)).toMatchObject({ code: 0, out: expect.stringContaining("completed: 1 done, 0 failed") });
    await eventually(async () => {
      const found = (await ask("GET", "/deployments")).find(({ name }: { name: string }) => name === "second store");
      expect(found).toMatchObject({ status: "active", deviceId: machine.device.deviceId });
    });
    expect(await mooring("apply", file)).toMatchObject({ code: 0, out: expect.stringContaining("no changes") });
    expect((await mooring("manifest")).out).toContain("name: second store");
  });
});

describe("devices", () => {
  test("are listed as a table and as JSON, and found by name or id", async () => {
    const { deviceId } = machine.device;
    const table = await mooring("devices", "--status", "online");
    expect(table.out.split("\n")[0]).toMatch(/^NAME +ID +STATUS/);
    expect(table.out).toMatch(new RegExp(`^attic +${deviceId} +online`, "m"));
    expect(JSON.parse((await mooring("devices", "--json")).out)).toContainEqual(expect.objectContaining({ deviceId, name: "attic" }));
    expect((await mooring("devices", "--status", "sleeping")).err).toContain("VALIDATION_FAILED");
    expect((await mooring("run", "cellar", "ping")).err).toContain("there is no device cellar");
  });

  test("carry out a command once, and what it says is what the process exits with", async () => {
    const before = await commandsQueued("ping");
    const done = await mooring("run", "runner", "ping", "--wait");
    expect([done.code, done.out]).toEqual([0, expect.stringMatching(/^cmd_\w+ ping succeeded\n/)]);
    expect(JSON.parse((await mooring("run", runner.deviceId, "ping", "{}", "--wait", "--json")).out)).toMatchObject({ status: "succeeded" });
    expect(await commandsQueued("ping")).toBe(before + 2);
    const unknown = await mooring("run", "runner", "unheard-of", "--wait");
    expect([unknown.code, unknown.out]).toEqual([1, expect.stringContaining("unheard-of rejected")]);
    expect((await mooring("run", "runner", "ping", "{")).code).toBe(2);
    expect((await mooring("run", "runner", "ping", "[]")).err).toContain("must be a JSON object");
    expect((await mooring("run", "runner", "ping", "--wait-seconds", "0")).code).toBe(2);
  });

  test("that two are called alike are told apart by their ids", async () => {
    const [one, two] = [await tenant.device(), await tenant.device()];
    for (const { deviceId } of [one, two]) await ask("PATCH", `/devices/${deviceId}`, { name: "twin" });
    const { code, err } = await mooring("run", "twin", "ping");
    expect(code).toBe(1);
    for (const { deviceId } of [one, two]) expect(err).toContain(deviceId);
  });
});

describe("apps", () => {
  test("print what they have logged, and what they log from now on, until somebody stops it", async () => {
    expect((await mooring("apps", "--device", "attic")).out).toContain(appId);
    const tail = await mooring("logs", "store", "--lines", "5");
    expect([tail.code, tail.out]).toEqual([0, expect.stringContaining("revision 1 starts")]);
    const followed = begin(["logs", "store", "-f", "--json"], { MOORING_URL: world.url, MOORING_KEY: key });
    await eventually(() => expect(followed.out().trim().split("\n").length).toBeGreaterThan(tail.out.trim().split("\n").length));
    followed.stop();
    const { code, out } = await followed.ended;
    expect(code).toBe(0);
    for (const line of out.trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("text");
    expect((await mooring("logs", "store", "--lines", "0")).code).toBe(2);
  });

  test("get one private tunnel, however often they are opened", async () => {
    const first = await mooring("open", "store");
    expect(first.code).toBe(0);
    expect(await mooring("open", appId)).toEqual(first);
    const tunnels = await ask("GET", `/tunnels?appId=${appId}`);
    expect(tunnels).toMatchObject([{ access: { mode: "private" }, status: "active" }]);
    expect(new URL(first.out.trim()).hostname).toMatch(/^store-/);
  });
});

test("a rollout is started, watched to its end, and fails the process unless it completes", async () => {
  const { fleetId } = await ask("POST", "/fleets", { name: "empty", selector: { tags: ["site:nowhere"] } });
  const policy = { name: "steady", subject: { kind: "app", template: TEMPLATE }, targetVersion: "1.0.0", phases: [{ percent: 100 }] };
  await ask("POST", "/fleets/update-policies", policy);
  expect((await mooring("rollout", "start", "empty")).err).toContain("name the update policy with --policy");
  const started = await mooring("rollout", "start", fleetId, "--policy", "steady", "--watch");
  expect([started.code, started.out]).toEqual([1, expect.stringContaining("failed (NO_DEVICES)")]);
  const [, rolloutId = ""] = /^(rlt_\w+)/.exec(started.out) ?? [];
  expect((await mooring("rollout", "watch", rolloutId, "--json")).code).toBe(1);
  expect((await mooring("rollouts")).out).toContain(rolloutId);
});

describe("the command line", () => {
  test("says of each command how it is called, and refuses what it does not know", async () => {
    for (const { name } of CLI_COMMANDS) {
      const help = await mooring(...name.split(" "), "--help");
      expect([help.code, help.out]).toEqual([0, expect.stringContaining(`mooring ${name}`)]);
    }
    expect(await mooring("--help")).toMatchObject({ code: 0, out: expect.stringContaining("mooring COMMAND --help") });
    expect((await mooring("sail")).code).toBe(2);
    expect(await mooring("devices", "--colour")).toMatchObject({ code: 2, err: expect.stringContaining("mooring devices [--status STATUS]") });
    expect((await mooring("devices", "extra")).code).toBe(2);
    expect((await begin(["devices"], { MOORING_URL: "http://127.0.0.1:9", MOORING_KEY: key }).ended).err).toContain("no gateway answers at http://127.0.0.1:9");
  });

  test("completes every command and option in each shell", async () => {
    for (const shell of ["bash", "zsh", "fish"]) {
      const { out } = await mooring("completion", shell);
      for (const { name, options } of CLI_COMMANDS) {
        expect(out).toContain(name.split(" ").at(-1));
        for (const option of Object.keys(options)) expect(out).toContain(option);
      }
    }
    expect((await mooring("completion", "tcsh")).code).toBe(2);
  });

  test("shows no control characters of others, and JSON has them as they are", () => {
    const name = "cellar\u001b[31m\u0007\n";
    const shown = (json: boolean): string => {
      const out = sink();
      createPrinter(out.stream, out.stream, json).table([{ name }], [["NAME", (row: { name: string }) => row.name]]);
      return out.text();
    };
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
    expect(shown(false)).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
    expect(JSON.parse(shown(true))).toEqual([{ name }]);
  });

  test("is described by docs/cli.md (npm run docs:cli writes it)", async () => {
    expect(await readFile(CLI_PAGE, "utf8")).toBe(reference());
  });
});
