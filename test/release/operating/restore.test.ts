// docs/operating.md is enough to restore an installation: the test runs its commands in a container that has nothing but Node, a new PostgreSQL, the package
// and what was saved, under agents that go on outside.
import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRandom, IssuedIdentity, systemTime, toPairedDevice } from "../../../agent-sim/agent/index.ts";
import { type AgentGroup, createAgentGroup } from "../../../agent-sim/fleet/agent-group.ts";
import { createCommandTracker } from "../../../agent-sim/fleet/command-tracker.ts";
import { hurried } from "../../chaos/scenario.ts";
import {
  type BootstrapCredentials,
  bootstrapTenant,
  createSandbox,
  type Env,
  type GatewayProcess,
  INSTALLED,
  ROOT,
  runToEnd,
  type Sandbox,
  startGatewayProcess,
} from "../../flows/processes.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type DockerEngine, startDockerEngine } from "../../kit/docker/engine.ts";
import { folderPrefix } from "../../kit/setup/run-mark.ts";
import { withClient } from "../../kit/stores/database.ts";
import { type PostgresServer, startPostgres } from "../../kit/stores/debian-postgres.ts";
import { RESTORE_THE_INSTALLATION, stepsOf } from "../walkthroughs.ts";

const AGENTS = 8;
const VERSIONS = "/usr/lib/postgresql";
const IMAGE = "mooring-test/postgresql:1";
const MACHINE = "spare";
/** Where docs/deployment.md has the package. */
const PLACE = "/opt/mooring";
const NPM = join(dirname(process.execPath), "../lib/node_modules/npm");

let folder = "";
let engine: DockerEngine;
let postgres: PostgresServer;
let sandbox: Sandbox;
let gateway: GatewayProcess;
let credentials: BootstrapCredentials;
let group: AgentGroup;
/** PostgreSQL's programs, and the role that may create databases. */
let tools: Readonly<Record<string, string>>;

const call = async (method: string, path: string, body?: object) => {
  const headers = { "x-api-key": credentials.apiKey, "x-svc-tenant-id": credentials.tenantId, "content-type": "application/json" };
  const answer = await fetch(`${gateway.url}${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  return { status: answer.status, body: (await answer.json()) as { data: never } };
};
/** A command of the container, in the folder of the package. */
const inside = (env: Env, ...command: readonly string[]): readonly string[] => [
  ...["docker", "exec", "--workdir", PLACE],
  ...Object.entries(env).flatMap(([name, value]) => ["--env", `${name}=${value}`]),
  ...[MACHINE, ...command],
];
/** Starts a machine with Node and a PostgreSQL that has neither a role nor a database, at a port of this one. */
const startMachine = async (port: string): Promise<void> => {
  const mounts = [
    `${process.execPath}:/usr/local/bin/node`,
    `${NPM}:/usr/local/lib/node_modules/npm`,
    ...["node_modules", ...INSTALLED].map((name) => `${join(ROOT, name)}:${join(PLACE, name)}`),
  ];
  await engine.docker("network", "create", "spare");
  const run = ["run", "--detach", "--name", MACHINE, "--network", "spare", "--publish", `127.0.0.1:${port}:${port}`];
  await engine.docker(...run, ...mounts.flatMap((mount) => ["--volume", `${mount}:ro`]), IMAGE, "sleep", "infinity");
  await engine.docker("cp", join(folder, "saved"), `${MACHINE}:${PLACE}/saved`);
  const lines = [
    "ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm",
    "sed -i s/scram-sha-256/trust/ /etc/postgresql/*/main/pg_hba.conf",
    "service postgresql start",
  ];
  await engine.docker("exec", MACHINE, "sh", "-ec", lines.join("\n"));
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), folderPrefix("restore")));
  engine = await startDockerEngine();
  await engine.makeDebian(IMAGE, "stable", ["postgresql"]);
  const newest = (await readdir(VERSIONS)).sort((a, b) => Number(b) - Number(a))[0] ?? "";
  const bin = join(VERSIONS, newest, "bin");
  // PostgreSQL runs as another user, whose folder is within this one.
  await chmod(folder, 0o755);
  postgres = await startPostgres(bin, join(folder, "postgres"), {});
  // The role of the gateway is not the one that made the cluster, which may do everything.
  await withClient(postgres.url, (client) => client.query("create role helper login superuser"));
  const asHelper = postgres.url.replace("mooring@", "helper@");
  await withClient(asHelper, async (client) => {
    await client.query("alter role mooring rename to administrator");
    await client.query("create role mooring login");
    await client.query("create database mooring owner mooring");
  });
  const { hostname, port } = new URL(postgres.url);
  tools = { BIN: bin, PGHOST: hostname, PGPORT: port, PGUSER: "administrator" };
  sandbox = await createSandbox({
    MASTER_KEY: randomBytes(32).toString("base64"),
    DATABASE_URL: `postgres://mooring@${hostname}:${port}/mooring?application_name=mooring`,
  });
  gateway = await startGatewayProcess(sandbox.env);
  credentials = await bootstrapTenant(sandbox, "--unlimited");
}, 300_000);
afterAll(async () => {
  await group?.stop();
  await gateway?.end("SIGTERM");
  await engine?.close();
  await sandbox?.remove();
  await postgres?.close();
  await rm(folder, { recursive: true, force: true });
});

test("the document's commands save an installation and restore it on another machine, and its agents come back by themselves", {
  timeout: 400_000,
}, async () => {
  const { body: provisioned } = await call("POST", "/v1/devices/provision", { count: AGENTS });
  const members = IssuedIdentity.array().parse(provisioned.data).map(toPairedDevice);
  group = createAgentGroup({
    url: gateway.url,
    members,
    tracker: createCommandTracker(systemTime.elapsedMs),
    // Agents that met no gateway for a minute may pause for another, or for five.
    time: hurried(6),
    random: createRandom(5),
    seed: 5,
    heartbeatSec: null,
    pollOnlyPct: 0,
    rampPerSecond: 100,
    onAlarm: () => undefined,
  });
  group.start();
  await eventually(() => expect(group.connected).toBe(AGENTS));
  const queue = async (deviceId: string | undefined): Promise<string> => {
    const { status, body } = await call("POST", `/v1/devices/${deviceId}/commands?wait=20`, { type: "ping" });
    expect({ status, body }).toMatchObject({ status: 201, body: { data: { status: "succeeded" } } });
    return (body as { data: { commandId: string } }).data.commandId;
  };
  const kept = await queue(members[0]?.deviceId);

  const [save = "", role = "", restore = "", start = ""] = await stepsOf(RESTORE_THE_INSTALLATION);
  const saved = await runToEnd(["bash", "-c", `set -euo pipefail\nPATH="$BIN:$PATH"\n${save}`], { env: { ...sandbox.env, ...tools }, cwd: folder });
  expect(saved).toMatchObject({ code: 0, stderr: "" });
  expect((await readdir(join(folder, "saved"))).sort()).toEqual(["mooring.dump", "signing-key.json"]);

  const lost = await queue(members[1]?.deviceId);
  await gateway.end("SIGTERM");
  // The first machine is gone with all that it had.
  await postgres.close();

  await startMachine(sandbox.env["PORT"] ?? "");
  const env = {
    ...sandbox.env,
    HOST: "0.0.0.0",
    DATA_DIR: "/var/lib/mooring",
    DATABASE_URL: "postgres://mooring@127.0.0.1/mooring?application_name=mooring",
  };
  const asked = inside({ ...env, PGHOST: "127.0.0.1", PGUSER: "postgres" }, "bash", "-c", `set -euo pipefail\n${role}\n${restore}\necho "now $DATABASE_URL"`);
  const restored = await runToEnd(asked, { env: engine.environment, withinMs: 120_000 });
  expect(restored).toMatchObject({ code: 0, stdout: expect.stringContaining("The master key fits") });
  const databaseUrl = /^now (.*)$/m.exec(restored.stdout)?.[1] ?? "";
  expect(databaseUrl).toBe(env.DATABASE_URL.replace("/mooring?", "/restored?"));

  expect(start.trim()).toBe("npm start");
  const url = gateway.url;
  gateway = { ...(await startGatewayProcess(engine.environment, inside({ ...env, DATABASE_URL: databaseUrl }, ...start.trim().split(" ")))), url };
  await eventually(() => expect(group.connected).toBe(AGENTS), 150_000);
  expect((await call("GET", `/v1/commands/${kept}`)).status).toBe(200);
  expect((await call("GET", `/v1/commands/${lost}`)).status).toBe(404);
  await queue(members[2]?.deviceId);
});
