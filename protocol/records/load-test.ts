// The record of a tenant's load test, as the interface says, with our own facts inside of its results.
import { z } from "zod";
import { TenantId } from "../kit/ids.ts";

const Timestamp = z.iso.datetime();
const Latency = z.object({ p50: z.number(), p95: z.number(), p99: z.number(), max: z.number() });

export const LoadTestConfiguration = z.object({
  duration: z.number().describe("Seconds."),
  concurrency: z.number(),
  endpoints: z.array(z.string()),
});

export const LoadTestResults = z.object({
  outcome: z.enum(["running", "finished", "canceled", "unauthorized", "failed"]),
  reason: z.string().optional(),
  progress: z.number().min(0).max(1),
  finishedAt: Timestamp.optional(),
  requests: z.int(),
  failed: z.int(),
  requestsPerSecond: z.number(),
  latencyMs: Latency,
  errors: z.record(z.string(), z.int()).describe("How often each error code came."),
  endpoints: z.array(z.object({ endpoint: z.string(), operation: z.string(), requests: z.int(), failed: z.int(), latencyMs: Latency })),
});
export type LoadTestResults = z.infer<typeof LoadTestResults>;

export const LoadTest = z.object({
  status: z.enum(["not_started", "running", "completed"]),
  tenantId: TenantId,
  lastRun: Timestamp.nullable(),
  results: LoadTestResults.nullable(),
  configuration: LoadTestConfiguration,
});
export type LoadTest = z.infer<typeof LoadTest>;

export const LoadTestInput = {
  duration: z.int().min(1).max(300).default(30).describe("Seconds."),
  concurrency: z.int().min(1).max(100).default(10).describe("Calls at once."),
  endpoints: z
    .array(
      z
        .string()
        .max(1_024)
        .regex(/^\/[\x21-\x7e]*$/, "must be a path of this API, such as /v1/devices?pageSize=20"),
    )
    .min(1)
    .max(20)
    .default(["/v1/devices"])
    .describe("Paths of GET operations, with their query, which are called in turn."),
};
