// What an agent reports to have happened on its device.
import { z } from "zod";
import { Moment } from "../../kit/bounds.ts";

export const MAX_AGENT_EVENTS = 100;
const MAX_DETAILS_CHARACTERS = 4_096;

export const AgentEventSeverity = z.enum(["info", "warning", "critical"]);

export const AgentEvent = z.strictObject({
  type: z
    .string()
    .regex(/^[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*$/)
    .max(64)
    .describe("The agent's own word, such as `disk.smart_failure`."),
  severity: AgentEventSeverity,
  timestamp: Moment.describe("When it happened, by the device's clock."),
  details: z
    .record(z.string().max(128), z.unknown())
    .refine((details) => JSON.stringify(details).length <= MAX_DETAILS_CHARACTERS, `must have at most ${MAX_DETAILS_CHARACTERS} characters as JSON`)
    .default({}),
});
export type AgentEvent = z.output<typeof AgentEvent>;
