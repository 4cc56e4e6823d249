// A heartbeat as agents send it over REST.
import { z } from "zod";
import { DeviceStatus } from "./device-events.ts";

const percent = z.number().min(0).max(100);
/** Takes both forms of the interface, also mixed: {status, metrics} and {cpu, memory, disk, timestamp}. */
export const Heartbeat = z
  .object({
    status: DeviceStatus.optional(),
    metrics: z.record(z.string().max(64), z.unknown()).optional(),
    cpu: percent.optional(),
    memory: percent.optional(),
    disk: percent.optional(),
    timestamp: z.iso.datetime({ offset: true }).optional(),
  })
  .refine(
    (beat) => [beat.status, beat.metrics, beat.cpu, beat.memory, beat.disk].some((part) => part !== undefined),
    "at least one of status, metrics, cpu, memory and disk is required",
  )
  .refine((beat) => Object.keys(beat.metrics ?? {}).length <= 64, { path: ["metrics"], message: "at most 64 metrics" });
export type Heartbeat = z.infer<typeof Heartbeat>;
