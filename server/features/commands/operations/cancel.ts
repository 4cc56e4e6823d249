// Cancelling: at once what the agent never had, by request what it has, and everything that still waits in a queue.
import type { contract } from "../../../../protocol/index.ts";
import { isOpen } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { Handlers } from "../../../core/feature.ts";
import { actorOf } from "../../../core/scope.ts";
import type { DeviceLookup } from "../index.ts";
import { type Locked, lockCommand, lockQueued } from "../store/change.ts";
import { findCommand } from "../store/read.ts";
import { toCommand } from "../store/rows.ts";
import type { Transitions } from "../transitions.ts";

export interface CancelDeps {
  readonly devices: DeviceLookup;
  readonly transitions: Transitions;
}

export const cancelling = ({ devices, transitions }: CancelDeps): Pick<Handlers<typeof contract.commands>, "cancel" | "purge"> => {
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
        const found = await findCommand(tx, scope, commandId, deviceId ?? null);
        if (found === null) throw fail("COMMAND_NOT_FOUND", { commandId });
        const locked = await lockCommand(tx, scope, commandId);
        const { outcomes, transitions: made } = await change(tx, locked, { reason: reason ?? null, force, actor: actorOf(scope.principal) });
        const outcome = outcomes.get(commandId)?.[0];
        if (outcome === undefined) throw fail("COMMAND_NOT_FOUND", { commandId });
        // Asking twice is no mistake: what is being cancelled or was cancelled answers as it is.
        if (!isOpen(outcome.before.status) && outcome.before.status !== "canceled")
          throw fail("COMMAND_ALREADY_FINAL", { commandId, status: outcome.before.status });
        afterwards(() => transitions.tell(made));
        return toCommand({ ...outcome.after, payload: found.payload });
      }),
    purge: async ({ scope, fail, commit }, { deviceId }) => {
      if ((await devices.find(scope, deviceId)) === null) throw fail("DEVICE_NOT_FOUND", { deviceId });
      const order = { reason: "purged", force: false, actor: actorOf(scope.principal) };
      return commit(async (tx, afterwards) => {
        const { transitions: made } = await change(tx, await lockQueued(tx, { tenantId: scope.tenantId, deviceId }), order);
        afterwards(() => transitions.tell(made));
        return { deviceId, canceled: made.length };
      });
    },
  };
};
