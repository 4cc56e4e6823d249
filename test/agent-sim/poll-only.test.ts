// The reference agent without a socket, against a real gateway: it stops canceled commands, and a twin of it gets nothing.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Agent,
  createAgent,
  createApps,
  createHandlers,
  createHttp,
  createMemoryJournal,
  type Http,
  type Instances,
  noop,
  succeedInstance,
  systemTime as time,
} from "../../agent-sim/agent/index.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { type Device, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

let world: World;
let http: Http;
let tenant: TestTenant;
const agents: Agent[] = [];
beforeAll(async () => {
  world = await startWorld({ POLL_SECONDS: "1", RATE_LIMIT_AGENT: "off" });
  http = createHttp(world.url);
  tenant = await world.tenant();
});
afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.stop()));
  http.close();
  await world.close();
});

const start = ({ deviceId, identity }: Device, executed: (commandId: string) => void, instances: Partial<Instances> = {}): Agent => {
  const journal = createMemoryJournal(time.wallMs);
  const options = {
    url: world.url,
    deviceId,
    identity,
    journal,
    http,
    time,
    random: Math.random,
    handlers: createHandlers({ apps: createApps({ time, random: Math.random }), time }),
  };
  const agent = createAgent({ ...options, ...instances, mode: "poll", firstWindowMs: 0, on: { executed, polled: () => instances.polled?.() } });
  agents.push(agent);
  agent.start();
  return agent;
};
const queue = async ({ deviceId }: Device, type: string, payload: object = {}): Promise<string> =>
  (await world.call(tenant.apiKey, "POST", `/v1/devices/${deviceId}/commands`, { body: { type, payload } })).body.data.commandId;
const expectStatus = (commandId: string, status: string) =>
  eventually(async () => expect((await world.call(tenant.apiKey, "GET", `/v1/commands/${commandId}`)).body.data.status).toBe(status));

test("a polling agent stops a command that is canceled while it runs and acknowledges the cancel", async () => {
  const device = await tenant.device();
  start(device, () => undefined);
  const commandId = await queue(device, "wait", { seconds: 60 });
  await expectStatus(commandId, "running");
  await world.call(tenant.apiKey, "POST", `/v1/commands/${commandId}/cancel`);
  await expectStatus(commandId, "canceled");
  const { events } = (await world.call(tenant.apiKey, "GET", `/v1/commands/${commandId}/timeline`)).body.data;
  expect(events.at(-1)).toMatchObject({ from: "canceling", to: "canceled", actor: device.deviceId, code: null });
});

test("a twin that polls executes nothing while the first agent lives, and everything once that one has stopped", async () => {
  const device = await tenant.device();
  const executed: string[] = [];
  const first = start(device, (commandId) => executed.push(`first ${commandId}`));
  const before = await queue(device, "ping");
  await expectStatus(before, "succeeded");
  start(device, (commandId) => executed.push(`twin ${commandId}`));
  const beside = await queue(device, "ping");
  await expectStatus(beside, "succeeded");
  await first.stop();
  const after = await queue(device, "ping");
  await expectStatus(after, "succeeded");
  expect(executed).toEqual([`first ${before}`, `first ${beside}`, `twin ${after}`]);
});

test("the successor of a killed agent gets its commands at once on the same boot, and not with a copied disk", async () => {
  const device = await tenant.device();
  const file = join(mkdtempSync(join(tmpdir(), "instances-")), "instance");
  const executed: string[] = [];
  const first = start(device, noop, succeedInstance(file, "boot-1"));
  await expectStatus(await queue(device, "ping"), "succeeded");
  first.kill();
  expect(succeedInstance(file, "boot-2").formerInstanceId).toBeUndefined();
  const successor = succeedInstance(file, "boot-1");
  expect(successor.formerInstanceId).toBeDefined();
  // By itself it would wait for an hour.
  await world.sql.query("update device_presence set poll_until = now() + interval '1 hour' where device_id = $1", [device.deviceId]);
  start(device, (commandId) => executed.push(commandId), successor);
  const commandId = await queue(device, "ping");
  await expectStatus(commandId, "succeeded");
  expect(executed).toEqual([commandId]);
  rmSync(dirname(file), { recursive: true });
});

test("an instance whose file is torn or cannot be written has no predecessor", () => {
  const folder = mkdtempSync(join(tmpdir(), "instances-"));
  const file = join(folder, "instance");
  writeFileSync(file, '{"instanceId":"torn');
  expect(succeedInstance(file, "boot-1").formerInstanceId).toBeUndefined();
  const unkept = succeedInstance(join(folder, "missing", "instance"), "boot-1");
  expect(() => unkept.polled()).not.toThrow();
  rmSync(folder, { recursive: true });
});
