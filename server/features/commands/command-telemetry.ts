// Commands as operators see them: durations for the metrics page and, for a command that carries a trace, a log line and a span per step.
// A command is created within the call that queued it; delivery, acknowledgement and end stand in traces of their own that link to that call.
import { isOpen } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { isSampled, type PastSpan, type Tracing, traceIdOf } from "../../core/ports/trace.ts";
import type { Log } from "../../platform/telemetry/log.ts";
import type { Instant } from "./state.ts";
import type { CommandRow } from "./store/rows.ts";
import type { Transition } from "./transitions.ts";

/** Durations in seconds. */
export interface CommandMeters {
  delivered(channel: "ws" | "poll", seconds: number): void;
  acknowledged(seconds: number): void;
  ended(seconds: number): void;
  redelivered(cause: RedeliveryCause): void;
  late(): void;
  rescued(commands: number): void;
}

/** `polled_again`: the agent polled again without acknowledging the commands that it had received. */
export type RedeliveryCause = "ack_timeout" | "write_refused" | "session_lost" | "agent_lost_state" | "polled_again";

export interface CommandTelemetry {
  /** Call every method after commit. */
  created(row: CommandRow): void;
  saw(transition: Transition): void;
  polledAgain(): void;
  /** The sweep found something for these devices; their next claim, until the next sweep, counts as rescued. */
  swept(deviceIds: readonly string[]): void;
  /** So many commands were claimed for a device. */
  claimed(deviceId: string, commands: number): void;
}

export interface CommandTelemetryDeps {
  readonly clock: Pick<Clock, "now">;
  readonly tracing?: Tracing | null | undefined;
  readonly meters?: CommandMeters | undefined;
  readonly log?: Pick<Log, "info"> | undefined;
}

const FAILED: ReadonlySet<string> = new Set(["failed", "rejected", "expired", "timed_out", "undeliverable"]);

type Part = Pick<PastSpan, "name" | "within" | "startMs" | "endMs">;

const partsOf = ({ row, from, step }: Transition, now: Instant): readonly Part[] => {
  const { status, issuedAt, availableAt, sentAt, ackAt, finishedAt } = row;
  if (status === from) return [];
  if (status === "sent" && sentAt !== null) return [{ name: "command deliver", within: false, startMs: Math.max(issuedAt, availableAt), endMs: sentAt }];
  if (step.patch.ackStatus !== undefined) return [{ name: "command ack", within: false, startMs: sentAt ?? issuedAt, endMs: ackAt ?? now }];
  return isOpen(status) ? [] : [{ name: "command end", within: false, startMs: sentAt ?? issuedAt, endMs: finishedAt ?? now }];
};

const createSpans = (tracing: Tracing | null, now: () => Instant) => {
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

const ignore = (): void => undefined;
const noMeters: CommandMeters = { delivered: ignore, acknowledged: ignore, ended: ignore, redelivered: ignore, late: ignore, rescued: ignore };

const secondsBetween = (from: Instant, to: Instant): number => Math.max(0, to - from) / 1_000;

const causeOf = ({ row, step }: Transition): RedeliveryCause => {
  if (step.code === "SESSION_LOST") return "session_lost";
  if (step.code === "AGENT_LOST_STATE") return "agent_lost_state";
  return row.sentAt === null ? "write_refused" : "ack_timeout";
};

export const createCommandTelemetry = ({ meters = noMeters, log, tracing = null, clock }: CommandTelemetryDeps): CommandTelemetry => {
  const spans = createSpans(tracing, () => clock.now().getTime());
  const found = new Set<string>();

  const measure = (transition: Transition): void => {
    const { row, from, step } = transition;
    const { sentAt, ackAt, finishedAt } = row;
    if (step.code === "LATE_RESULT" || step.code === "LATE_OUTCOME") meters.late();
    if (row.status === from) return;
    if (row.status === "queued") meters.redelivered(causeOf(transition));
    // A later delivery measures how long the agent was silent, not how fast we are.
    if (row.status === "sent" && row.attempt === 1 && row.channel !== null && sentAt !== null)
      meters.delivered(row.channel, secondsBetween(dueAt(row), sentAt));
    if (from === "sent" && step.patch.ackStatus !== undefined && sentAt !== null && ackAt !== null) meters.acknowledged(secondsBetween(sentAt, ackAt));
    if (!isOpen(row.status) && step.patch.ackStatus !== undefined && finishedAt !== null) meters.ended(secondsBetween(dueAt(row), finishedAt));
  };

  const logAndTrace = ({ row, from, step }: Transition): void => {
    const { traceparent, commandId, deviceId, tenantId, status, attempt, channel } = row;
    if (traceparent === null || (status === from && step.code === null)) return;
    log?.info({ traceId: traceIdOf(traceparent), traceparent, commandId, deviceId, tenantId, from, to: status, attempt, channel, code: step.code }, "command");
  };

  return {
    created: spans.created,
    saw: (transition) => {
      spans.saw(transition);
      measure(transition);
      logAndTrace(transition);
    },
    polledAgain: () => meters.redelivered("polled_again"),
    swept: (deviceIds) => {
      found.clear();
      for (const deviceId of deviceIds) found.add(deviceId);
    },
    claimed: (deviceId, commands) => {
      if (found.delete(deviceId) && commands > 0) meters.rescued(commands);
    },
  };
};

/** A held-back command is due when its time comes, a redelivered one since it was issued. */
const dueAt = ({ attempt, availableAt, issuedAt }: CommandRow): Instant => (attempt <= 1 ? Math.max(issuedAt, availableAt) : issuedAt);
