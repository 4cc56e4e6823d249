// Events that rules wait for.
import type { Clients } from "../../../core/database.ts";

export interface Signal {
  readonly tenantId: string;
  readonly eventId: string;
  readonly type: string;
  readonly targetId: string;
  readonly at: Date;
}

export const insertSignals = async (db: Clients, signals: readonly Signal[]): Promise<void> => {
  await db.system.alertSignal.createMany({ data: [...signals], skipDuplicates: true });
};

const SWEEP_ROWS = 10_000;
/** True when there may be more. */
export const deleteOldSignals = async (db: Clients, before: Date): Promise<boolean> =>
  (await db.system.alertSignal.deleteMany({ where: { at: { lt: before } }, limit: SWEEP_ROWS })).count === SWEEP_ROWS;
