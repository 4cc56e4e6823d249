// What people have done in the demo's tenant: fleets, alert rules, webhooks and deployments, some of which fail and say why. Everything is looked for
// before it is made, so a later demo with the same data finds it.
import { z } from "zod";
import { DeploymentId } from "../../protocol/index.ts";
import { noop, type PairedDevice, pause, type Time } from "../agent/index.ts";
import type { DemoApi } from "./api.ts";
import { AWAY, type CastMember, FULL, HOT } from "./cast.ts";
import { REFUSES, TAKES } from "./receiver.ts";

const Named = z.object({ name: z.string() });
const Webhook = z.object({ webhookId: z.string(), description: z.string() });
const Paired = z.object({ deviceId: z.string(), tags: z.array(z.string()) });
const Deployed = z.object({ deploymentId: DeploymentId, name: z.string(), status: z.string() });

const FLEETS = [
  { name: "Gateways", selector: { tags: ["role:gateway"] } },
  { name: "Tills", selector: { tags: ["role:till"] } },
  { name: "First to update", selector: { tags: ["ring:canary"] } },
];
/** Beside those that every tenant has, and quicker than them. */
const RULES = [
  { name: "Disk above 95 %", metric: "device.disk", threshold: 95, severity: "critical" },
  { name: "Busy processor", metric: "device.cpu", threshold: 80, forSeconds: 30, severity: "info" },
  { name: "Silent for 30 seconds", metric: "device.offline_seconds", threshold: 30, severity: "warning" },
  { name: "A deployment failed", metric: "event", eventType: "deployment.failed", threshold: 0, severity: "warning" },
];
const WEBHOOKS = [
  { description: "Inventory", path: TAKES, events: ["device.created", "deployment.*"] },
  { description: "Old ticket system", path: REFUSES, events: ["alert.*"] },
];

interface Order {
  readonly name: string;
  readonly appName: string;
  readonly at: number;
  /** Stopped once it is active. */
  readonly stops?: boolean;
}
const everyFifth = (first: number, name: string, appName: string): readonly Order[] =>
  Array.from({ length: 5 }, (_, n) => ({ name, appName, at: first + n * 5 }));
/** The machines of a site have their roles in the order gateway, storage, till, kiosk, camera. */
const ORDERS: readonly Order[] = [
  ...everyFifth(0, "Status", "status-page"),
  ...everyFifth(3, "Welcome", "static-site"),
  { name: "Files", appName: "nextcloud", at: 1 },
  { name: "Charts", appName: "grafana", at: 6 },
  { name: "News", appName: "feed-reader", at: 11, stops: true },
  { name: "Price list", appName: "key-value", at: AWAY },
  { name: "Videos", appName: "uptime-kuma", at: FULL },
];

export interface StoryOptions {
  readonly api: DemoApi;
  readonly cast: readonly CastMember[];
  /** In the order of the cast. */
  readonly devices: readonly PairedDevice[];
  readonly receiver: string;
  readonly time: Time;
  readonly signal: AbortSignal;
}

const tagDevices = async ({ api, cast, devices }: StoryOptions): Promise<void> => {
  const untagged = new Set((await api.list("/v1/devices", Paired)).flatMap(({ deviceId, tags }) => (tags.length === 0 ? [deviceId] : [])));
  for (const [index, { deviceId }] of devices.entries()) {
    const machine = cast[index]?.machine;
    if (machine === undefined || !untagged.has(deviceId)) continue;
    await api.send("PATCH", `/v1/devices/${deviceId}`, { tags: [`site:${machine.site}`, ...machine.tags] }, z.unknown());
  }
};

const makeMissing = async (api: DemoApi, path: string, wanted: readonly { readonly name: string }[]): Promise<void> => {
  const known = new Set((await api.list(path, Named)).map(({ name }) => name));
  for (const each of wanted) if (!known.has(each.name)) await api.send("POST", path, each, z.unknown());
};

/** The receiver has another port in each run. */
const makeWebhooks = async ({ api, receiver }: StoryOptions): Promise<void> => {
  const known = await api.list("/v1/webhooks", Webhook);
  for (const { description, path, events } of WEBHOOKS) {
    const url = `${receiver}${path}`;
    const found = known.find((webhook) => webhook.description === description);
    if (found === undefined) await api.send("POST", "/v1/webhooks", { url, events, description }, z.unknown());
    else await api.send("PATCH", `/v1/webhooks/${found.webhookId}`, { url, status: "active" }, z.unknown());
  }
};

const ACTIVE_WITHIN_MS = 60_000;
const LOOK_MS = 1_000;

const stopWhenActive = async ({ api, time, signal }: StoryOptions, deploymentId: string): Promise<void> => {
  let isActive = false;
  const look = async (): Promise<void> => {
    isActive = (await api.list("/v1/deployments", Deployed)).some((one) => one.deploymentId === deploymentId && one.status === "active");
  };
  for (const endMs = time.elapsedMs() + ACTIVE_WITHIN_MS; !isActive && time.elapsedMs() < endMs && !signal.aborted; await pause(time, LOOK_MS, signal))
    await look();
  if (isActive) await api.send("POST", `/v1/deployments/${deploymentId}/stop`, {}, z.unknown());
};

const deploy = async (options: StoryOptions): Promise<void> => {
  const { api, cast, devices, signal } = options;
  const known = new Set((await api.list("/v1/deployments", Named)).map(({ name }) => name));
  for (const { name, appName, at, stops = false } of ORDERS) {
    const [site, deviceId] = [cast[at]?.machine.site, devices[at]?.deviceId];
    const title = `${name} ${site}`;
    if (deviceId === undefined || known.has(title) || signal.aborted) continue;
    const { deploymentId } = await api.send("POST", "/v1/deployments", { name: title, appName, deviceId }, Deployed);
    if (stops) void stopWhenActive(options, deploymentId).catch(noop);
  }
};

/** A type of command that no agent of the demo knows, so the list of commands has one that failed. */
const orderFirmware = async ({ api, devices }: StoryOptions): Promise<void> => {
  const device = devices[HOT];
  if (device !== undefined)
    await api.send("POST", `/v1/devices/${device.deviceId}/commands`, { type: "update-firmware", payload: { version: "7.2" } }, z.unknown());
};

/** Rejects if the gateway refuses something. */
export const tellStory = async (options: StoryOptions): Promise<void> => {
  const { api } = options;
  await makeWebhooks(options);
  await tagDevices(options);
  await makeMissing(api, "/v1/fleets", FLEETS);
  await makeMissing(api, "/v1/alert-rules", RULES);
  await deploy(options);
  await orderFirmware(options);
};
