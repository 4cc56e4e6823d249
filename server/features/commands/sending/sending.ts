// Sends a queued command to the session of its device: decides the step, keeps the command in hand, and tells what happened.
import type { Clock } from "../../../core/clock.ts";
import type { CommandEvent } from "../state.ts";
import type { CommandRow } from "../store/rows.ts";
import type { Transition, Transitions } from "../transitions.ts";
import type { UnwrittenSend, UnwrittenSends } from "./unwritten-sends.ts";

export interface SendingDeps {
  readonly unwritten: Pick<UnwrittenSends, "take">;
  readonly transitions: Pick<Transitions, "plan">;
  readonly clock: Pick<Clock, "now">;
  readonly nodeId: string;
}

export interface CommandSending {
  /** The command as it is sent now; null when it is no longer due. Nothing is written or kept. */
  send(row: CommandRow, epoch: number): CommandRow | null;
  /** The same, and keeps it in hand; null also if it is in hand already. */
  take(row: CommandRow, epoch: number): CommandRow | null;
}

export const createSending = ({ unwritten, transitions, clock, nodeId }: SendingDeps): CommandSending => {
  const send: CommandSending["send"] = (row, epoch) => {
    const event: CommandEvent = { kind: "claimed", channel: "ws", epoch, nodeId };
    const [effect] = transitions.plan(row, [event], { now: Math.max(clock.now().getTime(), row.availableAt), actorOf: () => "session" });
    return effect?.step === null ? null : (effect?.after ?? null);
  };
  return {
    send,
    take: (row, epoch) => {
      const sent = send(row, epoch);
      return sent === null ? null : (unwritten.take(row, sent, epoch)?.sent ?? null);
    },
  };
};

/** The step of a command in hand that its row does not show, to be written together with the next one. */
export const untold = (row: CommandRow, unwritten: Pick<UnwrittenSends, "find">): readonly CommandEvent[] => {
  const item = unwritten.find(row.commandId);
  return item !== undefined && row.status === "queued" && row.revision === item.queued.revision ? [sentEvent(item)] : NOTHING;
};
const NOTHING: readonly CommandEvent[] = [];

const sentEvent = ({ sent, epoch }: UnwrittenSend): CommandEvent => ({
  kind: "claimed",
  channel: "ws",
  epoch,
  nodeId: sent.nodeId ?? "",
  at: sent.sentAt ?? sent.issuedAt,
});

/** The step of a claim. */
export const sentNow = (row: CommandRow): Transition => ({ row, from: "queued", step: { patch: { status: "sent" }, code: null } });
