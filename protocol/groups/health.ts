// Health and status: the six records of the interface, with their fields both at top level and under `data`.
import { z } from "zod";
import { group, query } from "../kit/operation.ts";

const Status = z.enum(["healthy", "degraded", "unhealthy"]);
const Timestamp = z.iso.datetime();
export const HealthResponse = z.object({ status: Status, timestamp: Timestamp, version: z.string() });
export const HealthCheckResult = z.object({
  name: z.string(),
  status: Status,
  message: z.string().optional(),
  durationMs: z.number(),
  timestamp: Timestamp,
  details: z.record(z.string(), z.unknown()).optional(),
});
export type HealthCheckResult = z.infer<typeof HealthCheckResult>;
export const FullHealthResponse = z.object({
  overall: Status,
  checks: z.array(HealthCheckResult),
  timestamp: Timestamp,
  uptime: z.number().describe("Milliseconds since the process started."),
  version: z.string(),
});
export const ReadinessResponse = z.object({
  ready: z.boolean(),
  checks: z.array(z.object({ name: z.string(), status: Status, message: z.string().optional().describe("Why the check is not healthy.") })),
  timestamp: Timestamp,
});
export const LivenessResponse = z.object({ alive: z.boolean(), timestamp: Timestamp, uptime: z.number().describe("Milliseconds since the process started.") });
export const Dependency = z.object({ status: Status, message: z.string(), latencyMs: z.number().optional(), configured: z.boolean().optional() });
export type Dependency = z.infer<typeof Dependency>;
export const DeepHealthResponse = z.object({
  status: Status,
  timestamp: Timestamp,
  version: z.string(),
  dependencies: z.object({
    database: Dependency,
    objectStore: Dependency,
    billingProvider: Dependency,
    mail: Dependency,
    agentBinaries: Dependency.optional(),
    sloTracking: Dependency.optional(),
  }),
});

const common = { auth: ["public"], permission: "public", tenancy: "none", limit: "none", flat: true, unwellStatus: 503, input: z.strictObject({}) } as const;

// An unhealthy service answers 503 with the record as its body, not with an error.
export const health = group({
  tag: "Health and Status",
  operations: {
    check: query({ ...common, summary: "Get the service's health", rest: ["GET /health"], output: HealthResponse }),
    full: query({ ...common, summary: "Get every check of this node", rest: ["GET /health/full"], output: FullHealthResponse, limit: "anonymous" }),
    ready: query({ ...common, summary: "Get this node's readiness", rest: ["GET /health/ready", "GET /readyz"], output: ReadinessResponse }),
    live: query({ ...common, summary: "Get this process's liveness", rest: ["GET /health/live", "GET /livez"], output: LivenessResponse }),
    deep: query({ ...common, summary: "Get every dependency's health", rest: ["GET /health/deep"], output: DeepHealthResponse, limit: "anonymous" }),
    status: query({
      ...common,
      summary: "Get the status page",
      rest: ["GET /status"],
      flat: false,
      output: z.object({
        status: Status,
        incidents: z.array(z.object({ title: z.string(), since: Timestamp })),
        components: z.array(z.object({ name: z.string(), status: Status })),
      }),
    }),
  },
});
