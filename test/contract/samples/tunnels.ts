// Tunnels and mesh routes for samples, beside the custom domains that lead to tunnels.

import type { Stock } from "../stock.ts";
import { DOMAIN_SAMPLES } from "./domains.ts";

/** A tunnel of the stock's device, made by the API because its token is sealed. */
export const newTunnel = async ({ world, device, owner }: Pick<Stock, "world" | "device" | "owner">): Promise<string> => {
  const { body } = await world.call(owner, "POST", `/v1/devices/${device.deviceId}/tunnels`, { body: { targetPort: 3_000 } });
  const tunnelId: unknown = body?.data?.tunnelId;
  if (typeof tunnelId !== "string") throw new Error(`no tunnel: ${JSON.stringify(body)}`);
  return tunnelId;
};
const aTunnel =
  (more: Record<string, unknown> = {}) =>
  async (stock: Stock) => ({ tunnelId: await newTunnel(stock), ...more });

let made = 0;
/** Each leads to another network, because two that do the same conflict. */
export const meshRouteBody = ({ device }: Pick<Stock, "device">) => {
  made += 1;
  return {
    name: "plant",
    kind: "subnet",
    network: `10.${(made >> 8) & 255}.${made & 255}.0/24`,
    routers: [{ deviceId: device.deviceId }],
    consumers: { tags: ["site:lisbon"] },
  };
};
const newRoute = async (stock: Stock): Promise<string> => {
  const { body } = await stock.world.call(stock.owner, "POST", "/v1/mesh-routes", { body: meshRouteBody(stock) });
  const routeId: unknown = body?.data?.routeId;
  if (typeof routeId !== "string") throw new Error(`no mesh route: ${JSON.stringify(body)}`);
  return routeId;
};
const aRoute =
  (more: Record<string, unknown> = {}) =>
  async (stock: Stock) => ({ routeId: await newRoute(stock), ...more });

const MESH_SAMPLES = {
  "meshRoutes.list": async () => ({}),
  "meshRoutes.create": async (stock: Stock) => meshRouteBody(stock),
  "meshRoutes.get": aRoute(),
  "meshRoutes.update": aRoute({ name: "renamed" }),
  "meshRoutes.remove": aRoute(),
  "meshRoutes.approve": aRoute(),
  "meshRoutes.reject": aRoute(),
  "meshRoutes.peers": async () => ({}),
  "meshRoutes.effective": async ({ device }: Stock) => ({ deviceId: device.deviceId }),
};

export const REACH_SAMPLES = {
  ...DOMAIN_SAMPLES,
  ...MESH_SAMPLES,
  "tunnels.listOfDevice": async ({ device }: Stock) => ({ deviceId: device.deviceId }),
  "tunnels.create": async ({ device }: Stock) => ({ deviceId: device.deviceId, targetPort: 3_000 }),
  "tunnels.list": async () => ({}),
  "tunnels.createGlobal": async () => ({ name: "shop", config: {} }),
  "tunnels.get": aTunnel(),
  "tunnels.update": aTunnel({ name: "renamed" }),
  "tunnels.remove": aTunnel(),
  "tunnels.health": aTunnel(),
  "tunnels.credentials": aTunnel(),
  "tunnels.rotateCredentials": aTunnel(),
  "tunnels.connections": aTunnel(),
  "tunnels.enter": aTunnel(),
};
