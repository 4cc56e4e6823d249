// The command line of an installation, as a person or a script calls it: while the gateway runs and while it does not.
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bootstrap, type Credentials, createSandbox, type Gateway, node, processesOf, type Sandbox, startGateway } from "./processes.ts";

let sandbox: Sandbox;
let gateway: Gateway;
let first: Credentials;
let again: Credentials;
let running: Credentials;
beforeAll(async () => {
  sandbox = await createSandbox({ RATE_LIMIT_PAIRING: "off" });
  first = await bootstrap(sandbox);
  again = await bootstrap(sandbox);
  gateway = await startGateway(sandbox.env);
  running = await bootstrap(sandbox);
}, 60_000);
afterAll(() => sandbox.remove());

const cli = (...args: readonly string[]) => node("server/cli.js", args, { env: sandbox.env });
const me = async (headers: Readonly<Record<string, string>>) => {
  const response = await fetch(`${gateway.url}/v1/auth/me`, { headers });
  return { status: response.status, data: ((await response.json()) as { data?: Readonly<Record<string, unknown>> }).data };
};
const post = async (path: string, body: object): Promise<{ status: number; data: Record<string, string> }> => {
  const response = await fetch(`${gateway.url}${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  return { status: response.status, data: ((await response.json()) as { data: Record<string, string> }).data };
};

describe("bootstrap", () => {
  test("gives the same tenant, owner and address before, again and while the gateway runs", () => {
    const facts = ({ baseUrl, tenantId, userId }: Credentials) => ({ baseUrl, tenantId, userId });
    expect(facts(again)).toEqual(facts(first));
    expect(facts(running)).toEqual(facts(first));
    expect(first.baseUrl).toBe(gateway.url);
    expect(Object.keys(first).sort()).toEqual(["apiKey", "baseUrl", "enrollmentToken", "tenantId", "token", "userId"]);
  });

  test("every credential it ever gave works: token, key, enrollment token", async () => {
    for (const { token, apiKey, tenantId, userId, enrollmentToken } of [first, again, running]) {
      expect(await me({ authorization: `Bearer ${token}` })).toMatchObject({ status: 200, data: { subject: userId, tenantId, role: "owner" } });
      expect(await me({ "x-api-key": apiKey, "x-svc-tenant-id": tenantId })).toMatchObject({ status: 200, data: { tenantId, role: "admin" } });
      const { data: pairing } = await post("/v1/pairing/initiate", { device_fingerprint: `cli-${randomUUID()}`, device_name: "nuc", platform: "linux" });
      const activated = await post("/v1/pairing/auto-activate", { enrollment_token: enrollmentToken, pairing_code: pairing["pairing_code"] });
      expect(activated).toMatchObject({ status: 201, data: { tenant_id: tenantId } });
    }
  });

  test("another name makes another tenant; --slug finds one again whatever its name", async () => {
    const other = await bootstrap(sandbox, "--tenant", "Acme Works");
    const same = await bootstrap(sandbox, "--slug", "acme-works", "--tenant", "Renamed");
    expect(other.tenantId).not.toBe(first.tenantId);
    expect(same.tenantId).toBe(other.tenantId);
  });

  test("without --json it is a list for people", async () => {
    const { code, stdout } = await cli("bootstrap");
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^tenantId +${first.tenantId}$`, "m"));
  });

  test("leaves the gateway and its database running, and nothing else", async () => {
    const commands = (await processesOf(sandbox.dir)).map(({ command }) => command);
    expect(commands.filter((command) => command.includes("cli.js"))).toEqual([]);
    expect(commands.filter((command) => command.includes("main.js"))).toHaveLength(1);
    expect((await fetch(`${gateway.url}/v1/health/ready`)).status).toBe(200);
  });
});

describe("beside a gateway of other settings", () => {
  test("bootstrap refuses to make another database, and says which settings differ", async () => {
    const other = `${sandbox.dir}/other`;
    const { code, stdout, stderr } = await node("server/cli.js", ["bootstrap", "--json"], { env: { ...sandbox.env, DATA_DIR: other } });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(new RegExp(`^the gateway at ${gateway.url} serves another database .*DATA_DIR ${other}.*\n$`));
    expect(existsSync(other)).toBe(false);
  });

  test("bootstrap gives the address at which the gateway of its database really is", async () => {
    const { code, stdout, stderr } = await node("server/cli.js", ["bootstrap", "--json"], { env: { ...sandbox.env, PORT: "9" } });
    expect({ code, baseUrl: (JSON.parse(stdout) as Credentials).baseUrl }).toEqual({ code: 0, baseUrl: gateway.url });
    expect(stderr).toBe(`the gateway of this database is at ${gateway.url}, not at http://127.0.0.1:9\n`);
  });

  test("bootstrap without a gateway says how to start one", async () => {
    const own = await createSandbox();
    const { code, stderr } = await node("server/cli.js", ["bootstrap", "--json"], { env: own.env });
    await own.remove();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "no gateway serves this database yet; start one with: npm start\n" });
  });
});

describe("token", () => {
  test("makes the user a member with the role, and says who it is", async () => {
    const { code, stdout } = await cli("token", "--user", "vera", "--tenant", first.tenantId, "--role", "viewer", "--json");
    expect(code).toBe(0);
    const { token } = JSON.parse(stdout) as { token: string };
    expect(await me({ authorization: `Bearer ${token}` })).toMatchObject({ status: 200, data: { subject: "vera", tenantId: first.tenantId, role: "viewer" } });
  });

  test("of a stranger opens no tenant", async () => {
    const { stdout } = await cli("token", "--user", "stranger", "--tenant", first.tenantId, "--json");
    const { token } = JSON.parse(stdout) as { token: string };
    const response = await fetch(`${gateway.url}/v1/devices`, { headers: { authorization: `Bearer ${token}`, "x-svc-tenant-id": first.tenantId } });
    expect([403, 404]).toContain(response.status);
  });
});

describe("config", () => {
  test("prints what is in force and masks what is secret", async () => {
    const env = {
      ...sandbox.env,
      INTERNAL_TOKEN: "swordfish-swordfish",
      DATABASE_URL: "postgres://u:hunter2@db/x",
      MASTER_KEY: Buffer.alloc(32, 3).toString("base64"),
    };
    const { code, stdout } = await node("server/cli.js", ["config"], { env });
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^PORT +${sandbox.env["PORT"]} `, "m"));
    expect(stdout).toMatch(/^MASTER_KEY +\*{8} /m);
    expect(stdout).not.toMatch(/swordfish|hunter2|AwMD/);
  });
});

describe("what is wrong", () => {
  test.each([
    ["an unknown command", ["frobnicate"], /frobnicate/],
    ["an unknown flag", ["bootstrap", "--nonsense"], /--nonsense/],
    ["a slug that is none", ["bootstrap", "--slug", "A B"], /--slug/],
    ["a token for nobody", ["token", "--json"], /--user/],
    ["a role that is none", ["token", "--user", "u", "--tenant", "ten_x", "--role", "king"], /--role/],
    ["a role without tenant", ["token", "--user", "u", "--role", "viewer"], /--tenant/],
    ["a life that is none", ["token", "--user", "u", "--ttl", "soon"], /--ttl/],
  ])("%s ends with code 2 and one message on standard error", async (_what, args, message) => {
    const { code, stdout, stderr } = await cli(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test("so does a setting, for the command line and for the gateway", async () => {
    const env = { ...sandbox.env, PORT: "many", HEARTBEAT_SECONDS: "0" };
    const [asked, started] = await Promise.all([node("server/cli.js", ["bootstrap", "--json"], { env }), node("server/main.js", [], { env })]);
    expect({ code: asked.code, stdout: asked.stdout }).toEqual({ code: 2, stdout: "" });
    expect(started.code).toBe(1);
    for (const { stderr } of [asked, started]) expect(stderr).toMatch(/PORT: [\s\S]*HEARTBEAT_SECONDS: /);
  });

  test("so does a database that does not answer, for both", async () => {
    const env = { ...sandbox.env, DATABASE_URL: "postgres://u:hunter2@127.0.0.1:9/x", MASTER_KEY: Buffer.alloc(32, 3).toString("base64") };
    const [asked, started] = await Promise.all([node("server/cli.js", ["bootstrap"], { env }), node("server/main.js", [], { env })]);
    expect([asked.code, started.code]).toEqual([2, 1]);
    for (const { stderr } of [asked, started]) expect(stderr).toMatch(/^DATABASE_URL: the database at 127\.0\.0\.1:9 cannot be used: .*\n$/);
  });

  test("--help says what there is", async () => {
    const { code, stdout } = await cli("--help");
    expect(code).toBe(0);
    expect(stdout).toMatch(/bootstrap[\s\S]*token[\s\S]*config/);
  });
});
