// Every bulk operation answers as its single call does: the same permission, the same commands, the same refusals. Generated over the registry.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BULK_NAMES, type BulkName, contract, type Operation } from "../../../protocol/index.ts";
import { REGISTRY } from "../../../server/features/bulk-operations/registry.ts";
import { type OperationId, openStock, SAMPLES, type Stock } from "../../contract/samples.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { finished } from "./finished.ts";

/** A step that waits for a second session of background work while it holds one would wait for itself. */
const ONE_SESSION = { DATABASE_SESSIONS_JOBS: "1" };
let world: World;
let stock: Stock;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off", RATE_LIMIT_PAIRING: "off", ...ONE_SESSION }, { inProcess: true });
  stock = await openStock(world);
});
afterAll(() => world.close());

const singleOf = (id: string): Operation => {
  const [group = "", name = ""] = id.split(".");
  return (contract as unknown as Record<string, { operations: Record<string, Operation> }>)[group]?.operations[name] as Operation;
};

test.each(BULK_NAMES)("%s needs the permission of its single calls", (name) => {
  const { permission, singles } = REGISTRY[name];
  expect(singles.length).toBeGreaterThan(0);
  expect(singles.map((single) => singleOf(single).permission)).toEqual(singles.map(() => permission));
});

const ID = { device: "deviceId", app: "appId", deployment: "deploymentId", alert: "alertId", backup: "backupId", tunnel: "tunnelId" } as const;
const IDS = { device: "deviceIds", app: "appIds", deployment: "deploymentIds", alert: "alertIds", backup: "backupIds", tunnel: "tunnelIds" } as const;

interface Pair {
  /** The single call, its input beside the id. */
  readonly single: OperationId;
  readonly more?: object;
  readonly params?: (input: Readonly<Record<string, unknown>>) => object;
}
const PAIRS: Readonly<Record<BulkName, Pair>> = {
  "device.command": {
    single: "commands.queue",
    more: { type: "restart-app", payload: { appId: "app_1" }, priority: 7 },
    params: ({ type, payload, priority }) => ({ type, payload, priority }),
  },
  "device.tag": { single: "devices.update", more: { tags: ["kiosk"] }, params: () => ({ add: ["kiosk"] }) },
  "device.move": { single: "devices.update", params: ({ deploymentId }) => ({ deploymentId }) },
  "device.fleet": { single: "fleets.addDevice", params: ({ fleetId }) => ({ add: [fleetId] }) },
  "device.delete": { single: "devices.remove", params: () => ({ confirm: 1 }) },
  "app.restart": { single: "apps.restart" },
  "app.start": { single: "apps.start" },
  "app.stop": { single: "apps.stop" },
  "app.update": { single: "apps.upgrade", params: () => ({ upgrade: true }) },
  "app.remove": { single: "apps.remove", params: () => ({ keepVolumes: true }), more: { keepVolumes: true } },
  "deployment.redeploy": { single: "deployments.redeploy", params: ({ configuration }) => ({ configuration }) },
  "deployment.stop": { single: "deployments.stop" },
  "deployment.start": { single: "deployments.start" },
  "deployment.delete": { single: "deployments.remove" },
  "agent.update": { single: "commands.queue", more: { type: "agent-update" } },
  "backup.create": { single: "backups.create", params: () => ({}) },
  "backup.verify": { single: "backups.verify" },
  "tunnel.stop": { single: "tunnels.update", more: { status: "stopped" } },
  "alert.acknowledge": { single: "alerts.acknowledge", more: { note: "seen" }, params: () => ({ note: "seen" }) },
  "alert.resolve": { single: "alerts.resolve", more: { note: "done" }, params: () => ({ note: "done" }) },
};
const DEVICE_SAMPLES: ReadonlySet<string> = new Set(["devices.update", "commands.queue", "fleets.addDevice", "devices.remove"]);

/** An input of the single call on a target of its own. */
const inputFor = async ({ single, more = {} }: Pair): Promise<Record<string, unknown>> => {
  const input: Record<string, unknown> = { ...(await SAMPLES[single](stock, "")), ...more };
  if (DEVICE_SAMPLES.has(single)) input["deviceId"] = (await stock.tenant.device()).deviceId;
  if (single === "devices.update" && !("tags" in more)) {
    const { rows } = await world.sql.query("select deployment_id from deployments where tenant_id = $1 and is_default", [stock.tenant.tenantId]);
    return { deviceId: input["deviceId"], deploymentId: rows[0].deployment_id };
  }
  if (single === "tunnels.update") return { tunnelId: input["tunnelId"], ...more };
  if (single === "devices.update") return { deviceId: input["deviceId"], ...more };
  if (single === "commands.queue") return { deviceId: input["deviceId"], ...more };
  return input;
};

const callSingle = async (id: OperationId, input: Readonly<Record<string, unknown>>) => {
  const [method = "", path = ""] = (singleOf(id).rest[0] ?? "").split(" ");
  const used = new Set<string>();
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    used.add(name);
    return String(input[name]);
  });
  const rest = Object.fromEntries(Object.entries(input).filter(([name]) => !used.has(name)));
  const query = singleOf(id).query.filter((name) => name in rest);
  const asQuery = query.map((name) => `${name}=${String(rest[name])}`).join("&");
  const body = Object.fromEntries(Object.entries(rest).filter(([name]) => !query.includes(name)));
  const answer = await world.call(stock.owner, method as "POST", `/v1${filled}${asQuery === "" ? "" : `?${asQuery}`}`, method === "DELETE" ? {} : { body });
  return answer.status < 300 ? "done" : (answer.body.code as string);
};

const callBulk = async (name: BulkName, targetId: string, params: object) => {
  const target = { [IDS[REGISTRY[name].target]]: [targetId] };
  const made = await world.call(stock.owner, "POST", "/v1/bulk-operations", { body: { operation: name, target, params, await: "ordered" } });
  if (made.status !== 201) return made.body.code === "BULK_NO_TARGETS" ? "unknown" : (made.body.code as string);
  const { operationId } = await finished(world, stock.owner, made.body.data.operationId);
  const [item] = (await world.call(stock.owner, "GET", `/v1/bulk-operations/${operationId}/items`)).body.data;
  return item.status === "succeeded" ? "done" : item.code;
};

/** What either way leaves behind: the commands of the device, and the events about the target. */
const left = async (input: Readonly<Record<string, unknown>>, targetId: string) => {
  const at = async (text: string, values: readonly unknown[]) => (await world.sql.query(text, [...values])).rows;
  const [owner] = await at(
    "select device_id from apps where app_id = $1 or deployment_id = $1 union select device_id from backups where backup_id = $1 union select device_id from tunnels where tunnel_id = $1 limit 1",
    [targetId],
  );
  const deviceId = input["deviceId"] ?? owner?.device_id ?? "";
  const commands = await at("select type, priority, lane, status, created_by, payload::text as payload from commands_now where device_id = $1 order by seq", [
    deviceId,
  ]);
  const events = await at("select type from outbox_events where tenant_id = $1 and subject_id = $2 order by position", [stock.tenant.tenantId, targetId]);
  // Ids and numbers of the one target stand for those of the other.
  return JSON.stringify({ commands, events: events.map(({ type }) => type) })
    .replace(/(?:app|bak|bkd|dep|dev|cmd)_\w{26}|sample-\w+/g, "ID")
    .replace(/"revision\\?":\d+|Version\\?":\d+/g, "N");
};

describe("a bulk operation on one target", () => {
  test.each(BULK_NAMES)("%s does what the single call does", async (name) => {
    const pair = PAIRS[name];
    const field = ID[REGISTRY[name].target];
    const [one, other] = [await inputFor(pair), await inputFor(pair)];
    const params = pair.params?.(other) ?? {};
    const [oneId, otherId] = [String(one[field]), String(other[field])];
    expect([await callSingle(pair.single, one), await callBulk(name, otherId, params)]).toEqual(["done", "done"]);
    expect(await left(other, otherId)).toEqual(await left(one, oneId));
    // The state is another one now, or the target is gone.
    const [again, bulkAgain] = [await callSingle(pair.single, one), await callBulk(name, otherId, params)];
    expect([bulkAgain === "unknown" ? `${REGISTRY[name].target.toUpperCase()}_NOT_FOUND` : bulkAgain]).toEqual([again]);
  });
});
