// Cancelling: at once what the agent never had, by request what it has, and everything that still waits in a queue.
import type { contract } from "../../../../protocol/index.ts";
import { isOpen } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { Handlers } from "../../../core/feature.ts";
import { actorOf } from "../../../core/scope.ts";
import type { Db } from "../../../platform/db.ts";
import type { DeviceDirectory } from "../index.ts";
import { type Locked, lockCommand, lockQueued } from "../store/change.ts";
import { findCommand } from "../store/read.ts";
import { toCommand } from "../store/rows.ts";
import type { Transitions } from "../transitions.ts";

export interface CancelDeps {
  readonly db: Db;
  readonly devices: DeviceDirectory;
  readonly transitions: Transitions;
}

export const cancelling = ({ db, devices, transitions }: CancelDeps): Pick<Handlers<typeof contract.commands>, "cancel" | "purge"> => {
  const change = async (lock: (tx: SqlTx) => Promise<Locked>, order: { readonly reason: string | null; readonly force: boolean; readonly actor: string }) => {
    const { actor, ...event } = order;
    const applied = await db.sqlTx(async (tx) =>
      transitions.apply(
        tx,
        await lock(tx),
        () => [{ kind: "cancel", ...event }],
        () => actor,
      ),
    );
    transitions.tell(applied.transitions);
    return applied;
  };

  return {
    cancel: async ({ scope, fail }, { commandId, deviceId, reason, force }) => {
      const found = await findCommand(db, scope, commandId, deviceId ?? null);
      if (found === null) throw fail("COMMAND_NOT_FOUND", { commandId });
      const { outcomes } = await change((tx) => lockCommand(tx, scope, commandId), { reason: reason ?? null, force, actor: actorOf(scope.principal) });
      const outcome = outcomes.get(commandId)?.[0];
      if (outcome === undefined) throw fail("COMMAND_NOT_FOUND", { commandId });
      // Asking twice is no mistake: what is being cancelled or was cancelled answers as it is.
      if (!isOpen(outcome.before.status) && outcome.before.status !== "canceled")
        throw fail("COMMAND_ALREADY_FINAL", { commandId, status: outcome.before.status });
      return toCommand({ ...outcome.after, payload: found.payload });
    },
    purge: async ({ scope, fail }, { deviceId }) => {
      if ((await devices.find(scope, deviceId)) === null) throw fail("DEVICE_NOT_FOUND", { deviceId });
      const device = { tenantId: scope.tenantId, deviceId };
      const { transitions: made } = await change((tx) => lockQueued(tx, device), { reason: "purged", force: false, actor: actorOf(scope.principal) });
      return { deviceId, canceled: made.length };
    },
  };
};
