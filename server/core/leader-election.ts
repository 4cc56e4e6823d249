// Leader election for work that one node does at a time: the leader is whoever holds an advisory lock in its transaction. Nobody leads between transactions,
// so a node that dies leaves nothing behind to expire.
import type { SqlTx } from "./events.ts";
import { statement } from "./statements.ts";

/** Any numbers that nothing else locks. A rolling update has both releases at work, so a number never changes. */
const LOCKS = {
  outboxRelay: 7_266_530_021,
  commandRetention: 7_266_530_022,
  metricsRollUp: 7_266_530_023,
  alertEvaluation: 7_266_530_029,
  certificateOrders: 7_266_530_041,
  backupDispatch: 7_266_530_043,
  volumeScans: 7_266_530_042,
  overviewPoints: 7_266_530_044,
} as const;
export type LedWork = keyof typeof LOCKS;

/** Tries to take an advisory lock until the transaction ends; never waits. */
const TRY_LOCK = statement<{ readonly mine: boolean }>("tryLock", "select pg_try_advisory_xact_lock($1::bigint) as mine");

/** False while another node does this work. A leader stays it until its transaction ends. */
export const becomeLeader = async (tx: SqlTx, work: LedWork): Promise<boolean> => {
  const [row] = await tx.query(TRY_LOCK, [LOCKS[work]]);
  return row?.mine ?? false;
};
