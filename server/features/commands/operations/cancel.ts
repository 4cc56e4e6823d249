// Cancels one command, at once if the agent never had it and by request if it does, or everything that waits in a queue.
import type { contract } from "../../../../protocol/index.ts";
import { isOpen } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { Handlers } from "../../../core/feature.ts";
import type { DeviceRef } from "../../../core/ports/delivery.ts";
import type { DeviceLookup } from "../../../core/ports/lookups.ts";
import { actorOf, type SystemScope } from "../../../core/scope.ts";
import type { Db } from "../../../platform/database/db.ts";
import { toCommand } from "../records.ts";
import { isWrittenLater } from "../rules.ts";
import type { AfterCommit } from "../sending/after-commit.ts";
import type { WriteBeforeCancel } from "../sending/write-before-cancel.ts";
import type { SettledSession } from "../state.ts";
import { type Locked, lockCommand, lockCommands, lockQueued } from "../store/lock.ts";
import type { Transitions } from "../transitions.ts";
import { findVisibleCommand } from "./read.ts";

export interface CancelDeps {
  readonly db: Db;
  readonly writeBeforeCancel: Pick<WriteBeforeCancel, "settle">;
  readonly devices: DeviceLookup;
  readonly transitions: Transitions;
  readonly afterCommit: Pick<AfterCommit, "changed">;
}

interface Order {
  readonly reason: string | null;
  readonly force: boolean;
  readonly settled: SettledSession | null;
  readonly actor: string;
}

/** For the feature that ordered the command, in its own transaction. Ended or unknown, the command stays as it is. */
export const createCancelOrdered =
  ({ writeBeforeCancel, transitions, afterCommit }: Pick<CancelDeps, "writeBeforeCancel" | "transitions" | "afterCommit">) =>
  async (scope: SystemScope, { commandId, ...device }: DeviceRef & { readonly commandId: string }) => {
    const settled = await writeBeforeCancel.settle(device);
    return async (tx: SqlTx, { by, reason, before }: { readonly by: string; readonly reason: string; readonly before: () => Promise<void> }) => {
      const locked = await lockCommand(tx, scope, commandId);
      await before();
      const { transitions: made } = await transitions.apply(
        tx,
        locked,
        () => [{ kind: "cancel", reason, force: false, settled }],
        () => by,
      );
      return { notify: () => afterCommit.changed(made) };
    };
  };

/** The orders of a feature that no device has, held until the transaction ends. */
export interface HeldOrders {
  readonly commandIds: ReadonlySet<string>;
  /** Cancels them. One that a node may just be sending ends as its agent answers. */
  cancel(by: string, reason: string): Promise<{ readonly notify: () => void }>;
}

/** For a feature that takes back what it ordered from many devices, in its own transaction. */
export const createHoldUndelivered =
  ({ transitions, afterCommit }: Pick<CancelDeps, "transitions" | "afterCommit">) =>
  async (tx: SqlTx, orders: readonly (DeviceRef & { readonly commandId: string })[]): Promise<HeldOrders> => {
    const { rows, now } = orders.length === 0 ? { rows: [], now: null } : await lockCommands(tx, orders);
    const queued = rows.filter(({ status }) => status === "queued");
    return {
      commandIds: new Set(queued.map(({ commandId }) => commandId)),
      cancel: async (by, reason) => {
        if (queued.length === 0) return { notify: () => undefined };
        const { transitions: made } = await transitions.apply(
          tx,
          { rows: queued, now },
          () => [{ kind: "cancel", reason, force: false, settled: null }],
          () => by,
        );
        return { notify: () => afterCommit.changed(made) };
      },
    };
  };

export const createCancelOperations = ({
  db,
  writeBeforeCancel,
  devices,
  transitions,
  afterCommit,
}: CancelDeps): Pick<Handlers<typeof contract.commands>, "cancel" | "purge"> => {
  const change = (tx: SqlTx, locked: Locked, { actor, ...event }: Order) =>
    transitions.apply(
      tx,
      locked,
      () => [{ kind: "cancel", ...event }],
      () => actor,
    );

  return {
    cancel: async ({ scope, fail, commit }, { commandId, deviceId, reason, force }) => {
      const found = await findVisibleCommand(db, scope, { commandId, deviceId }, devices);
      if (found === null) throw fail("COMMAND_NOT_FOUND", { commandId });
      const settled = isOpen(found.status) && isWrittenLater(found) ? await writeBeforeCancel.settle(found) : null;
      return commit(async (tx, afterwards) => {
        const locked = await lockCommand(tx, scope, commandId);
        const order = { reason: reason ?? null, force, settled, actor: actorOf(scope.principal) };
        const { effects, transitions: made } = await change(tx, locked, order);
        const effect = effects.get(commandId)?.[0];
        if (effect === undefined) throw fail("COMMAND_NOT_FOUND", { commandId });
        // Cancelling twice is no mistake: the second call answers the command as it is.
        if (!isOpen(effect.before.status) && effect.before.status !== "canceled")
          throw fail("COMMAND_ALREADY_FINAL", { commandId, status: effect.before.status });
        afterwards(() => afterCommit.changed(made));
        return toCommand({ ...effect.after, payload: found.payload });
      });
    },
    purge: async ({ scope, fail, commit }, { deviceId }) => {
      if ((await devices.find(scope, deviceId)) === null) throw fail("DEVICE_NOT_FOUND", { deviceId });
      const settled = await writeBeforeCancel.settle({ tenantId: scope.tenantId, deviceId });
      const order = { reason: "purged", force: false, settled, actor: actorOf(scope.principal) };
      return commit(async (tx, afterwards) => {
        const { transitions: made } = await change(tx, await lockQueued(tx, { tenantId: scope.tenantId, deviceId }), order);
        afterwards(() => afterCommit.changed(made));
        return { deviceId, canceled: made.length };
      });
    },
  };
};
