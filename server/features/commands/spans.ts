// The life of a command as spans: created within the call that queued it; delivered, acknowledged and given up in traces that link to that call.
import { isOpen } from "../../../protocol/index.ts";
import { isSampled, type PastSpan, type Tracing } from "../../core/trace.ts";
import type { Instant } from "./state.ts";
import type { CommandRow } from "./store/rows.ts";
import type { Transition } from "./transitions.ts";

const FAILED: ReadonlySet<string> = new Set(["failed", "rejected", "expired", "timed_out", "undeliverable"]);

type Part = Pick<PastSpan, "name" | "within" | "startMs" | "endMs">;

const partsOf = ({ row, from, step }: Transition, now: Instant): readonly Part[] => {
  const { status, issuedAt, availableAt, sentAt, ackAt, finishedAt } = row;
  if (status === from) return [];
  if (status === "sent" && sentAt !== null) return [{ name: "command deliver", within: false, startMs: Math.max(issuedAt, availableAt), endMs: sentAt }];
  if (step.patch.ackStatus !== undefined) return [{ name: "command ack", within: false, startMs: sentAt ?? issuedAt, endMs: ackAt ?? now }];
  return isOpen(status) ? [] : [{ name: "command end", within: false, startMs: sentAt ?? issuedAt, endMs: finishedAt ?? now }];
};

export const createSpans = (tracing: Tracing | null, now: () => Instant) => {
  const record = (row: CommandRow, parts: readonly Part[]): void => {
    const { traceparent, commandId, deviceId, tenantId, type, status, channel, attempt, failureCode } = row;
    if (tracing === null || traceparent === null || !isSampled(traceparent)) return;
    for (const part of parts)
      tracing.record({
        ...part,
        cause: traceparent,
        failed: FAILED.has(status),
        attributes: {
          "mooring.command_id": commandId,
          "mooring.command_type": type,
          "mooring.command_status": status,
          "mooring.device_id": deviceId,
          "mooring.tenant_id": tenantId,
          "mooring.channel": channel,
          "mooring.attempt": attempt,
          "error.type": failureCode,
        },
      });
  };
  return {
    created: (row: CommandRow): void => record(row, [{ name: "command create", within: true, startMs: row.issuedAt, endMs: now() }]),
    saw: (transition: Transition): void => record(transition.row, partsOf(transition, now())),
  };
};
