// A download of a backup: the link works once and for a quarter of an hour, the device opens a carrier for it, and half an archive never looks like a whole one.
import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createCarrier, systemTime } from "../../../agent-sim/agent/index.ts";
import { createOffers, type SendArchive } from "../../../agent-sim/host/backups/offers.ts";
import { newBackup } from "../../contract/samples/backups.ts";
import { openStock, type Stock } from "../../contract/samples.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { openAgent } from "../../kit/gateway/agents.ts";
import { type SimulatedDevice, startSimulatedDevice } from "../../kit/gateway/simulated-device.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";

let world: World;
let stock: Stock;
const ends: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  world = await startWorld({}, { spread: true });
  stock = await openStock(world);
});
afterAll(async () => {
  for (const end of ends) await end();
  await world.close();
});

const startDevice = async (): Promise<SimulatedDevice> => {
  const machine = await startSimulatedDevice(world, stock.tenant);
  ends.push(machine.stop);
  return machine;
};
const post = (path: string, body: object = {}) => world.call(stock.owner, "POST", `/v1${path}`, { body });
const ask = async (path: string, body: object = {}) => {
  const answer = await post(path, body);
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body?.data;
};
const codeOf = async (link: string, init?: RequestInit): Promise<readonly [number, string]> => {
  const answer = await fetch(link, init);
  return [answer.status, ((await answer.json()) as { code: string }).code];
};
/** The address of this world's edge: its own URL names a port that tests do not know beforehand. */
const reachable = (url: string): string => `http://127.0.0.1:${world.app.edgePort()}${new URL(url).pathname}`;

test("a device without tunnels sends its backup as a tar archive, once", async () => {
  const { device } = await startDevice();
  const deployment = await ask("/deployments", { appName: "key-value", deviceId: device.deviceId, secrets: { KV_TOKEN: "open-sesame" } });
  const { appId } = await eventually(async () => {
    const { body } = await world.call(stock.owner, "GET", `/v1/deployments/${deployment.deploymentId}`);
    expect(body.data.status).toBe("active");
    return body.data;
  }, 20_000);
  const { backupId } = await ask(`/devices/${device.deviceId}/backups`, { appId });
  await eventually(async () => {
    expect((await world.call(stock.owner, "GET", `/v1/backups/${backupId}`)).body.data.status).toBe("completed");
  }, 20_000);

  const { url } = await ask(`/backups/${backupId}/download`);
  expect(await codeOf(reachable(url), { method: "POST" })).toEqual([405, "METHOD_NOT_ALLOWED"]);
  const answer = await fetch(reachable(url));
  expect([answer.status, answer.headers.get("content-type"), answer.headers.get("content-disposition")]).toEqual([
    200,
    "application/x-tar",
    `attachment; filename="${backupId}.tar"`,
  ]);
  const archive = Buffer.from(await answer.arrayBuffer());
  expect(execFileSync("tar", ["-tvf", "-"], { input: archive, encoding: "utf8" })).toContain(`${appId}/data`);
  expect(await codeOf(reachable(url))).toEqual([410, "DOWNLOAD_USED"]);
  expect(await codeOf(`${reachable(url)}x`)).toEqual([404, "DOWNLOAD_EXPIRED"]);
});

test("only a complete backup of a connected device gets a link", async () => {
  const made = await newBackup(stock);
  const pending = await newBackup(stock, { status: "in_progress" });
  const refusal = async (backupId: string) => {
    const { status, body } = await post(`/backups/${backupId}/download`);
    return [status, body?.code];
  };
  expect(await refusal(pending.backupId)).toEqual([409, "BACKUP_NOT_RESTORABLE"]);
  expect(await refusal(made.backupId)).toEqual([409, "DEVICE_OFFLINE"]);
  const theirs = await openStock(world);
  expect(await refusal((await newBackup(theirs)).backupId)).toEqual([404, "BACKUP_NOT_FOUND"]);
});

test("an archive that breaks off breaks the download off, and a second visitor gets nothing", async () => {
  const device = await stock.tenant.device();
  const offers = createOffers(systemTime);
  const send: SendArchive = async (into) => {
    await new Promise<void>((resolve) => into.write(Buffer.alloc(300_000, "a"), () => resolve()));
    throw new Error("restic broke off");
  };
  const run = async (payload: unknown) => {
    const { downloadId, seconds } = payload as { downloadId: string; seconds: number };
    offers.add({ downloadId, seconds, send });
    return {};
  };
  const { agent, stop } = openAgent(world.url, device, {
    handlers: { "backup.download": { long: false, cancelable: false, repeatable: true, run } },
  });
  const carrier = createCarrier({
    url: () => `http://127.0.0.1:${world.app.edgePort()}/v1/agent/tunnel`,
    headers: (url) => agent.signed("GET", new URL(url).pathname),
    dial: (authority) => offers.dial(authority) ?? "unknown",
    time: systemTime,
    random: Math.random,
  });
  ends.push(async () => carrier.stop(), stop);
  agent.start();
  await eventually(() => expect(agent.state).toBe("ready"));
  carrier.start();
  await eventually(() => expect(carrier.isOpen).toBe(true));
  const { backupId } = await newBackup(stock, { deviceId: device.deviceId });
  const { url } = await eventually(() => ask(`/backups/${backupId}/download`));
  await eventually(() => expect(offers.needsCarrier).toBe(true));
  const answer = await fetch(reachable(url));
  expect(answer.status).toBe(200);
  await expect(answer.arrayBuffer()).rejects.toThrow();
  await eventually(() => expect(offers.needsCarrier).toBe(false));
});
