// Frames as text: decodes and validates what agents send, encodes what the gateway sends.
import { z } from "zod";
import { AgentFrame, Envelope, isRetryable, type ServerFrame, SocketAck } from "../../../protocol/index.ts";
import type { AppError } from "../../core/errors.ts";
import { unstorable } from "../../core/rows/storable.ts";

export type InboundFrame =
  | { readonly kind: "frame"; readonly frame: AgentFrame }
  /** An ack with an invalid part, reduced to its valid parts: its status still counts. */
  | { readonly kind: "damaged"; readonly id: string; readonly ack: DamagedAck }
  | { readonly kind: "unknown"; readonly op: string; readonly id: string }
  | { readonly kind: "invalid"; readonly id: string | undefined; readonly details: Readonly<Record<string, unknown>> };

export type DamagedAck = Pick<z.output<typeof SocketAck>, "commandId" | "status" | "code" | "output" | "outputTruncated">;

const { commandId: CommandName, status: Status, code: Code } = SocketAck.shape;
/** Stands for a status that cannot be read. No agent sends it, so it counts as an unknown status. */
const NO_STATUS = "unreadable";

const part = <T extends z.ZodType>(schema: T, value: unknown): z.output<T> | undefined => {
  const read = schema.safeParse(value);
  return read.success && unstorable(read.data) === null ? read.data : undefined;
};

/** The valid parts of an ack; null when it names no command. */
const salvage = (data: Readonly<Record<string, unknown>>): DamagedAck | null => {
  const commandId = part(CommandName, data["commandId"]);
  if (commandId === undefined) return null;
  const [code, output] = [part(Code, data["code"]), part(z.unknown(), data["output"])];
  return {
    commandId,
    status: part(Status, data["status"]) ?? NO_STATUS,
    outputTruncated: data["outputTruncated"] === true || (output === undefined && data["output"] !== undefined),
    ...(code === undefined ? {} : { code }),
    ...(output === undefined ? {} : { output }),
  };
};

const OPS: ReadonlySet<string> = new Set(AgentFrame.options.map(({ shape }) => shape.op.value));
const MAX_ISSUES = 10;

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // JSON has no undefined, so it stands for malformed text
  }
};

/** Never throws. */
export const readFrame = (text: string): InboundFrame => {
  const json = parseJson(text);
  if (json === undefined) return { kind: "invalid", id: undefined, details: { reason: "malformed_json" } };
  const problem = unstorable(json);
  const frame = AgentFrame.safeParse(json);
  if (frame.success && problem === null) return { kind: "frame", frame: frame.data };
  const envelope = Envelope.safeParse(json);
  if (!envelope.success) return { kind: "invalid", id: undefined, details: { reason: "bad_envelope" } };
  const { op, id, data } = envelope.data;
  const ack = op === "ack" ? salvage(data) : null;
  if (ack !== null) return { kind: "damaged", id, ack };
  if (problem !== null) return { kind: "invalid", id, details: { reason: "unstorable", problem } };
  if (!OPS.has(op)) return { kind: "unknown", op, id };
  return {
    kind: "invalid",
    id,
    details: {
      reason: "bad_data",
      op,
      issues: (frame.error?.issues ?? []).slice(0, MAX_ISSUES).map(({ path, message }) => ({ path: path.join("."), message })),
    },
  };
};

type DataOf<Op extends ServerFrame["op"]> = Extract<ServerFrame, { op: Op }>["data"];
/** One op with its own data; by default the union over all ops. */
export type OutboundFrame<Op extends ServerFrame["op"] = ServerFrame["op"]> = Op extends ServerFrame["op"]
  ? { readonly op: Op; readonly data: DataOf<Op>; readonly ref?: string | undefined }
  : never;

export const writeFrame = (frame: OutboundFrame, id: string, now: Date): string =>
  JSON.stringify({ op: frame.op, id, ts: now.toISOString(), ref: frame.ref, data: frame.data });

/** Carries the same fields as an error body of the REST API. */
export const errorFrame = (error: AppError, ref?: string): OutboundFrame<"error"> => ({
  op: "error",
  ref,
  data: {
    code: error.code,
    error: error.message,
    retryable: isRetryable(error.code),
    ...(error.retryAfter === undefined ? {} : { retryAfter: error.retryAfter }),
    ...(error.details === undefined ? {} : { details: { ...error.details } }),
  },
});
