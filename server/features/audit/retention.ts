// Deletes old records from the beginning of each log. The chain keeps the hash of the last one that it lost, signed, so the rest still verifies.
import { type Clock, DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { ChainSigner } from "./chain.ts";
import { deleteUpTo, findTenantWithOld, lastOld, lockChain } from "./store.ts";

export interface RetentionDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly signer: ChainSigner;
  readonly keepDays: number;
}

const EVERY_MS = 600_000;
const BATCH = 1_000;

export const createRetention = ({ db, clock, signer, keepDays }: RetentionDeps): Job => {
  // Logs that do not verify stay as they are, for whoever looks into it.
  const broken = new Set<string>();
  const forget = async (tenantId: string, before: Date): Promise<void> =>
    db.tx(async (tx) => {
      const chain = await lockChain(tx, tenantId);
      const last = await lastOld(tx, tenantId, { after: chain.anchorSequence, before, limit: BATCH });
      if (!signer.isSigned(chain) || last === undefined) return void broken.add(tenantId);
      const next = { ...chain, anchorSequence: last.sequence, anchorHash: last.hash };
      await deleteUpTo(tx, next, signer.sign(next));
    });
  return {
    name: "audit.forget",
    everyMs: EVERY_MS,
    run: async () => {
      const before = secondsFromNow(-keepDays * DAY_SECONDS, clock.now());
      const tenantId = await findTenantWithOld(db, before, [...broken]);
      if (tenantId === null) return false;
      await forget(tenantId, before);
      return true;
    },
  };
};
