// Provokes the error codes of tunnels and mesh routes.

import { meshRouteBody } from "./samples/tunnels.ts";
import { own, type Scenario } from "./scenario.ts";

const tunnelsOf = ({ stock }: Parameters<Scenario>[0]): string => `/devices/${stock.device.deviceId}/tunnels`;

export const TUNNEL_SCENARIOS = {
  TUNNEL_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/tunnels/tun_unknown")),
  TUNNEL_SERVICE_INVALID: (at, probe) => probe(own(at, "POST", tunnelsOf(at), { body: { service: "http://169.254.169.254/" } })),
  TUNNEL_TARGET_REQUIRED: (at, probe) => probe(own(at, "POST", tunnelsOf(at), { body: { name: "nowhere" } })),
  TUNNEL_HOSTNAME_TAKEN: async (at, probe) => {
    const body = { targetPort: 3_000, hostname: "taken" };
    await at.world.call(at.stock.owner, "POST", `/v1${tunnelsOf(at)}`, { body });
    await probe(own(at, "POST", tunnelsOf(at), { body }));
  },
  MESH_ROUTE_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/mesh-routes/mrt_unknown")),
  MESH_NETWORK_NOT_ALLOWED: (at, probe) => probe(own(at, "POST", "/mesh-routes", { body: { ...meshRouteBody(at.stock), network: "169.254.0.0/16" } })),
  MESH_ROUTER_REQUIRED: (at, probe) => probe(own(at, "POST", "/mesh-routes", { body: { ...meshRouteBody(at.stock), routers: [] } })),
  MESH_ROUTE_CONFLICT: async (at, probe) => {
    const body = meshRouteBody(at.stock);
    await at.world.call(at.stock.owner, "POST", "/v1/mesh-routes", { body });
    await probe(own(at, "POST", "/mesh-routes", { body }));
  },
} satisfies Record<string, Scenario>;
