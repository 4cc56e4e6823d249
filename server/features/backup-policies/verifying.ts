// Verifies the newest good backup of each app of a policy, when its schedule says so.
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { isAppError } from "../../core/errors.ts";
import type { PolicyBackups } from "../backups/index.ts";
import { dueSince, readSchedule } from "./schedule.ts";
import { type PolicyRow, savePolicy } from "./store/policies.ts";
import type { Targets } from "./targets.ts";

const VERIFIED_AT_ONCE = 100;
const KEPT_AT_ONCE = 2_000;

export interface VerifyDeps {
  readonly clock: Clock;
  readonly targets: Targets;
  readonly backups: () => PolicyBackups;
}

/** The policy is locked. Returns what to call after the commit. */
export const createVerify = ({ clock, targets, backups }: VerifyDeps) => {
  /** The newest good backup of each app, which nobody verifies now. */
  return async (tx: Tx, policy: PolicyRow): Promise<readonly (() => void)[]> => {
    const scope = { tenantId: policy.tenantId };
    const { verify, nextVerifyAt, timezone } = policy;
    if (verify === null || nextVerifyAt === null) return [];
    const { next } = dueSince(readSchedule(verify.schedule, timezone, nextVerifyAt), nextVerifyAt, clock.now());
    await savePolicy(tx, scope, policy.policyId, { nextVerifyAt: next, silent: true });
    const found = (await targets.appsOf(tx, scope, policy.target)).slice(0, VERIFIED_AT_ONCE);
    const kept = await backups().kept(
      tx,
      scope,
      found.map(({ appId }) => appId),
      KEPT_AT_ONCE,
    );
    const newest = new Map(
      kept
        .filter(({ policyId }) => policyId === policy.policyId)
        .toReversed()
        .map((row) => [row.appId, row]),
    );
    const notify: (() => void)[] = [];
    for (const { backupId } of newest.values()) {
      const row = await backups().lock(tx, scope, backupId);
      if (row === null || row.status !== "completed" || row.verification.status === "verifying") continue;
      try {
        notify.push((await backups().verify(tx, scope, row, { mode: verify.mode, by: "system" })).notify);
      } catch (error) {
        if (!isAppError(error)) throw error;
      }
    }
    return notify;
  };
};
