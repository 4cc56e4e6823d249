// The reference agent without a socket, against a real gateway: it stops canceled commands, and a twin of it gets nothing.
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Agent,
  createAgent,
  createApps,
  createHandlers,
  createHttp,
  createMemoryJournal,
  type Http,
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

const start = ({ deviceId, identity }: Device, executed: (commandId: string) => void): Agent => {
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
  const agent = createAgent({ ...options, mode: "poll", firstWindowMs: 0, on: { executed } });
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
