// History of what devices report, in buckets: a tenant's, a device's and an app's.
import { z } from "zod";
import { AppId, DeviceId, TenantId } from "../kit/ids.ts";

const UNIT_SECONDS: ReadonlyMap<string, number> = new Map([
  ["m", 60],
  ["h", 3_600],
  ["d", 86_400],
]);
const HOUR = 3_600;

/** Seconds of a range such as `24h`. */
export const rangeSeconds = (range: string): number => Number.parseInt(range, 10) * (UNIT_SECONDS.get(range.slice(-1)) ?? 0);

const rangeUpTo = (longest: string) =>
  z
    .string()
    .regex(/^\d{1,3}[mhd]$/, "must be a number with m, h or d")
    .refine((range) => rangeSeconds(range) >= HOUR && rangeSeconds(range) <= rangeSeconds(longest), `must lie between 1h and ${longest}`)
    .default("24h")
    .describe(`How far back, from 1h to ${longest}: a number of minutes (\`m\`), hours (\`h\`) or days (\`d\`).`);
export const MetricRange = rangeUpTo("90d");
export const AppMetricRange = rangeUpTo("24h");

const Figure = z.object({ avg: z.number(), max: z.number() });
const figures = {
  cpu: Figure.optional().describe("Percent; missing if nobody reported it."),
  memory: Figure.optional(),
  disk: Figure.optional(),
};

export const TENANT_METRICS = ["health", "activity", "resources"] as const;
export const TenantMetrics = z.object({
  metric: z.enum(TENANT_METRICS),
  tenantId: TenantId,
  range: z.string(),
  buckets: z.array(
    z.object({
      timestamp: z.iso.datetime().describe("Begin of the bucket."),
      count: z.number().describe("`health`: the most devices that reported within one minute. `activity`: events. `resources`: samples."),
      ...figures,
    }),
  ),
  summary: z.record(z.string(), z.unknown()),
});
export type TenantMetrics = z.infer<typeof TenantMetrics>;

export const DeviceMetrics = z.object({
  deviceId: DeviceId,
  range: z.string(),
  bucketSeconds: z.int(),
  buckets: z.array(z.object({ timestamp: z.iso.datetime(), count: z.int().describe("Samples, at most one a minute."), ...figures })),
});
export type DeviceMetrics = z.infer<typeof DeviceMetrics>;

export const AppMetrics = z.object({
  appId: AppId,
  range: z.string(),
  bucketSeconds: z.int(),
  buckets: z.array(
    z.object({
      timestamp: z.iso.datetime().describe("Begin of the bucket."),
      count: z.int().describe("Samples, at most one a minute."),
      cpuPercent: Figure.optional().describe("Of one core; missing if nobody reported it."),
      memoryBytes: Figure.optional(),
      responseMs: Figure.optional().describe("Of health checks by HTTP."),
    }),
  ),
});
export type AppMetrics = z.infer<typeof AppMetrics>;
