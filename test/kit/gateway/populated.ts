// A tenant as people have it after some weeks: devices in every state, commands that ended in different ways, one that waits for another, people and keys.
import { randomBytes } from "node:crypto";
import { eventually } from "../checks/eventually.ts";
import { openAgent } from "./agents.ts";
import type { TestTenant, World } from "./world.ts";

const SITES = ["berlin", "lisbon", "osaka", "oslo"];
const KINDS = ["cam", "gateway", "kiosk", "nas"];
export const HOSTILE_NAME = '"><img src=x onerror=alert(1)>';

interface Made {
  readonly device_id: string;
  readonly agent_id: string;
  readonly tenant_id: string;
  readonly shared_secret: string;
}

const agentOf = (url: string, { device_id: deviceId, agent_id: agentId, tenant_id: tenantId, shared_secret: secret }: Made) =>
  openAgent(url, { deviceId, identity: { agentId, tenantId, secret } }, { heartbeatSec: 5 });

export interface Populated {
  readonly deviceIds: readonly string[];
  /** Of a command that waits for its lane. */
  readonly waiting: { readonly deviceId: string; readonly commandId: string };
  readonly fleetId: string;
  readonly webhookId: string;
  readonly traceId: string;
  stop(): Promise<void>;
}

/** Of each eight devices one goes offline and one never connects; the first has a name that wants to be HTML if `hostile`. */
export const populate = async (world: World, tenant: TestTenant, { devices = 16, hostile = true } = {}): Promise<Populated> => {
  const owner = await tenant.user("owner");
  const post = async (path: string, body: object) => (await world.call(owner, "POST", path, { body })).body.data;
  const made: readonly Made[] = await post("/v1/devices/provision", { count: devices, platform: "linux" });
  const deviceIds = made.map(({ device_id }) => device_id);
  for (const [index, deviceId] of deviceIds.entries()) {
    const site = SITES[index % SITES.length] ?? "";
    const name = index === 0 && hostile ? HOSTILE_NAME : `${site}-${KINDS[index % 3]}-${String(index + 1).padStart(3, "0")}`;
    await world.call(owner, "PATCH", `/v1/devices/${deviceId}`, { body: { name, tags: [`site:${site}`] } });
  }
  const agents = made.map((device, index) => (index % 8 === 6 ? null : agentOf(world.url, device)));
  for (const each of agents) each?.agent.start();
  const online = async (count: number): Promise<void> => {
    const { total } = (await world.call(owner, "GET", "/v1/devices?status=online&pageSize=1")).body.meta.pagination;
    if (total !== count) throw new Error(`${total} of ${count} devices are online`);
  };
  const connected = agents.filter((agent) => agent !== null).length;
  await eventually(() => online(connected), 60_000);

  const queue = (deviceId: string, body: object): Promise<{ readonly id: string }> => post(`/v1/devices/${deviceId}/commands`, body);
  const [first = "", second = ""] = deviceIds;
  for (const deviceId of deviceIds) await queue(deviceId, { type: "ping" });
  for (const type of ["echo", "diagnostics", "restart-app"]) await queue(first, { type, payload: type === "echo" ? { says: HOSTILE_NAME } : {} });
  await queue(second, { type: "wait", payload: { seconds: "many" } }).catch(() => undefined);
  await queue(first, { type: "wait", lane: "updates", payload: { seconds: 600 } });
  const { id: commandId } = await queue(first, { type: "restart-app", lane: "updates" });

  const offline = agents.filter((_, index) => index % 8 === 3);
  await Promise.all(offline.map((agent) => agent?.stop()));
  await eventually(() => online(connected - offline.length), 60_000);
  await queue(deviceIds[3] ?? first, { type: "ping" });

  await post("/v1/invites", { email: "eva@example.com", roleId: "viewer", selector: { tags: ["site:lisbon"] } });
  await post("/v1/roles", { name: "Night shift", permissions: ["device:read", "command:read"] });
  await post("/v1/api-keys", { name: "Backup script", role: "viewer", expiresInDays: 5 });
  await post("/v1/pairing/enrollment-tokens", { name: "Rollout in Oslo", maxUses: 20, tags: ["site:oslo"] });
  const { fleetId } = await post("/v1/fleets", { name: "Kiosks", deviceIds: deviceIds.slice(0, 5) });
  // Nobody listens there, and none of these events happens.
  const { webhookId } = await post("/v1/webhooks", {
    url: "http://127.0.0.2:8443/inventory",
    events: ["billing.*"],
    description: hostile ? HOSTILE_NAME : "Inventory",
  });
  const traceId = randomBytes(16).toString("hex");
  const traceparent = `00-${traceId}-${randomBytes(8).toString("hex")}-01`;
  await world.call(owner, "POST", `/v1/devices/${second}/commands`, { body: { type: "diagnostics" }, headers: { traceparent } });
  await eventually(async () => {
    const { status } = await world.call(owner, "GET", `/v1/traces/${traceId}`);
    if (status !== 200) throw new Error("the trace has not come");
  });
  await tenant.user("viewer");
  return {
    deviceIds,
    waiting: { deviceId: first, commandId },
    fleetId,
    webhookId,
    traceId,
    stop: async () => {
      await Promise.all(agents.map((agent) => agent?.stop()));
    },
  };
};
