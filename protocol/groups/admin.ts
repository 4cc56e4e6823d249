// Operations for the people who run the installation: list the gateway nodes and drain one.
import { z } from "zod";
import { group, mutation, query } from "../kit/operation.ts";

const Timestamp = z.iso.datetime();
export const GatewayNode = z.object({
  nodeId: z.string(),
  address: z.string().describe("The public URL that the node announces."),
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  startedAt: Timestamp,
  seenAt: Timestamp,
  draining: z.boolean(),
  overloaded: z.boolean().describe("True while the node is overloaded and refuses new agents."),
  connections: z.int().describe("Open agent sockets."),
  ready: z.int().describe("Sockets whose agent has completed the handshake."),
});
export type GatewayNode = z.infer<typeof GatewayNode>;

const common = { auth: ["user"], permission: "platform", tenancy: "none" } as const;

export const admin = group({
  tag: "Administration",
  operations: {
    listNodes: query({
      ...common,
      summary: "List the live gateway nodes",
      rest: ["GET /admin/nodes"],
      list: "plain",
      input: z.strictObject({}),
      output: z.object({ items: z.array(GatewayNode) }),
    }),
    drainNode: mutation({
      ...common,
      summary: "Drain a node",
      description: "The node stops accepting sockets, reports that it is not ready, and moves its agents to other nodes. It keeps running until you stop it.",
      rest: ["POST /admin/nodes/{nodeId}/drain"],
      input: z.strictObject({ nodeId: z.string().min(1).max(64).describe("The node's id, as in the list of nodes.") }),
      output: GatewayNode,
      errors: ["NODE_NOT_FOUND"],
    }),
  },
});
