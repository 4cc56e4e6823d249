// The state machine of a command, redelivery backoff included: one pure function from a row and an event to the change, or null for no change.
// T-numbers are rows of the state table in docs/commands.md. Every open state leaves here with a deadline; the database checks it too.
import { type AckStatus, type CommandStatus, isOpen } from "../../../protocol/index.ts";
import { unreachable } from "../../core/errors.ts";
import { acknowledge, isSoftTerminal } from "./rules-ack.ts";
import type { AckEvent, Circumstances, CommandEvent, CommandFacts, CommandState, Instant, Patch, SettledEvent, SettledSession, Step } from "./state.ts";

/** The gateway refuses a cancellation with this code for an agent without `cancel.v1`. */
export const CANCEL_UNSUPPORTED = "CANCEL_UNSUPPORTED";

export const decide = (row: CommandFacts, event: CommandEvent, at: Circumstances): Step | null => {
  switch (event.kind) {
    case "claimed":
      return claimed(row, event, at);
    case "refused":
      return row.status === "sent" && row.sessionEpoch === event.epoch
        ? step({ ...waiting(row), attempt: row.attempt - 1, availableAt: at.now, sentAt: null })
        : null; // T4
    case "written":
      return row.status === "sent" && !row.requiresAck && wasCarriedBy(row, event.epoch) ? ended("delivered", null, at) : null; // T5
    case "ack":
      return acknowledge(row, event, at);
    case "deadline":
      return pastDeadline(row, at);
    case "settled":
      return settled(row, event, at);
    case "cancel":
      return canceled(row, event, at);
    case "reset":
      return isOpen(row.status) ? ended("canceled", "DEVICE_RESET", at, { cancelReason: event.reason }) : null; // T24
    default:
      return unreachable(event);
  }
};

/** T1: a new row waits until it expires. */
export const created = (availableAt: Instant, expiresAt: Instant | null): Pick<CommandState, "status" | "availableAt" | "deadlineAt" | "attempt"> => ({
  status: "queued",
  availableAt,
  deadlineAt: expiresAt ?? Infinity,
  attempt: 0,
});

// T2, T3. SQL claims for polls (store/claim.ts); a test checks that both agree.
type Claim = Extract<CommandEvent, { kind: "claimed" }>;
const claimed = (row: CommandFacts, event: Claim, at: Circumstances): Step | null => {
  const { channel, epoch, nodeId, at: now = at.now } = event;
  const { timings } = at;
  if (row.status !== "queued" || row.availableAt > now || isExpired(row, now)) return null;
  const waitMs = channel === "ws" ? timings.ackTimeoutMs : timings.pollLeaseMs;
  return step({ ...carriedBy(row, { channel, epoch, nodeId }, now), status: "sent", deadlineAt: Math.min(now + waitMs, row.expiresAt ?? Infinity) });
};

const carriedBy = (
  row: CommandFacts,
  { channel, epoch, nodeId }: Pick<Claim, "channel" | "epoch"> & { readonly nodeId: string | null },
  now: Instant,
): Patch => ({
  attempt: row.attempt + 1,
  channel,
  sessionEpoch: epoch,
  nodeId,
  sentAt: now,
});

// A handoff may have given the row to the next session meanwhile.
const wasCarriedBy = (row: CommandFacts, epoch: number | null): boolean =>
  epoch === null ? row.channel === "poll" : row.sessionEpoch !== null && row.sessionEpoch >= epoch;

const pastDeadline = (row: CommandFacts, at: Circumstances): Step | null => {
  if (row.deadlineAt === null || row.deadlineAt > at.now) return null;
  switch (row.status) {
    case "queued":
      return ended("expired", "EXPIRED_BEFORE_DELIVERY", at); // T14
    case "sent":
      return unacknowledged(row, at);
    case "acknowledged":
    case "running":
      return ended("timed_out", "EXECUTION_TIMED_OUT", at); // T15
    case "canceling":
      return ended("canceled", "CANCEL_UNCONFIRMED", at); // T21
    default:
      return null;
  }
};

const unacknowledged = (row: CommandFacts, at: Circumstances): Step | null => {
  if (isExpired(row, at.now)) return ended("expired", "EXPIRED_UNACKED", at); // T14
  // Without acks a command is sent at most once, and its delivery stays unknown.
  if (!row.requiresAck) return ended("undeliverable", "DELIVERY_UNKNOWN", at);
  // The session that carried it is gone, and running twice would harm: only the next hello can tell whether the agent has it (T11, T13).
  const carrierGone = row.channel === "ws" && row.liveEpoch !== row.sessionEpoch;
  if (!row.redeliverSafe && carrierGone) return step({ deadlineAt: row.expiresAt ?? Infinity });
  // A poller comes back by itself, so its interval is the pause.
  return redelivered(row, at, row.channel === "poll" ? 0 : backoffMs(row.attempt, at), null); // T10, T12
};

// The session may still work on it, so until the next attempt the command keeps its place among those that are in flight.
const redelivered = (row: CommandFacts, at: Circumstances, delayMs: number, code: string | null): Step =>
  row.attempt >= row.maxAttempts
    ? ended("undeliverable", "DELIVERY_ATTEMPTS_EXCEEDED", at) // T12
    : step({ ...waiting(row), sessionEpoch: row.liveEpoch === row.sessionEpoch ? row.sessionEpoch : null, availableAt: at.now + delayMs }, code);

const backoffMs = (attempt: number, { jitter, timings }: Circumstances): number => {
  const steps = timings.redeliveryBackoffMs;
  const base = steps[Math.min(Math.max(attempt, 1), steps.length) - 1] ?? 0;
  return Math.round(base * (0.8 + jitter * 0.4));
};

/** A new session has begun: the agent has what it lists. An agent that lists everything has lost the rest. */
const settled = (row: CommandFacts, event: SettledEvent, at: Circumstances): Step | null => {
  if (row.status === "canceling") return event.cancels || event.listedAs !== null ? pressedCancel(row, at) : unstoppable(row, at);
  if (row.status !== "queued" && row.status !== "sent" && row.status !== "acknowledged" && row.status !== "running") return null;
  if (event.listedAs !== null) return held(row, event, at);
  if (row.status === "acknowledged" || row.status === "running") return event.listsAll ? forgotten(row, at) : null; // T25
  if (row.status === "queued" || row.channel !== "ws" || row.sessionEpoch === null || row.sessionEpoch >= event.epoch) return null;
  if (event.handoff) return step({ sessionEpoch: event.epoch }, "HANDED_OVER");
  if (isExpired(row, at.now)) return ended("expired", "EXPIRED_UNACKED", at);
  if (!row.requiresAck || (!row.redeliverSafe && !event.journal)) return ended("undeliverable", "DELIVERY_UNKNOWN", at); // T13
  return redelivered(row, at, 0, "SESSION_LOST"); // T11
};

// A finished one counts as received here: its result follows as an ack of its own.
const held = (row: CommandFacts, event: SettledEvent, at: Circumstances): Step | null =>
  acknowledge(row, bareAck(event.listedAs === "running" ? "running" : "received"), at); // T6, T7

const bareAck = (word: AckStatus, code: string | null = null): AckEvent => ({
  kind: "ack",
  word,
  raw: word,
  output: undefined,
  outputTruncated: false,
  code,
  progress: null,
  refused: null,
});

const forgotten = (row: CommandFacts, at: Circumstances): Step =>
  row.redeliverSafe && row.attempt < row.maxAttempts && !isExpired(row, at.now)
    ? step({ ...waiting(row), availableAt: at.now }, "AGENT_LOST_STATE")
    : ended("failed", "AGENT_LOST_STATE", at);

// T19, T21: the agent cannot stop anything. A command that it may not have is not delivered again; one that it works on goes on.
const unstoppable = (row: CommandFacts, at: Circumstances): Step | null =>
  row.cancelPrevStatus === "sent" ? ended("canceled", "CANCEL_UNCONFIRMED", at) : acknowledge(row, bareAck("cancel_rejected", CANCEL_UNSUPPORTED), at);

// The hello repeats the order to cancel; from then on the agent has the usual time to answer.
const pressedCancel = (row: CommandFacts, { now, timings }: Circumstances): Step | null =>
  (row.deadlineAt ?? Infinity) > now + timings.cancelTimeoutMs ? step({ deadlineAt: now + timings.cancelTimeoutMs }) : null;

const canceled = (row: CommandFacts, event: Extract<CommandEvent, { kind: "cancel" }>, at: Circumstances): Step | null => {
  if (!isOpen(row.status)) return null;
  const asked: Patch = { cancelRequestedAt: row.cancelRequestedAt ?? at.now, cancelReason: event.reason ?? row.cancelReason };
  if (row.status === "queued" && !mayBeSent(row, event.settled, at.now)) return ended("canceled", null, at, asked); // T16
  if (event.force) return ended("canceled", "CANCEL_UNCONFIRMED", at, asked); // T21
  if (row.status === "canceling") return null;
  const deadlineAt =
    row.liveEpoch === null
      ? Math.max(at.now + at.timings.cancelTimeoutMs, row.expiresAt ?? at.now + at.timings.cancelOfflineMs)
      : at.now + at.timings.cancelTimeoutMs;
  const asking: Patch = { status: "canceling", deadlineAt, ...asked };
  if (row.status !== "queued") return step({ ...asking, cancelPrevStatus: row.status }); // T17
  // Its node could not be asked whether it was sent, so that attempt counts: a later one must not bear its number.
  return step({ ...asking, ...carriedBy(row, { channel: "ws", epoch: row.liveEpoch, nodeId: null }, at.now), cancelPrevStatus: "sent" }); // T17
};

/** Whether a node may keep it in hand (sending/unwritten-sends.ts): sent to the agent, and not yet written. */
export const isWrittenLater = ({ redeliverSafe, requiresAck }: Pick<CommandFacts, "redeliverSafe" | "requiresAck">): boolean => redeliverSafe && requiresAck;
const mayBeSent = (row: CommandFacts, settled: SettledSession | null, now: Instant): boolean =>
  row.liveEpoch !== null && row.liveEpoch !== settled?.epoch && row.availableAt <= now && isWrittenLater(row);

/** Whether a session that lists this command should go on with it. */
export const reconcile = (
  row: Pick<CommandFacts, "status" | "finishedAt"> | null,
  listedAs: AckStatus | "unknown",
  at: Circumstances,
): "continue" | "stop" | "forget" => {
  if (row === null) return "forget";
  if (row.status === "canceling" || row.status === "canceled") return "stop";
  if (isOpen(row.status)) return "continue";
  // Given up here, alive there: a finished one may still bring its late result (T22), an unfinished one is to end.
  if (!isSoftTerminal(row.status) || at.now - (row.finishedAt ?? 0) > at.timings.lateWindowMs) return "forget";
  return listedAs === "received" || listedAs === "running" || listedAs === "unknown" ? "stop" : "continue";
};

export const isExpired = (row: Pick<CommandFacts, "expiresAt">, now: Instant): boolean => row.expiresAt !== null && row.expiresAt <= now;

const step = (patch: Patch, code: string | null = null): Step => ({ patch, code });

/** Back in the queue, as if the agent had never had it. */
const waiting = (row: CommandFacts): Patch => ({
  status: "queued",
  deadlineAt: row.expiresAt ?? Infinity,
  channel: null,
  sessionEpoch: null,
  nodeId: null,
  ackedAt: null,
  startedAt: null,
  execDeadlineAt: null,
  progress: null,
});

/** A final state: no deadline, an end, and the reason when it is no success. */
export const ended = (status: CommandStatus, code: string | null, at: Circumstances, more: Patch = {}): Step => ({
  patch: { ...more, status, deadlineAt: null, finishedAt: at.now, failureCode: code },
  code,
});
