// Runs after the commit of a change, top to bottom: telemetry, live views, waiting calls, the device's socket.
// Each is a hint that may get lost; deadlines, the sweep and rereads of the database make up for it.
import { type CommandStatus, contract } from "../../../../protocol/index.ts";
import type { Hint } from "../../../core/events.ts";
import type { DeviceNotifier } from "../../../core/ports/delivery.ts";
import type { Created } from "../admission.ts";
import type { CommandTelemetry } from "../command-telemetry.ts";
import { isoTime, toDelivered } from "../records.ts";
import { isWrittenLater } from "../rules.ts";
import type { CommandSettings } from "../settings.ts";
import type { CommandRow } from "../store/rows.ts";
import { cancelDeadline, commandHappened, freesCapacity, isDueAgain, isEnd, type Transition } from "../transitions.ts";
import type { RemoteChanges } from "../waiting/remote-changes.ts";
import type { RemoteWaiters } from "../waiting/remote-waiters.ts";
import type { Waiters } from "../waiting/waiters.ts";
import { type CommandSending, sentNow } from "./sending.ts";

export interface AfterCommitDeps {
  readonly telemetry: Pick<CommandTelemetry, "created" | "saw">;
  readonly hint: Hint;
  readonly remoteChanges: Pick<RemoteChanges, "note">;
  readonly waiters: Pick<Waiters, "wake" | "ended">;
  readonly remoteWaiters: Pick<RemoteWaiters, "notify">;
  readonly notifier: DeviceNotifier;
  readonly sending: Pick<CommandSending, "take">;
  readonly settings: Pick<CommandSettings, "cancelTimeoutMs">;
}

/** A new command; `heldBy` is the node that holds its device's socket, according to the database. */
export type Fresh = Pick<Created, "row" | "heldBy" | "isAlone">;

export interface AfterCommit {
  created(admissions: readonly Fresh[]): void;
  changed(transitions: readonly Transition[]): void;
  /** Something became claimable for these devices: wakes the polls that wait here and nudges the socket, on whichever node it is. */
  due(deviceIds: readonly string[]): void;
  /** Repeats pending cancellations to the agents. */
  remind(canceling: readonly CommandRow[]): void;
}

const { queued, changed: changedEvent } = contract.commands.events;
const NO_DEVICES: readonly string[] = [];

export const createAfterCommit = ({ telemetry, hint, remoteChanges, waiters, remoteWaiters, notifier, sending, settings }: AfterCommitDeps): AfterCommit => {
  const show = (event: typeof queued | typeof changedEvent, row: CommandRow, previous: CommandStatus | null): void => {
    remoteChanges.note(row);
    hint(row.tenantId, () => commandHappened(event, row, previous));
  };
  const due: AfterCommit["due"] = (deviceIds) => {
    waiters.wake(deviceIds);
    notifier.nudge(deviceIds);
  };
  const orderCancel = (row: CommandRow, deadline: number): void => {
    const reason = row.cancelReason ?? row.failureCode;
    waiters.wake([row.deviceId]);
    notifier.cancel(row.deviceId, { commandId: row.commandId, deadline: isoTime(deadline), ...(reason === null ? {} : { reason }) });
  };

  const changed: AfterCommit["changed"] = (transitions) => {
    for (const transition of transitions) {
      telemetry.saw(transition);
      // The outbox shows the end of a command to live views.
      if (!isEnd(transition)) show(changedEvent, transition.row, transition.from);
      const deadline = cancelDeadline(transition, settings);
      if (deadline !== null) orderCancel(transition.row, deadline);
    }
    const ended = rowsOf(transitions, isEnd);
    waiters.ended(ended);
    remoteWaiters.notify(ended);
    const again = devicesOf(rowsOf(transitions, isDueAgain));
    if (again.length > 0) due(again);
    const freed = devicesOf(rowsOf(transitions, freesCapacity));
    if (freed.length === 0) return;
    waiters.wake(freed);
    notifier.freed(freed);
  };
  /** Nothing stands before it, so a session on this node gets it from memory. */
  const pushNow = ({ row, isAlone }: Fresh): boolean => {
    const { liveEpoch, deviceId } = row;
    if (!isAlone || liveEpoch === null || !isWrittenLater(row) || row.availableAt > row.issuedAt) return false;
    if (!notifier.takesNow(deviceId, liveEpoch)) return false;
    const sent = sending.take(row, liveEpoch);
    if (sent === null) return false;
    changed([sentNow(sent)]);
    notifier.pushNow(deviceId, toDelivered(sent));
    return true;
  };

  return {
    due,
    created: (admissions) => {
      for (const { row } of admissions) {
        telemetry.created(row);
        show(queued, row, null);
      }
      // A poll that a session has replaced ends with the next command, whoever gets it.
      waiters.wake(admissions.map(({ row }) => row.deviceId));
      const waiting = admissions.filter((fresh) => !pushNow(fresh));
      if (waiting.length === 0) return;
      const holders = new Map(waiting.map(({ row, heldBy }) => [row.deviceId as string, heldBy]));
      notifier.nudge([...holders.keys()], (deviceId) => holders.get(deviceId) ?? null);
    },
    changed,
    remind: (canceling) => {
      for (const row of canceling) if (row.deadlineAt !== null && row.deadlineAt !== Infinity) orderCancel(row, row.deadlineAt);
    },
  };
};

const rowsOf = (transitions: readonly Transition[], when: (transition: Transition) => boolean): readonly CommandRow[] =>
  transitions.filter(when).map(({ row }) => row);

const devicesOf = (rows: readonly CommandRow[]): readonly string[] => (rows.length === 0 ? NO_DEVICES : [...new Set(rows.map(({ deviceId }) => deviceId))]);
