// The points of a secret rotation at which an agent may die, and the orders for such an agent.
import { z } from "zod";

/** Before and after the two writes: storing the offered secret, and storing that the gateway accepted it. */
export const ROTATION_POINTS = ["before-keeping", "after-keeping", "before-confirming", "after-confirming"] as const;
export type RotationPoint = (typeof ROTATION_POINTS)[number];

export const RotationOrders = z.object({
  url: z.string(),
  member: z.object({ deviceId: z.string(), agentId: z.string(), tenantId: z.string(), secret: z.string() }),
  /** Null if the agent remembers nothing after its death. */
  keys: z.string().nullable(),
  point: z.enum(ROTATION_POINTS).nullable(),
});
export type RotationOrders = z.infer<typeof RotationOrders>;
