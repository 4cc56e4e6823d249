// For those who run the installation, not for tenants: which gateway nodes there are, and sending one away.
import { z } from "zod";
import { group, mutation, query } from "../kit/operation.ts";

const Timestamp = z.iso.datetime();
export const GatewayNode = z.object({
  nodeId: z.string(),
  address: z.string().describe("where others reach it"),
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  startedAt: Timestamp,
  seenAt: Timestamp,
  draining: z.boolean(),
  overloaded: z.boolean().describe("has more than it can do, and takes no agents in"),
  connections: z.int().describe("open sockets"),
  ready: z.int().describe("sockets whose agent has proven itself"),
});
export type GatewayNode = z.infer<typeof GatewayNode>;

const common = { auth: ["user"], permission: "platform", tenancy: "none" } as const;

export const admin = group({
  tag: "Administration",
  operations: {
    listNodes: query({
      ...common,
      summary: "List the gateway nodes that live",
      rest: ["GET /admin/nodes"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(GatewayNode) }),
    }),
    drainNode: mutation({
      ...common,
      summary: "Send a node's agents elsewhere",
      description: "The node takes no new sockets and says that it is not ready. It keeps running until it is stopped.",
      rest: ["POST /admin/nodes/{nodeId}/drain"],
      input: z.strictObject({ nodeId: z.string().min(1).max(64).describe("as in the list of nodes") }),
      output: GatewayNode,
      errors: ["NODE_NOT_FOUND"],
    }),
  },
});
