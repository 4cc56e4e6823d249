// Cancels one command, at once if the agent never had it and by request if it does, or everything that waits in a queue.
import type { contract } from "../../../../protocol/index.ts";
import { isOpen } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { Handlers } from "../../../core/feature.ts";
import type { DeviceLookup } from "../../../core/lookups.ts";
import { actorOf } from "../../../core/scope.ts";
import type { AfterCommit } from "../after-commit.ts";
import { type Locked, lockCommand, lockQueued } from "../store/change.ts";
import { toCommand } from "../store/rows.ts";
import type { Transitions } from "../transitions.ts";
import { findVisibleCommand } from "./read.ts";

export interface CancelDeps {
  readonly devices: DeviceLookup;
  readonly transitions: Transitions;
  readonly afterCommit: Pick<AfterCommit, "changed">;
}

export const cancelling = ({ devices, transitions, afterCommit }: CancelDeps): Pick<Handlers<typeof contract.commands>, "cancel" | "purge"> => {
  const change = (tx: SqlTx, locked: Locked, { actor, ...event }: { readonly reason: string | null; readonly force: boolean; readonly actor: string }) =>
    transitions.apply(
      tx,
      locked,
      () => [{ kind: "cancel", ...event }],
      () => actor,
    );

  return {
    cancel: ({ scope, fail, commit }, { commandId, deviceId, reason, force }) =>
      commit(async (tx, afterwards) => {
        const found = await findVisibleCommand(tx, scope, { commandId, deviceId }, devices);
        if (found === null) throw fail("COMMAND_NOT_FOUND", { commandId });
        const locked = await lockCommand(tx, scope, commandId);
        const { effects, transitions: made } = await change(tx, locked, { reason: reason ?? null, force, actor: actorOf(scope.principal) });
        const effect = effects.get(commandId)?.[0];
        if (effect === undefined) throw fail("COMMAND_NOT_FOUND", { commandId });
        // Cancelling twice is no mistake: the second call answers the command as it is.
        if (!isOpen(effect.before.status) && effect.before.status !== "canceled")
          throw fail("COMMAND_ALREADY_FINAL", { commandId, status: effect.before.status });
        afterwards(() => afterCommit.changed(made));
        return toCommand({ ...effect.after, payload: found.payload });
      }),
    purge: async ({ scope, fail, commit }, { deviceId }) => {
      if ((await devices.find(scope, deviceId)) === null) throw fail("DEVICE_NOT_FOUND", { deviceId });
      const order = { reason: "purged", force: false, actor: actorOf(scope.principal) };
      return commit(async (tx, afterwards) => {
        const { transitions: made } = await change(tx, await lockQueued(tx, { tenantId: scope.tenantId, deviceId }), order);
        afterwards(() => afterCommit.changed(made));
        return { deviceId, canceled: made.length };
      });
    },
  };
};
