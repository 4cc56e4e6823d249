// The installation's own operations, explained.
import type { Guide } from "./guide.ts";
import { AT, IDS, LATER } from "./records.ts";

const { nodeId } = IDS;
const node = {
  nodeId,
  address: "http://10.0.0.11:8080",
  host: "gateway-1",
  pid: 812,
  version: "0.1.0",
  startedAt: AT,
  seenAt: LATER,
  draining: false,
  overloaded: false,
  connections: 4_210,
  ready: 4_208,
};

export const admin: Guide<"admin"> = {
  listNodes: { description: "For the users named in `ADMIN_USERS`: every node that was heard lately, and what it holds.", output: { items: [node] } },
  drainNode: { input: { nodeId }, output: { ...node, draining: true } },
};
