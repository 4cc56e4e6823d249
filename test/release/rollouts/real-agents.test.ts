// Rollouts over real agents: ten with real processes, and one whose app is a container of a real Docker Engine. A version that fails its health check stops at
// five devices and is rolled back; one that works reaches all.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AppCatalogue, loadAppCatalogue } from "../../../server/features/apps/index.ts";
import { packageFile } from "../../../server/version.ts";
import { built } from "../../flows/processes.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { type DockerEngine, startDockerEngine } from "../../kit/docker/engine.ts";
import { type Caller, type Device, startWorld, type World } from "../../kit/gateway/world.ts";
import { type Child, plainEnv, startChild } from "../../kit/net/children.ts";
import { freePort } from "../../kit/net/free-port.ts";

const SOON_MS = 90_000;
const IMAGE = "mooring-test/web:1.0.0";
const VERSIONS = { works: "1.0.0", fails: "2.0.0", worksAgain: "3.0.0" } as const;
const COMPOSE = `services:
  web:
    image: ${IMAGE}
    restart: unless-stopped
    command: ["sh", "-c", "mkdir -p /www; echo ok > /www/health; echo 'the page is up'; trap 'exit 0' TERM; httpd -f -p 80 -h /www & wait"]
    ports:
      - \${HTTP_PORT}:80
`;

let folder: string;
let world: World;
let engine: DockerEngine;
const agents: Child[] = [];
let catalogue: AppCatalogue;

/** What the gateway offers after it was upgraded to a release with this version of both templates. */
const offer = (version: string): void => {
  const templates = join(folder, "catalogue", version);
  const health = { http: { port: "http", path: version === VERSIONS.fails ? "/absent" : "/health" }, intervalSeconds: 1, retries: 2, startSeconds: 10 };
  const write = (id: string, source: string, change: (facts: Record<string, object>) => object): void => {
    const facts = JSON.parse(readFileSync(packageFile(`server/catalogue/${source}/app.json`), "utf8"));
    mkdirSync(join(templates, id), { recursive: true });
    writeFileSync(join(templates, id, "app.json"), JSON.stringify({ ...facts, version, ...change(facts), spec: { ...facts.spec, health } }));
  };
  write("static-site", "static-site", () => ({}));
  write("web", "it-tools", () => ({ images: [IMAGE] }));
  writeFileSync(join(templates, "web", "compose.yaml"), COMPOSE);
  cpSync(packageFile("server/catalogue/README.md"), join(templates, "README.md"));
  catalogue = loadAppCatalogue(templates);
};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "rollouts-"));
  offer(VERSIONS.works);
  const current: AppCatalogue = {
    get entries() {
      return catalogue.entries;
    },
    find: (id) => catalogue.find(id),
  };
  world = await startWorld({}, { settings: { catalogue: current } });
  engine = await startDockerEngine();
  await engine.makeImage(IMAGE);
}, 90_000);
afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.stop()));
  await world.close();
  await engine.close();
  rmSync(folder, { recursive: true });
}, 90_000);

const startAgent = ({ deviceId, identity }: Device, host: "process" | "compose"): void => {
  const file = join(folder, `${deviceId}.json`);
  const { agentId, tenantId, secret } = identity;
  writeFileSync(file, JSON.stringify({ device_id: deviceId, agent_id: agentId, tenant_id: tenantId, shared_secret: secret }), { mode: 0o600 });
  const words = [
    built("agent-sim/main.js"),
    "agent",
    "--identity",
    file,
    "--host",
    host,
    "--data",
    join(folder, deviceId),
    "--url",
    world.url,
    "--seconds",
    "600",
  ];
  agents.push(startChild({ command: process.execPath, words, env: { ...plainEnv(), ...(host === "compose" ? engine.environment : {}) } }));
};

interface Fleet {
  readonly owner: Caller;
  readonly fleetId: string;
  readonly pages: readonly string[];
}

const call = async (as: Caller, method: string, path: string, body?: object) => {
  const answer = await world.call(as, method, `/v1${path}`, body === undefined ? {} : { body });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body.data;
};

/** Devices whose agents run, each with one app of the version that works. */
const openFleet = async (size: number, host: "process" | "compose", template: string): Promise<Fleet> => {
  const tenant = await world.tenant();
  const owner = await tenant.user();
  const devices: Device[] = [];
  for (let made = 0; made < size; made += 1) devices.push(await tenant.device());
  for (const device of devices) startAgent(device, host);
  const pages: string[] = [];
  const deploymentIds: string[] = [];
  for (const { deviceId } of devices) {
    const port = await freePort();
    pages.push(`http://127.0.0.1:${port}/health`);
    deploymentIds.push((await call(owner, "POST", "/deployments", { appName: template, deviceId, configuration: { port } })).deploymentId);
  }
  for (const id of deploymentIds)
    await eventually(async () => expect(await call(owner, "GET", `/deployments/${id}`)).toMatchObject({ status: "active" }), SOON_MS);
  const { fleetId } = await call(owner, "POST", "/fleets", { name: "all", deviceIds: devices.map(({ deviceId }) => deviceId) });
  return { owner, fleetId, pages };
};

const rollOut = async ({ owner, fleetId }: Fleet, template: string, isOver: (status: string) => boolean) => {
  const settings = { subject: { kind: "app", template }, phases: [{ percent: 100, soakMinutes: 0 }], onFailure: "rollback" };
  const { rolloutId } = await call(owner, "POST", "/rollouts", { fleetId, settings, start: true });
  return eventually(async () => {
    const rollout = await call(owner, "GET", `/rollouts/${rolloutId}`);
    expect(isOver(rollout.status), JSON.stringify(rollout)).toBe(true);
    return rollout;
  }, SOON_MS);
};

const appsOf = async ({ owner }: Fleet): Promise<readonly string[]> =>
  (await call(owner, "GET", "/apps")).map(({ status, templateVersion }: { status: string; templateVersion: string }) => `${status} ${templateVersion}`);
const answersOf = ({ pages }: Fleet): Promise<readonly string[]> => Promise.all(pages.map(async (page) => (await fetch(page)).text()));
const orderedIn = async (rolloutId: string): Promise<number> =>
  (await world.sql.query("select count(command_id)::int as ordered from rollout_devices where rollout_id = $1", [rolloutId])).rows[0].ordered;

test("of ten agents with real processes five get a version that fails its check, and all run the one before", { timeout: 300_000 }, async () => {
  offer(VERSIONS.works);
  const fleet = await openFleet(10, "process", "static-site");
  offer(VERSIONS.fails);
  const rollout = await rollOut(fleet, "static-site", (status) => status === "rolled_back");
  expect(rollout).toMatchObject({ statusReason: "THRESHOLD_EXCEEDED", counts: { failed: 5, aborted: 5, succeeded: 0 } });
  expect(await orderedIn(rollout.rolloutId)).toBe(5);
  expect(await call(fleet.owner, "GET", `/rollouts/${rollout.rolloutId}/failures`)).toMatchObject([{ code: "HEALTH_CHECK_FAILED", count: 5 }]);
  expect(await appsOf(fleet)).toEqual(Array.from({ length: 10 }, () => `running ${VERSIONS.works}`));
  expect(new Set(await answersOf(fleet)).size).toBe(1);

  offer(VERSIONS.worksAgain);
  expect(await rollOut(fleet, "static-site", (status) => status === "completed")).toMatchObject({ counts: { succeeded: 10 } });
  expect(await appsOf(fleet)).toEqual(Array.from({ length: 10 }, () => `running ${VERSIONS.worksAgain}`));
});

test("a container whose new version fails its check is replaced by one of the version before", { timeout: 300_000 }, async () => {
  offer(VERSIONS.works);
  const fleet = await openFleet(1, "compose", "web");
  offer(VERSIONS.fails);
  const rollout = await rollOut(fleet, "web", (status) => status === "rolled_back");
  expect(rollout).toMatchObject({ statusReason: "PHASE_FAILED", counts: { failed: 1 } });
  const [failure] = await call(fleet.owner, "GET", `/rollouts/${rollout.rolloutId}/failures`);
  expect(failure).toMatchObject({ code: "HEALTH_CHECK_FAILED", lines: expect.arrayContaining([expect.stringContaining("the page is up")]) });
  expect(await appsOf(fleet)).toEqual([`running ${VERSIONS.works}`]);
  expect(await answersOf(fleet)).toEqual(["ok\n"]);
  expect((await engine.docker("ps", "--quiet")).trim().split("\n")).toHaveLength(1);

  offer(VERSIONS.worksAgain);
  expect(await rollOut(fleet, "web", (status) => status === "completed")).toMatchObject({ counts: { succeeded: 1 } });
  expect(await answersOf(fleet)).toEqual(["ok\n"]);
});
