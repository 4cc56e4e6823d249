// Guide to the installation's own operations.
import type { Guide } from "./guide.ts";
import { AT, IDS, LATER } from "./records.ts";

const { nodeId } = IDS;
const node = {
  nodeId,
  address: "http://10.0.0.11:8080",
  host: "gateway-1",
  pid: 812,
  version: "0.2.0",
  startedAt: AT,
  seenAt: LATER,
  draining: false,
  overloaded: false,
  connections: 4_210,
  ready: 4_208,
};

export const admin: Guide<"admin"> = {
  listNodes: {
    description: "Lists every node that reported recently, with its sockets and state. Only users named in `ADMIN_USERS` may call this.",
    output: { items: [node] },
  },
  drainNode: { input: { nodeId }, output: { ...node, draining: true } },
};
