// Guide to mesh routes.
import type { Guide } from "./guide.ts";
import { AT, IDS, LATER, shownWithActors } from "./records.ts";

const routeId = "mrt_01J9ZQ6B8D0F2H4K6M8P0R2T4W";
const { deviceId } = IDS;
const consumer = "dev_01J9ZQ7C9E1G3J5M7P9R1T3V5X";
const created = {
  routeId,
  tenantId: IDS.tenantId,
  name: "plant floor",
  kind: "subnet",
  network: "192.168.10.0/24",
  domains: [],
  host: null,
  port: null,
  routers: [{ deviceId, metric: 100, state: "unknown", reason: null, checkedAt: null }],
  consumers: { deviceIds: [consumer], tags: [], fleetIds: [], all: false },
  transport: "userspace",
  masquerade: true,
  listenPort: null,
  probe: { host: "192.168.10.1", port: 80 },
  enabled: true,
  allowPublic: false,
  approval: "pending",
  decidedBy: null,
  status: "down",
  activeRouter: null,
  since: AT,
  overlaps: [],
  usage: { connections: 0, bytesIn: 0, bytesOut: 0, lastUsedAt: null },
  createdBy: `user:${IDS.userId}`,
  advertisedBy: null,
  version: 1,
  createdAt: AT,
  updatedAt: AT,
};
const approved = {
  ...created,
  routers: [{ deviceId, metric: 100, state: "up", reason: null, checkedAt: LATER }],
  approval: "approved",
  decidedBy: `user:${IDS.userId}`,
  status: "active",
  activeRouter: deviceId,
  since: LATER,
  version: 2,
  updatedAt: LATER,
};
const effective = {
  routeId,
  name: created.name,
  kind: "subnet",
  target: created.network,
  role: "consumer",
  listenPort: null,
  router: deviceId,
  usable: true,
  reason: null,
};

export const meshRoutes: Guide<"meshRoutes"> = {
  list: { description: "Lists mesh routes, newest first.", input: {}, output: { items: [shownWithActors(approved)], total: 1 } },
  create: {
    description:
      "Proposes that some devices, the consumers, reach a network, names or one host by way of other devices, the routers. Nothing is reachable until somebody with `mesh:approve` has approved it. Networks are private and without host bits; anything public needs `allowPublic`, and loopback, link-local and multicast networks are refused with `MESH_NETWORK_NOT_ALLOWED`.",
    input: {
      name: "plant floor",
      kind: "subnet",
      network: "192.168.10.0/24",
      routers: [{ deviceId }],
      consumers: { deviceIds: [consumer] },
      probe: { host: "192.168.10.1", port: 80 },
    },
    output: created,
  },
  get: { description: "Returns the route, with what the last probes through its routers have shown.", input: { routeId }, output: shownWithActors(approved) },
  update: {
    description: "Changes the route. Another network, another router or another consumer waits for approval again, and nobody reaches it until then.",
    input: { routeId, enabled: false },
    output: { ...approved, enabled: false, status: "disabled", activeRouter: null, version: 3 },
  },
  remove: { description: "Deletes the route. Connections through it end within five seconds.", input: { routeId } },
  approve: {
    description: "Lets the consumers in, as soon as a router answers. Name the `version` that you looked at, so that you approve nothing else.",
    input: { routeId, version: 1 },
    output: { ...created, approval: "approved", decidedBy: `user:${IDS.userId}`, version: 2 },
  },
  reject: {
    description: "Keeps the consumers out, or puts them out. A change of network, routers or consumers asks again.",
    input: { routeId },
    output: { ...created, approval: "rejected", decidedBy: `user:${IDS.userId}`, version: 2 },
  },
  peers: {
    description: "Lists the devices that are routers, and whether their agents are connected to the edge.",
    output: { items: [{ deviceId, routes: [routeId], connected: true }] },
  },
  effective: {
    description: "Says what one device gets of all routes: which it may use, by way of which router, and why not.",
    input: { deviceId: consumer },
    output: { items: [effective] },
  },
};
