// Lines of apps' logs: as viewers get them, and as agents send them.
import { z } from "zod";

export const MAX_TAIL = 1_000;
/** The longest text of a line; the rest is cut off. */
export const MAX_LINE_BYTES = 16_384;
export const MAX_CHUNK_BYTES = 262_144;
/** Ends a line that was cut. */
export const CUT_MARK = " … (cut)";

export const LogLine = z.object({
  at: z.iso.datetime().describe("When the app wrote it, by the device's clock."),
  stream: z.enum(["stdout", "stderr"]),
  text: z.string(),
});
export type LogLine = z.output<typeof LogLine>;

export const LogTail = z.object({
  lines: z.array(LogLine).describe("Oldest first, with the app's secrets masked by the agent."),
  truncated: z.boolean().describe("Older lines are left out, so that the answer stays small."),
});
export type LogTail = z.output<typeof LogTail>;

/**
 * Why no lines come, or may be missing. `not_installed`: the app is not on its device, and the stream ends; `device_offline`: they come when the device is
 * back; `refused`: the agent does not send them, and is asked again; `nodes_apart`: the gateway's nodes do not reach each other, so lines may be missing.
 */
export const LOG_NOTICES = ["not_installed", "device_offline", "refused", "nodes_apart"] as const;

export const LogBatch = z.object({
  lines: z.array(LogLine),
  skipped: z.int().min(0).describe("Lines that are missing before these: more came than the viewer or the agent could send."),
  notice: z.enum(LOG_NOTICES).nullable().describe("Why no lines come. Repeated only when it changes; `null` when they come (again)."),
});
export type LogBatch = z.output<typeof LogBatch>;
export type LogNotice = (typeof LOG_NOTICES)[number];

/** The first line of what an agent sends. */
export const LogChunkHead = z.object({
  followId: z.string().min(1).max(64),
  n: z.int().min(1).max(2_147_483_647).describe("1 for the first chunk of a `followId`, then one more for each. A chunk that is sent again keeps its number."),
  skipped: z.int().min(0).max(2_147_483_647).default(0).describe("Lines that the agent left out before these."),
  done: z.boolean().default(false).describe("Nothing follows for this `followId`."),
  truncated: z.boolean().default(false).describe("Of a log's end: older lines are left out, to keep it small."),
});
export type LogChunkHead = z.output<typeof LogChunkHead>;
