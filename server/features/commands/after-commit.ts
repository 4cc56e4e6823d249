// Runs after the commit of a change, top to bottom: telemetry, live views, waiting calls, the device's socket.
// Each is a hint that may get lost; deadlines, the sweep and rereads of the database make up for it.
import { type CommandStatus, contract } from "../../../protocol/index.ts";
import type { DeviceNotifier } from "../../core/delivery.ts";
import type { Hint } from "../../core/events.ts";
import type { CommandTelemetry } from "./command-telemetry.ts";
import type { RemoteChanges } from "./remote-changes.ts";
import type { RemoteWaiters } from "./remote-waiters.ts";
import type { CommandSettings } from "./settings.ts";
import { type CommandRow, isoTime } from "./store/rows.ts";
import { cancelDeadline, commandHappened, freesCapacity, isDueAgain, isEnd, type Transition } from "./transitions.ts";
import type { Waiters } from "./waiters.ts";

export interface AfterCommitDeps {
  readonly telemetry: Pick<CommandTelemetry, "created" | "saw">;
  readonly hint: Hint;
  readonly remoteChanges: Pick<RemoteChanges, "note">;
  readonly waiters: Pick<Waiters, "wake" | "ended">;
  readonly remoteWaiters: Pick<RemoteWaiters, "notify">;
  readonly notifier: DeviceNotifier;
  readonly settings: Pick<CommandSettings, "cancelTimeoutMs">;
}

export interface AfterCommit {
  /** New commands. `nodeOf` returns the node that holds a device's socket, according to the database. */
  created(rows: readonly CommandRow[], nodeOf?: (deviceId: string) => string | null): void;
  changed(transitions: readonly Transition[]): void;
  /** Something became claimable for these devices: wakes the polls that wait here and nudges the socket, on whichever node it is. */
  due(deviceIds: readonly string[], nodeOf?: (deviceId: string) => string | null): void;
  /** Repeats pending cancellations to the agents. */
  remind(canceling: readonly CommandRow[]): void;
}

const { queued, changed } = contract.commands.events;
const NO_DEVICES: readonly string[] = [];

export const createAfterCommit = ({ telemetry, hint, remoteChanges, waiters, remoteWaiters, notifier, settings }: AfterCommitDeps): AfterCommit => {
  const show = (event: typeof queued | typeof changed, row: CommandRow, previous: CommandStatus | null): void => {
    remoteChanges.note(row);
    hint(row.tenantId, () => commandHappened(event, row, previous));
  };
  const due: AfterCommit["due"] = (deviceIds, nodeOf) => {
    waiters.wake(deviceIds);
    notifier.nudge(deviceIds, nodeOf);
  };
  const orderCancel = (row: CommandRow, deadline: number): void => {
    const reason = row.cancelReason ?? row.failureCode;
    waiters.wake([row.deviceId]);
    notifier.cancel(row.deviceId, { commandId: row.commandId, deadline: isoTime(deadline), ...(reason === null ? {} : { reason }) });
  };

  return {
    due,
    created: (rows, nodeOf) => {
      for (const row of rows) {
        telemetry.created(row);
        show(queued, row, null);
      }
      if (rows.length > 0) due(devicesOf(rows), nodeOf);
    },
    changed: (transitions) => {
      for (const transition of transitions) {
        telemetry.saw(transition);
        // The outbox shows the end of a command to live views.
        if (!isEnd(transition)) show(changed, transition.row, transition.from);
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
    },
    remind: (canceling) => {
      for (const row of canceling) if (row.deadlineAt !== null && row.deadlineAt !== Infinity) orderCancel(row, row.deadlineAt);
    },
  };
};

const rowsOf = (transitions: readonly Transition[], when: (transition: Transition) => boolean): readonly CommandRow[] =>
  transitions.filter(when).map(({ row }) => row);

const devicesOf = (rows: readonly CommandRow[]): readonly string[] => (rows.length === 0 ? NO_DEVICES : [...new Set(rows.map(({ deviceId }) => deviceId))]);
