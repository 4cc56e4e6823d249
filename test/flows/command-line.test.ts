// The command line of an installation, called by a person or a script, with and without a running gateway.
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startChild } from "../kit/net/children.ts";
import {
  type BootstrapCredentials,
  bootstrapTenant,
  built,
  createSandbox,
  type GatewayProcess,
  node,
  processesOf,
  runToEnd,
  type Sandbox,
  startGatewayProcess,
} from "./processes.ts";

let sandbox: Sandbox;
let gateway: GatewayProcess;
let first: BootstrapCredentials;
let again: BootstrapCredentials;
let running: BootstrapCredentials;
beforeAll(async () => {
  sandbox = await createSandbox({ RATE_LIMIT_PAIRING: "off" });
  first = await bootstrapTenant(sandbox);
  again = await bootstrapTenant(sandbox);
  gateway = await startGatewayProcess(sandbox.env);
  running = await bootstrapTenant(sandbox);
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

describe("sign-in", () => {
  /** The session's cookie. */
  const open = async (url: string): Promise<string> => {
    const response = await fetch(url, { redirect: "manual" });
    return response.headers.getSetCookie()[0]?.split(";")[0] ?? `refused with ${response.status}`;
  };

  test("the command makes a link that signs the owner of the installation in once, without a tenant or with one", { timeout: 60_000 }, async () => {
    const { tenantId, userId } = first;
    for (const [args, named] of [
      [[], { userId, tenantId }],
      [["--user", userId, "--tenant", tenantId], { userId, tenantId }],
    ] as const) {
      const { code, stdout } = await cli("sign-in", "--json", ...args);
      expect(code).toBe(0);
      const { url, expiresAt } = JSON.parse(stdout) as Readonly<Record<string, string>>;
      expect(Date.parse(expiresAt ?? "") - Date.now()).toBeLessThanOrEqual(600_000);
      const cookie = await open(url ?? "");
      expect(await me({ cookie })).toMatchObject({ status: 200, data: { subject: named.userId, tenantId: named.tenantId } });
      expect(await open(url ?? "")).toBe("refused with 401");
    }
  });

  test("the link that the gateway prints at its start signs the owner in", async () => {
    const printed = () => /http\S+\/v1\/auth\/login\?token=[\w-]{43}/.exec(gateway.output.stdout)?.[0] ?? "";
    await expect.poll(printed).toContain(gateway.url);
    const url = printed();
    expect(await me({ cookie: await open(url) })).toMatchObject({ status: 200, data: { subject: first.userId } });
  });
});

describe("bootstrap", () => {
  test("bootstrap returns the same tenant, owner and address each time, with and without a running gateway", () => {
    const facts = ({ baseUrl, tenantId, userId }: BootstrapCredentials) => ({ baseUrl, tenantId, userId });
    expect(facts(again)).toEqual(facts(first));
    expect(facts(running)).toEqual(facts(first));
    expect(first.baseUrl).toBe(gateway.url);
    expect(Object.keys(first).sort()).toEqual(["apiKey", "baseUrl", "enrollmentToken", "tenantId", "token", "userId"]);
  });

  test("every token, API key and enrollment token that bootstrap ever returned works", async () => {
    for (const { token, apiKey, tenantId, userId, enrollmentToken } of [first, again, running]) {
      expect(await me({ authorization: `Bearer ${token}` })).toMatchObject({ status: 200, data: { subject: userId, tenantId, role: "owner" } });
      expect(await me({ "x-api-key": apiKey, "x-svc-tenant-id": tenantId })).toMatchObject({ status: 200, data: { tenantId, role: "admin" } });
      const { data: pairing } = await post("/v1/pairing/initiate", { device_fingerprint: `cli-${randomUUID()}`, device_name: "nuc", platform: "linux" });
      const activated = await post("/v1/pairing/auto-activate", { enrollment_token: enrollmentToken, pairing_code: pairing["pairing_code"] });
      expect(activated).toMatchObject({ status: 201, data: { tenant_id: tenantId } });
    }
  });

  test("bootstrap stops the database that it started, even when nobody reads its output", { timeout: 60_000 }, async () => {
    const own = await createSandbox();
    try {
      await runToEnd(["bash", "-c", '"$@" 2>&1 | true', "cli", process.execPath, built("server/cli.js"), "bootstrap", "--json"], { env: own.env });
      expect(existsSync(join(own.dir, "data/postgres/cluster"))).toBe(true);
      expect(await processesOf(own.dir)).toEqual([]);
    } finally {
      await own.remove();
    }
  });

  test("another name makes another tenant, and --slug finds a tenant under any name", async () => {
    const other = await bootstrapTenant(sandbox, "--tenant", "Acme Works");
    const same = await bootstrapTenant(sandbox, "--slug", "acme-works", "--tenant", "Renamed");
    expect(other.tenantId).not.toBe(first.tenantId);
    expect(same.tenantId).toBe(other.tenantId);
  });

  test("without --json bootstrap prints a list for people", async () => {
    const { code, stdout } = await cli("bootstrap");
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^tenantId +${first.tenantId}$`, "m"));
  });

  test("bootstrap leaves only the gateway and its database running", async () => {
    const commands = (await processesOf(sandbox.dir)).map(({ command }) => command);
    expect(commands.filter((command) => command.includes("cli.js"))).toEqual([]);
    expect(commands.filter((command) => command.includes("main.js"))).toHaveLength(1);
    expect((await fetch(`${gateway.url}/v1/health/ready`)).status).toBe(200);
  });
});

describe("different settings", () => {
  test("bootstrap refuses to create a second database and says which settings differ", async () => {
    const other = `${sandbox.dir}/other`;
    const { code, stdout, stderr } = await node("server/cli.js", ["bootstrap", "--json"], { env: { ...sandbox.env, DATA_DIR: other } });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(new RegExp(`^the gateway at ${gateway.url} serves another database .*DATA_DIR ${other}.*\n$`));
    expect(existsSync(other)).toBe(false);
  });

  test("bootstrap returns the real address of the gateway on its database", async () => {
    const { code, stdout, stderr } = await node("server/cli.js", ["bootstrap", "--json"], { env: { ...sandbox.env, PORT: "9" } });
    expect({ code, baseUrl: (JSON.parse(stdout) as BootstrapCredentials).baseUrl }).toEqual({ code: 0, baseUrl: gateway.url });
    expect(stderr).toBe(`the gateway of this database is at ${gateway.url}, not at http://127.0.0.1:9\n`);
  });

  test("bootstrap without a gateway says how to start one", async () => {
    const own = await createSandbox();
    const { code, stderr } = await node("server/cli.js", ["bootstrap", "--json"], { env: own.env });
    await own.remove();
    // On a busy machine the database takes a while to start, and the command says so.
    const said = stderr.replaceAll(/^(?:waiting for|the wait for) .*\n/gm, "");
    expect({ code, said }).toEqual({ code: 0, said: "no gateway serves this database yet; start one with: npm start\n" });
  });
});

describe("token", () => {
  test("a token with a role makes its user a member with that role", async () => {
    const { code, stdout } = await cli("token", "--user", "vera", "--tenant", first.tenantId, "--role", "viewer", "--json");
    expect(code).toBe(0);
    const { token } = JSON.parse(stdout) as { token: string };
    expect(await me({ authorization: `Bearer ${token}` })).toMatchObject({ status: 200, data: { subject: "vera", tenantId: first.tenantId, role: "viewer" } });
  });

  test("a token without a membership opens no tenant", async () => {
    const { stdout } = await cli("token", "--user", "stranger", "--tenant", first.tenantId, "--json");
    const { token } = JSON.parse(stdout) as { token: string };
    const response = await fetch(`${gateway.url}/v1/devices`, { headers: { authorization: `Bearer ${token}`, "x-svc-tenant-id": first.tenantId } });
    expect([403, 404]).toContain(response.status);
  });
});

describe("config", () => {
  test("config prints the settings in force and masks secrets", async () => {
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

describe("errors", () => {
  test.each([
    ["an unknown command", ["frobnicate"], /frobnicate/],
    ["an unknown flag", ["bootstrap", "--nonsense"], /--nonsense/],
    ["an invalid slug", ["bootstrap", "--slug", "A B"], /--slug/],
    ["a token without a user", ["token", "--json"], /--user/],
    ["an unknown role", ["token", "--user", "u", "--tenant", "ten_x", "--role", "king"], /--role/],
    ["a role without a tenant", ["token", "--user", "u", "--role", "viewer"], /--tenant/],
    ["an invalid lifetime", ["token", "--user", "u", "--ttl", "soon"], /--ttl/],
  ])("%s ends with code 2 and one message on standard error", async (_what, args, message) => {
    const { code, stdout, stderr } = await cli(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test("wrong settings are named on standard error by the command line and the gateway", async () => {
    const env = { ...sandbox.env, PORT: "many", HEARTBEAT_SECONDS: "0" };
    const [asked, started] = await Promise.all([node("server/cli.js", ["bootstrap", "--json"], { env }), node("server/main.js", [], { env })]);
    expect({ code: asked.code, stdout: asked.stdout }).toEqual({ code: 2, stdout: "" });
    expect(started.code).toBe(1);
    for (const { stderr } of [asked, started]) expect(stderr).toMatch(/PORT: [\s\S]*HEARTBEAT_SECONDS: /);
  });

  test("the command line names an unreachable database at once, and the gateway says that it waits for it", async () => {
    const env = { ...sandbox.env, DATABASE_URL: "postgres://u:hunter2@127.0.0.1:9/x", MASTER_KEY: Buffer.alloc(32, 3).toString("base64") };
    const asked = await node("server/cli.js", ["bootstrap"], { env });
    expect(asked.code).toBe(2);
    expect(asked.stderr).toMatch(/^DATABASE_URL: the database at 127\.0\.0\.1:9 cannot be used: .*\n$/);
    const started = startChild({ command: process.execPath, words: [built("server/main.js")], env: { ...env, LOG_LEVEL: "warn" } });
    try {
      const said = await started.waitFor("waiting for the database", 30_000);
      expect(said).toMatch(/waiting for the database at 127\.0\.0\.1:9 since \S+, for \d+ s: .*ECONNREFUSED/);
      expect(said).not.toContain("hunter2");
    } finally {
      await started.kill();
    }
  });

  test("--help lists the commands", async () => {
    const { code, stdout } = await cli("--help");
    expect(code).toBe(0);
    expect(stdout).toMatch(/bootstrap[\s\S]*token[\s\S]*config/);
  });
});
