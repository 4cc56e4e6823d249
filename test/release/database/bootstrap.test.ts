// The first commands of an installation without a gateway, and what its programs say when something is wrong, in processes of their own.
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type BootstrapCredentials,
  bootstrapTenant,
  built,
  createSandbox,
  type Finished,
  type GatewayProcess,
  node,
  processesOf,
  runToEnd,
  type Sandbox,
  startGatewayProcess,
} from "../../flows/processes.ts";
import { startChild } from "../../kit/net/children.ts";

const START_MS = 60_000;

let sandbox: Sandbox;
/** What runs after a command whose output nobody read. */
let left: Awaited<ReturnType<typeof processesOf>>;
let without: Finished;
let first: BootstrapCredentials;
let gateway: GatewayProcess;
let running: BootstrapCredentials;
beforeAll(async () => {
  sandbox = await createSandbox({ RATE_LIMIT_PAIRING: "off" });
  await runToEnd(["bash", "-c", '"$@" 2>&1 | true', "cli", process.execPath, built("server/cli.js"), "bootstrap", "--json"], { env: sandbox.env });
  left = await processesOf(sandbox.dir);
  without = await node("server/cli.js", ["bootstrap", "--json"], { env: sandbox.env });
  first = JSON.parse(without.stdout);
  gateway = await startGatewayProcess(sandbox.env);
  running = await bootstrapTenant(sandbox);
  // Four processes, one after another.
}, 3 * START_MS);
afterAll(() => sandbox.remove());

interface Answer {
  readonly status: number;
  readonly data: Readonly<Record<string, string>>;
}
const call = async (path: string, headers: Readonly<Record<string, string>>, body?: object): Promise<Answer> => {
  const post = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(`${gateway.url}/v1${path}`, { headers: { "content-type": "application/json", ...headers }, ...post });
  return { status: response.status, data: ((await response.json()) as { data: Answer["data"] }).data };
};

describe("bootstrap", () => {
  test("bootstrap stops the database that it started, even when nobody reads its output", () => {
    expect(existsSync(join(sandbox.dir, "data/postgres/cluster"))).toBe(true);
    expect(left).toEqual([]);
  });

  test("bootstrap without a gateway says how to start one", () => {
    // On a busy machine the database takes a while to start, and the command says so.
    const said = without.stderr.replaceAll(/^(?:waiting for|the wait for) .*\n/gm, "");
    expect([without.code, said]).toEqual([0, "no gateway serves this database yet; start one with: npm start\n"]);
  });

  test("bootstrap returns the same tenant, owner and address each time, with and without a running gateway", () => {
    const facts = ({ baseUrl, tenantId, userId }: BootstrapCredentials) => ({ baseUrl, tenantId, userId });
    expect(facts(running)).toEqual(facts(first));
    expect(first.baseUrl).toBe(gateway.url);
    expect(Object.keys(first).sort()).toEqual(["apiKey", "baseUrl", "enrollmentToken", "tenantId", "token", "userId"]);
  });

  test("every token, API key and enrollment token that bootstrap ever returned works", async () => {
    for (const { token, apiKey, tenantId, userId, enrollmentToken } of [first, running]) {
      expect(await call("/auth/me", { authorization: `Bearer ${token}` })).toMatchObject({ status: 200, data: { subject: userId, tenantId, role: "owner" } });
      expect(await call("/auth/me", { "x-api-key": apiKey, "x-svc-tenant-id": tenantId })).toMatchObject({ status: 200, data: { tenantId, role: "admin" } });
      const { data: pairing } = await call("/pairing/initiate", {}, { device_fingerprint: `cli-${randomUUID()}`, device_name: "nuc", platform: "linux" });
      const activated = await call("/pairing/auto-activate", {}, { enrollment_token: enrollmentToken, pairing_code: pairing["pairing_code"] });
      expect(activated).toMatchObject({ status: 201, data: { tenant_id: tenantId } });
    }
  });
});

describe("the gateway", () => {
  test("names wrong settings and ends with code 1", async () => {
    const { code, stderr } = await node("server/main.js", [], { env: { ...sandbox.env, PORT: "many", HEARTBEAT_SECONDS: "0" } });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/PORT: [\s\S]*HEARTBEAT_SECONDS: /)]);
  });

  test("says that it waits for a database that cannot be reached", { timeout: START_MS }, async () => {
    const env = { ...sandbox.env, DATABASE_URL: "postgres://u:hunter2@127.0.0.1:9/x", MASTER_KEY: Buffer.alloc(32, 3).toString("base64"), LOG_LEVEL: "warn" };
    const started = startChild({ command: process.execPath, words: [built("server/main.js")], env });
    try {
      const said = await started.waitFor("waiting for the database", 30_000);
      expect(said).toMatch(/waiting for the database at 127\.0\.0\.1:9 since \S+, for \d+ s: .*ECONNREFUSED/);
      expect(said).not.toContain("hunter2");
    } finally {
      await started.kill();
    }
  });
});
