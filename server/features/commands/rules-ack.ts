// The transitions that an ack causes: T6-T9, T18-T20, T22, T23 and T26 of the state table. The first final ack wins.
import { type AckResult, type AckStatus, type CommandStatus, isOpen } from "../../../protocol/index.ts";
import { unreachable } from "../../core/errors.ts";
import type { AckEvent, Circumstances, CommandFacts, Instant, Patch, Step } from "./state.ts";

const FINAL_WORDS = ["succeeded", "failed", "rejected", "canceled"] as const;
type FinalWord = (typeof FINAL_WORDS)[number];
const isFinalWord = (word: AckStatus): word is FinalWord => (FINAL_WORDS as readonly string[]).includes(word);

const isUnasked = ({ requiresAck, status }: CommandFacts): boolean => !requiresAck && isOpen(status) && status !== "canceling";

/** Given up by us, not ended by the agent: a late result may still replace it. */
export const isSoftTerminal = (status: CommandStatus): boolean => status === "expired" || status === "timed_out" || status === "undeliverable";

/** The timeline shows the refusal of an ack, whatever else the ack did. */
export const acknowledge = (row: CommandFacts, ack: AckEvent, at: Circumstances): Step | null => {
  const step = heard(row, ack, at);
  return step === null || ack.refused === null ? step : { ...step, code: ack.refused };
};

const heard = (row: CommandFacts, ack: AckEvent, at: Circumstances): Step | null => {
  if (!isOpen(row.status)) return afterTheEnd(row, ack, at);
  // An unasked ack proves the delivery, and nothing more is expected.
  if (isUnasked(row)) return { patch: { status: "delivered", deadlineAt: null, finishedAt: at.now, failureCode: null }, code: null };
  switch (ack.word) {
    case "received":
      return received(row, ack, at);
    case "running":
      return running(row, ack, at);
    case "cancel_rejected":
      return row.status === "canceling" ? cancelRejected(row, ack, at) : null;
    // T9, T18, T20; an agent may also cancel by itself, on its operator's word.
    case "succeeded":
    case "failed":
    case "rejected":
    case "canceled":
      return { patch: { ...finished(ack, at), status: ack.word, failureCode: failureCode(row, ack) }, code: ack.code };
    default:
      return unreachable(ack.word);
  }
};

/** The agent's answer, from the row before the ack and the step that it made. */
export const ackResult = (row: CommandFacts, ack: AckEvent, step: Step | null): AckResult["result"] => {
  if (ack.refused !== null) return "refused";
  if (row.status === "delivered" || isUnasked(row)) return "duplicate";
  if (isOpen(row.status)) return step === null ? "duplicate" : "applied";
  if (step?.patch.late === true) return "applied";
  return isFinalWord(ack.word) && ack.word !== row.status ? "conflict" : "duplicate";
};

// T6. A command that went back to the queue while its ack was under way counts as sent: an ack is a fact.
const received = (row: CommandFacts, ack: AckEvent, at: Circumstances): Step | null => {
  const execDeadlineAt = row.execDeadlineAt ?? at.now + row.execTimeoutSeconds * 1_000;
  const news: Patch = { ...said(ack, at), ackedAt: at.now, execDeadlineAt };
  if (row.status === "queued" || row.status === "sent") return { patch: { ...news, status: "acknowledged", deadlineAt: execDeadlineAt }, code: ack.code };
  if (row.status === "canceling" && row.cancelPrevStatus === "sent") return { patch: { ...news, cancelPrevStatus: "acknowledged" }, code: null };
  return null;
};

// T7, T8.
const running = (row: CommandFacts, ack: AckEvent, at: Circumstances): Step | null => {
  const execDeadlineAt = row.execDeadlineAt ?? at.now + row.execTimeoutSeconds * 1_000;
  const progress = ack.progress ?? row.progress;
  const news: Patch = { ...said(ack, at), ackedAt: row.ackedAt ?? at.now, startedAt: row.startedAt ?? at.now, execDeadlineAt, progress };
  if (row.status === "canceling") return row.cancelPrevStatus === "running" ? null : { patch: { ...news, cancelPrevStatus: "running" }, code: null };
  if (row.status === "running" && ack.progress === null) return null;
  return { patch: { ...news, status: "running", deadlineAt: stepDeadline(execDeadlineAt, at) }, code: ack.code };
};

const stepDeadline = (execDeadlineAt: Instant, { now, timings }: Circumstances): Instant =>
  timings.stepTimeoutMs === null ? execDeadlineAt : Math.min(now + timings.stepTimeoutMs, execDeadlineAt);

// T19.
const cancelRejected = (row: CommandFacts, ack: AckEvent, at: Circumstances): Step => {
  const status = row.cancelPrevStatus ?? "sent";
  const deadlineAt =
    status === "sent" ? Math.min(at.now + at.timings.ackTimeoutMs, row.expiresAt ?? Infinity) : (row.execDeadlineAt ?? at.now + row.execTimeoutSeconds * 1_000);
  return { patch: { ...said(ack, at), status, deadlineAt, cancelPrevStatus: null }, code: ack.code ?? "CANCEL_REJECTED" };
};

const afterTheEnd = (row: CommandFacts, ack: AckEvent, at: Circumstances): Step | null => {
  if (!isFinalWord(ack.word) || ack.word === row.status) return null; // T26
  const withinWindow = at.now - (row.finishedAt ?? 0) <= at.timings.lateWindowMs;
  if (isSoftTerminal(row.status) && withinWindow && (ack.word === "succeeded" || ack.word === "failed"))
    // T22
    return { patch: { ...finished(ack, at), status: ack.word, failureCode: failureCode(row, ack), late: true }, code: "LATE_RESULT" };
  // T23: the status stays, and what really happened is kept beside it, once.
  if ((row.status !== "canceled" && !isSoftTerminal(row.status)) || row.lateOutcome !== null) return null;
  const lateOutcome = { status: ack.raw, output: ack.output ?? null, outputTruncated: ack.outputTruncated, code: ack.code, at: new Date(at.now).toISOString() };
  return { patch: { lateOutcome }, code: "LATE_OUTCOME" };
};

const said = (ack: AckEvent, { now }: Circumstances): Patch => ({
  ackStatus: ack.raw,
  ackAt: now,
  ...(ack.output === undefined ? {} : { output: ack.output }),
  ...(ack.output === undefined && !ack.outputTruncated ? {} : { outputTruncated: ack.outputTruncated }),
});

const finished = (ack: AckEvent, at: Circumstances): Patch => ({ ...said(ack, at), deadlineAt: null, finishedAt: at.now });

const failureCode = (row: CommandFacts, ack: AckEvent): string | null => {
  if (ack.word === "succeeded") return null;
  if (ack.word === "canceled") return row.status === "canceling" ? null : "CANCELED_BY_AGENT";
  const timedOut = /^time(d_)?out$/i.test(ack.raw);
  return ack.code ?? (timedOut ? "AGENT_TIMEOUT" : `AGENT_${ack.word.toUpperCase()}`);
};
