// Parses the gateway's frames tolerantly: it requires only what the agent needs, so that a newer gateway's additions do no harm.
import { z } from "zod";
import { Envelope } from "../../protocol/index.ts";
import { GivenPlan } from "./plan.ts";

const OptionalText = z.string().optional().catch(undefined);

/** Ids are opaque, new words are allowed, and fields that the agent can do without may be missing. */
const Delivery = z.object({
  seq: z.number().optional().catch(undefined),
  lane: OptionalText,
  expiresAt: z.string().nullish().catch(null),
  executionTimeoutSec: z.number().positive().optional().catch(undefined),
  traceparent: OptionalText,
});
const Command = z.object({
  commandId: z.string().min(1),
  type: z.string(),
  payload: z.record(z.string(), z.unknown()).default({}),
  requiresAck: z.boolean().catch(true),
});
export const Delivered = z.object({ command: Command, delivery: Delivery.default({}) });
export type Delivered = z.infer<typeof Delivered>;
/** A polled command is flat, with `delivery` beside its fields. */
export const Polled = Command.extend({ delivery: Delivery.default({}) }).transform(({ delivery, ...command }): Delivered => ({ command, delivery }));

export const AckAnswer = z.object({ commandId: z.string(), status: z.string().nullable().catch(null), result: z.string().catch("applied") });
export type AckAnswer = z.infer<typeof AckAnswer>;

const frame = <const Op extends string, D extends z.ZodType>(op: Op, data: D) => z.object({ op: z.literal(op), id: OptionalText, ref: OptionalText, data });

const Frame = z.discriminatedUnion("op", [
  frame("welcome", GivenPlan.extend({ nonce: z.string(), sessionId: z.string().catch(""), serverTime: z.string().catch("") })),
  frame("ready", z.object({ reconcile: z.array(z.object({ commandId: z.string(), action: z.string() })).catch([]) })),
  frame("command", Delivered),
  frame("cancel", z.object({ commandId: z.string().min(1), reason: OptionalText })),
  frame("ack_ok", AckAnswer),
  frame("heartbeat_ack", z.object({ resend: z.array(z.string()).catch([]) })),
  frame("config", GivenPlan),
  frame("drain", z.object({ handoff: z.boolean().catch(false), reconnectAfterMs: z.number().min(0).nullable().catch(null) })),
  frame("error", z.unknown()),
]);
export type Frame = z.infer<typeof Frame>;
export type DataOf<Op extends Frame["op"]> = Extract<Frame, { op: Op }>["data"];

type Parsed =
  | { readonly ok: true; readonly frame: Frame }
  | { readonly ok: false; readonly code: string; readonly error: string; readonly ref: string | undefined };
const OPS: ReadonlySet<string> = new Set(Frame.options.map((option) => option.shape.op.value));

/** Ignores unknown fields and reports an unknown op; neither ends the connection. */
export const parseFrame = (text: string): Parsed => {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { ok: false, code: "MALFORMED_JSON", error: "the frame is not JSON", ref: undefined };
  }
  const read = Frame.safeParse(json);
  if (read.success) return { ok: true, frame: read.data };
  const envelope = Envelope.safeParse(json).data;
  if (envelope && !OPS.has(envelope.op)) return { ok: false, code: "UNSUPPORTED_OP", error: `unknown op ${envelope.op}`, ref: envelope.id };
  return { ok: false, code: "VALIDATION_FAILED", error: z.prettifyError(read.error).slice(0, 500), ref: envelope?.id };
};
