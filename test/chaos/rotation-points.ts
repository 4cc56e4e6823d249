// The points of a secret rotation at which an agent may die, and the orders for one that shall.
import { z } from "zod";

/** Around the two things it remembers: what it was offered, and that the gateway has accepted it. */
export const ROTATION_POINTS = ["before-keeping", "after-keeping", "before-confirming", "after-confirming"] as const;
export type RotationPoint = (typeof ROTATION_POINTS)[number];

export const RotationOrders = z.object({
  url: z.string(),
  member: z.object({ deviceId: z.string(), agentId: z.string(), tenantId: z.string(), secret: z.string() }),
  /** Null: it remembers nothing over its death. */
  keys: z.string().nullable(),
  point: z.enum(ROTATION_POINTS).nullable(),
});
export type RotationOrders = z.infer<typeof RotationOrders>;
