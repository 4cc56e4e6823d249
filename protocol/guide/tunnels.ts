// Guide to tunnels.
import type { Guide } from "./guide.ts";
import { AT, IDS, LATER, shownWithActors } from "./records.ts";

const tunnelId = "tun_01J9ZQ6B8D0F2H4K6M8P0R2T4W";
const { deviceId } = IDS;
const token = "mtt_0kX3vq8Zr5c1mT7yB2nW9eLdJfHsAgQpUiOoKlMzXv4";
const created = {
  tunnelId,
  id: tunnelId,
  tenantId: IDS.tenantId,
  deviceId,
  appId: null,
  name: "shop",
  hostname: "shop-9f2c41aa.tunnels.example.org",
  url: "https://shop-9f2c41aa.tunnels.example.org/",
  status: "pending",
  protocol: "http",
  service: "http://127.0.0.1:3000",
  targetPort: 3_000,
  port: null,
  access: { mode: "private", allow: [], tokenHint: "MzXv" },
  hostHeader: "preserve",
  limits: { requestsPerMinute: null, connections: null, idleSeconds: null },
  expiresAt: null,
  health: "inactive",
  failure: null,
  usage: { requests: 0, bytesIn: 0, bytesOut: 0, lastUsedAt: null },
  createdBy: `user:${IDS.userId}`,
  version: 1,
  createdAt: AT,
  updatedAt: AT,
};
const active = { ...created, status: "active", health: "healthy", updatedAt: LATER };
const { deviceId: _, ...withoutDevice } = created;
const page = { items: [shownWithActors(active)], total: 1 };
const credentials = { tunnelId, token, accountTag: IDS.tenantId };

export const tunnels: Guide<"tunnels"> = {
  listOfDevice: { description: "Lists the tunnels of a device, newest first.", input: { deviceId }, output: page },
  create: {
    description:
      "Opens a way from outside to a service of the device: to its port `targetPort`, to an app, or to any `service` that its agent allows. Nobody but members with `tunnel:use` gets in unless `access` says so; `public` needs `tunnel:publish`. With the protocol `tcp` the tunnel gets a `port` of the edge, if the installation has `TUNNEL_TCP_PORTS`, and asks for addresses in `access.allow` unless it is `public`. The tunnel is `pending` until the device's agent has reached the service.",
    input: { deviceId, name: "shop", targetPort: 3_000, protocol: "http" },
    output: created,
  },
  list: { description: "Lists all tunnels, newest first.", input: {}, output: page },
  createGlobal: {
    description: "Makes a tunnel without a device. Whoever has its token serves it: `npm run connector -- --token TOKEN --service URL`.",
    input: { name: "shop", config: { access: { mode: "token" } } },
    output: { ...withoutDevice, access: { ...created.access, mode: "token" } },
  },
  get: { description: "Returns the tunnel, with its address and whether it can be reached.", input: { tunnelId }, output: shownWithActors(active) },
  update: {
    description: "Changes a tunnel. `status: stopped` ends it for visitors at once, `active` starts it again.",
    input: { tunnelId, status: "stopped" },
    output: { ...active, status: "stopped", health: "inactive", version: 2 },
  },
  remove: { description: "Deletes a tunnel. Its host name is free again.", input: { tunnelId } },
  health: {
    description: "Says whether anything serves the tunnel now, and whether it reached the service when it last tried.",
    input: { tunnelId },
    output: { tunnelId, healthy: true, state: "healthy", service: "reachable", lastSeen: LATER, connections: 1 },
  },
  credentials: { description: "Shows the tunnel's token. Reading it is recorded in the audit log.", input: { tunnelId }, output: credentials },
  rotateCredentials: {
    description: "Gives the tunnel a new token. Visitors and connectors with the old one are out.",
    input: { tunnelId },
    output: credentials,
  },
  connections: {
    description: "Lists the connections over which visitors of the tunnel are served: that of its device's agent, or those of connectors.",
    input: { tunnelId },
    output: { items: [{ id: IDS.sessionId, nodeId: IDS.nodeId, openedAt: AT, clientVersion: null, kind: "raw" }] },
  },
  enter: {
    description: "Sends a browser into a private tunnel: the code in the address is good for a minute and becomes a cookie of the tunnel's host.",
    input: { tunnelId, path: "/" },
    output: { location: `${created.url}.mooring/enter?code=eyJraW5kIjoiY29kZSJ9.2cQ&path=%2F` },
  },
};
