// Says what a command waits for: as fields for programs, and in one line for people.
import type { z } from "zod";
import { type BlockedBy, inWords, isOpen } from "../../../protocol/index.ts";
import { isoTime } from "./records.ts";
import type { Surroundings } from "./store/read.ts";
import type { CommandRow } from "./store/rows.ts";

type Blocked = z.infer<typeof BlockedBy>;
type Reason = Omit<Blocked, "until" | "deadlineAt"> & { readonly until?: string };

export const blockedBy = (row: CommandRow, around: Surroundings): Blocked => ({
  until: null,
  deadlineAt: row.deadlineAt === null || row.deadlineAt === Infinity ? null : isoTime(row.deadlineAt),
  ...reasonOf(row, around),
});

const reasonOf = (row: CommandRow, around: Surroundings): Reason => {
  if (!isOpen(row.status))
    return { kind: "none", since: null, explanation: `It has ended as ${inWords(row.status)}${row.failureCode === null ? "" : ` (${row.failureCode})`}.` };
  if (row.status !== "queued") return waitsForAgent(row, around);
  const now = around.now.getTime();
  if (row.availableAt > now) {
    const why = row.attempt > 0 ? `Attempt ${row.attempt} was not acknowledged; it is delivered again` : "It is held back";
    return { kind: "window", since: isoTime(row.issuedAt), until: isoTime(row.availableAt), explanation: `${why} from ${isoTime(row.availableAt)}.` };
  }
  if (around.connectivity === "none") {
    const since = around.lastSeenAt?.toISOString() ?? null;
    return {
      kind: "offline",
      since: since ?? isoTime(row.issuedAt),
      explanation: since === null ? "The device has never been connected." : `The device is not connected; it was last seen at ${since}.`,
    };
  }
  if (around.ahead !== null) {
    const { commandId, type, status, since } = around.ahead;
    return {
      kind: "lane",
      lane: row.lane,
      ahead: { commandId, type, status },
      commandId,
      since: since.toISOString(),
      explanation: `Lane ${row.lane} is taken by ${commandId}, ${inWords(status)} since ${since.toISOString()}.`,
    };
  }
  if (around.connectivity === "realtime" && around.maxInFlight !== null && around.inFlight >= around.maxInFlight)
    return { kind: "credit", since: isoTime(row.availableAt), explanation: `The agent is at work on ${around.inFlight} commands and takes no more at once.` };
  if (around.connectivity === "polling")
    return {
      kind: "agent",
      since: isoTime(row.availableAt),
      explanation: `It is due since ${isoTime(row.availableAt)} and goes out with the agent's next poll.`,
    };
  return { kind: "none", since: isoTime(row.availableAt), explanation: "Nothing is in its way; it is about to be sent." };
};

const waitsForAgent = (row: CommandRow, around: Surroundings): Reason => {
  const since = isoTime(row.startedAt ?? row.ackedAt ?? row.sentAt ?? row.issuedAt);
  const bound = row.deadlineAt === null || row.deadlineAt === Infinity ? "" : `, until ${isoTime(row.deadlineAt)} at the latest`;
  if (around.connectivity === "none") {
    const seen = around.lastSeenAt?.toISOString() ?? since;
    return {
      kind: "offline",
      since: seen,
      explanation: `The agent holds it (${inWords(row.status)}) and was last seen at ${seen}; its word is waited for${bound}.`,
    };
  }
  const what = { sent: "to acknowledge it", acknowledged: "to begin", running: "to finish", canceling: "to confirm the cancellation" };
  const status = row.status === "sent" || row.status === "acknowledged" || row.status === "running" ? row.status : "canceling";
  return { kind: "agent", since, explanation: `Waits since ${since} for the agent ${what[status]}${bound}.` };
};
