// What a new agent is told of its socket.
import { z } from "zod";

export const ConnectPlan = z.object({
  url: z.url().describe("where the agent opens its socket"),
  coldStartMs: z.int().describe("a process that starts waits a random time of up to so many milliseconds before it connects: a whole fleet may start at once"),
});
export const connectTo = (url: string): z.infer<typeof ConnectPlan> => ({ url, coldStartMs: 30_000 });
