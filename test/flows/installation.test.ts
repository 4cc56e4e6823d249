// One installation from its start to its end, in the processes that `npm start`, `npm run cli` and `npm run agent` start. Its first commands without a
// gateway are the subject of test/release/database/bootstrap.test.ts.
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../kit/checks/eventually.ts";
import { freePort } from "../kit/net/free-port.ts";
import {
  type BootstrapCredentials,
  bootstrapTenant,
  built,
  createSandbox,
  type GatewayProcess,
  processesOf,
  type Sandbox,
  startGatewayProcess,
} from "./processes.ts";

const START_MS = 60_000;

let sandbox: Sandbox;
let gateway: GatewayProcess;
let first: BootstrapCredentials;
let agent: ChildProcess | null = null;
beforeAll(async () => {
  sandbox = await createSandbox({ RATE_LIMIT_PAIRING: "off" });
  gateway = await startGatewayProcess(sandbox.env);
  first = await bootstrapTenant(sandbox);
}, START_MS);
afterAll(async () => {
  agent?.kill("SIGKILL");
  await sandbox.remove();
});

interface Answer {
  readonly status: number;
  readonly data: Readonly<Record<string, string>>;
}
const call = async (path: string, headers: Readonly<Record<string, string>>, body?: object): Promise<Answer> => {
  const post = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(`${gateway.url}/v1${path}`, { headers: { "content-type": "application/json", ...headers }, ...post });
  return { status: response.status, data: ((await response.json()) as { data: Answer["data"] }).data };
};
const asOwner = () => ({ authorization: `Bearer ${first.token}` });

// The last test ends the gateway.
describe("an installation", { shuffle: false }, () => {
  test("bootstrap returns a token, an API key and an enrollment token that work", async () => {
    const { token, apiKey, tenantId, userId, enrollmentToken } = first;
    expect(await call("/auth/me", { authorization: `Bearer ${token}` })).toMatchObject({ status: 200, data: { subject: userId, tenantId, role: "owner" } });
    expect(await call("/auth/me", { "x-api-key": apiKey, "x-svc-tenant-id": tenantId })).toMatchObject({ status: 200, data: { tenantId, role: "admin" } });
    const { data: pairing } = await call("/pairing/initiate", {}, { device_fingerprint: `cli-${randomUUID()}`, device_name: "nuc", platform: "linux" });
    const activated = await call("/pairing/auto-activate", {}, { enrollment_token: enrollmentToken, pairing_code: pairing["pairing_code"] });
    expect(activated).toMatchObject({ status: 201, data: { tenant_id: tenantId } });
  });

  test("bootstrap leaves only the gateway and its database running", async () => {
    const commands = (await processesOf(sandbox.dir)).map(({ command }) => command);
    expect(commands.filter((command) => command.includes("cli.js"))).toEqual([]);
    expect(commands.filter((command) => command.includes("main.js"))).toHaveLength(1);
    expect((await call("/health/ready", {})).status).toBe(200);
  });

  test("the link that the gateway prints at its start signs the owner in", async () => {
    const printed = () => /http\S+\/v1\/auth\/login\?token=[\w-]{43}/.exec(gateway.output.stdout)?.[0] ?? "";
    await expect.poll(printed).toContain(gateway.url);
    const response = await fetch(printed(), { redirect: "manual" });
    const [cookie = ""] = response.headers.getSetCookie().map((each) => each.split(";")[0] ?? "");
    expect(await call("/auth/me", { cookie })).toMatchObject({ status: 200, data: { subject: first.userId } });
  });

  test("an agent pairs and runs an app, which outlives the gateway and its database", { timeout: START_MS }, async () => {
    const identity = join(sandbox.dir, "device.json");
    const args = ["agent", "--pair", "nuc", "--enroll", first.enrollmentToken, "--identity", identity, "--host", "process", "--url", gateway.url];
    agent = spawn(process.execPath, [built("agent-sim/main.js"), ...args], { stdio: "ignore" });
    const deviceId = await eventually(async () => String(JSON.parse(await readFile(identity, "utf8")).device_id), START_MS);
    const port = await freePort();
    const { data } = await call("/deployments", asOwner(), { appName: "static-site", deviceId, configuration: { port } });
    await eventually(async () => expect((await call(`/deployments/${data["deploymentId"]}`, asOwner())).data).toMatchObject({ status: "active" }), START_MS);

    expect(await gateway.end("SIGTERM")).toEqual({ code: 0, signal: null });
    expect(await processesOf(join(sandbox.dir, "data"))).toEqual([]);
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(200);
  });
});
