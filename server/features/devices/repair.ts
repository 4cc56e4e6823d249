// Repair: for a day, a person allows one machine that lost its secret to take over its device by enrollment token.
import { contract, type DeviceId } from "../../../protocol/index.ts";
import { type Clock, DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { type Emit, happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { type AuditTrail, operatorTx } from "../../core/ports/audit.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import { findNotOnline, setRepair } from "./store/devices.ts";

// Time to travel to the machine.
const REPAIR_SECONDS = DAY_SECONDS;

type RepairHandlers = Pick<Handlers<typeof contract.devices>, "openRepair" | "closeRepair">;

export const createRepairHandlers = ({ clock, emit }: { readonly clock: Clock; readonly emit: Emit }): RepairHandlers => {
  const change = async (tx: Tx, scope: TenantScope, wanted: { deviceId: DeviceId; repairUntil: Date | null }): Promise<string | null> => {
    const { deviceId } = wanted;
    const changed = await setRepair(tx, scope, wanted);
    if (changed === null) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
    const repairUntil = changed.repairUntil?.toISOString() ?? null;
    const data = { deviceId, repairUntil, actor: actorOf(scope.principal) };
    await emit(tx, [happened(scope, contract.devices.events.repairChanged, deviceId, data)]);
    return repairUntil;
  };
  return {
    openRepair: ({ scope, commit }, { deviceId }) =>
      commit(async (tx) => {
        const repairUntil = await change(tx, scope, { deviceId, repairUntil: secondsFromNow(REPAIR_SECONDS, clock.now()) });
        if (repairUntil === null) throw new Error("an open repair has no end");
        return { deviceId, repairUntil };
      }),
    closeRepair: ({ scope, commit }, { deviceId }) =>
      commit(async (tx) => {
        await change(tx, scope, { deviceId, repairUntil: null });
        return null;
      }),
  };
};

const BATCH = 200;

interface OpenRepairsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly audit: AuditTrail;
}

/** Opens the window of every device that is not online, for the one who runs the installation. Returns how many. */
export const createOpenRepairs = ({ db, clock, emit, audit }: OpenRepairsDeps) => {
  const openBatch = (after: string, repairUntil: Date): Promise<readonly { readonly deviceId: string }[]> =>
    operatorTx(db, audit)("cli.after-restore", async (tx) => {
      const silent = await findNotOnline(tx, { after, limit: BATCH });
      for (const { tenantId, deviceId } of silent) await setRepair(tx, { tenantId }, { deviceId, repairUntil });
      const data = { repairUntil: repairUntil.toISOString(), actor: "operator" };
      const opened = silent.map(({ tenantId, deviceId }) => happened({ tenantId }, contract.devices.events.repairChanged, deviceId, { deviceId, ...data }));
      await emit(tx, opened);
      return silent;
    });
  return async (): Promise<number> => {
    const repairUntil = secondsFromNow(REPAIR_SECONDS, clock.now());
    let count = 0;
    for (let after = ""; ; ) {
      const opened = await openBatch(after, repairUntil);
      count += opened.length;
      if (opened.length < BATCH) return count;
      after = opened.at(-1)?.deviceId ?? "";
    }
  };
};
