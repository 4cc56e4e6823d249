// Tells a new agent where to open its socket, and how to spread a fleet's start.
import { z } from "zod";

export const ConnectPlan = z.object({
  url: z.url().describe("Where the agent opens its socket."),
  coldStartMs: z
    .int()
    .describe("After a start the agent waits a random time of up to this many milliseconds before it connects, because a whole fleet may be starting."),
});
export const connectTo = (url: string): z.infer<typeof ConnectPlan> => ({ url, coldStartMs: 30_000 });
