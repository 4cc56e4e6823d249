// Frames as text: what came in is named or refused, what goes out is built once.
import { z } from "zod";
import { AgentFrame, Envelope, isRetryable, type ServerFrame, SocketAck } from "../../../protocol/index.ts";
import type { AppError } from "../../core/errors.ts";
import { unstorable } from "../../core/storable.ts";

export type Inbound =
  | { readonly kind: "frame"; readonly frame: AgentFrame }
  /** An ack of which some part is wrong, with the parts that are not: its word is to count. */
  | { readonly kind: "damaged"; readonly id: string; readonly ack: DamagedAck }
  | { readonly kind: "unknown"; readonly op: string; readonly id: string }
  | { readonly kind: "invalid"; readonly id: string | undefined; readonly details: Readonly<Record<string, unknown>> };

export type DamagedAck = Pick<z.output<typeof SocketAck>, "commandId" | "status" | "code" | "output" | "outputTruncated">;

const { commandId: CommandName, status: Status, code: Code } = SocketAck.shape;
/** The word of an ack that has none; nobody says it, so it counts as an unknown one. */
const NO_WORD = "unreadable";

const part = <T extends z.ZodType>(schema: T, value: unknown): z.output<T> | undefined => {
  const read = schema.safeParse(value);
  return read.success && unstorable(read.data) === null ? read.data : undefined;
};

/** What is good of an ack; null when it does not say whose it is. */
const salvage = (data: Readonly<Record<string, unknown>>): DamagedAck | null => {
  const commandId = part(CommandName, data["commandId"]);
  if (commandId === undefined) return null;
  const [code, output] = [part(Code, data["code"]), part(z.unknown(), data["output"])];
  return {
    commandId,
    status: part(Status, data["status"]) ?? NO_WORD,
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
    return undefined; // JSON has no undefined, so the envelope refuses it below
  }
};

/** Never throws, whatever came. */
export const readFrame = (text: string): Inbound => {
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
/** One op with its own data; a union over all of them by default. */
export type Outbound<Op extends ServerFrame["op"] = ServerFrame["op"]> = Op extends ServerFrame["op"]
  ? { readonly op: Op; readonly data: DataOf<Op>; readonly ref?: string | undefined }
  : never;

export const writeFrame = (frame: Outbound, id: string, now: Date): string =>
  JSON.stringify({ op: frame.op, id, ts: now.toISOString(), ref: frame.ref, data: frame.data });

/** The same facts as in an error body. */
export const errorFrame = (error: AppError, ref?: string): Outbound<"error"> => ({
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
