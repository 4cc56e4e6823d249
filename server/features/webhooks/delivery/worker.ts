// Delivers: leases endpoints that are due, sends what waits for them, writes the results. Several nodes share the endpoints; one node has each at a time.
import type { Clock } from "../../../core/clock.ts";
import type { Db } from "../../../platform/database/db.ts";
import type { SecretBox } from "../../../platform/keys/secrets.ts";
import type { Log } from "../../../platform/telemetry/log.ts";
import type { Attempt } from "./attempt.ts";
import { createDeliverySession, type DeliverySession } from "./delivery-session.ts";
import type { EffectDeps } from "./results.ts";

export interface WorkerSettings {
  readonly leaseSeconds: number;
  readonly renewEveryMs: number;
  /** Looks for endpoints that are due, and lets go of those that have had nothing for two rounds. */
  readonly tickMs: number;
  /** Endpoints per claim, and the pause between two claims, in which other nodes get their share. */
  readonly claimChunk: number;
  readonly claimPauseMs: number;
  readonly perTenant: number;
  readonly perNode: number;
}

export const WORKER_DEFAULTS: WorkerSettings = {
  leaseSeconds: 12,
  renewEveryMs: 4_000,
  tickMs: 1_000,
  claimChunk: 32,
  claimPauseMs: 20,
  perTenant: 20,
  perNode: 500,
};

export interface WorkerDeps extends EffectDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Pick<Log, "error">;
  readonly secretBox: Pick<SecretBox, "open">;
  readonly attempt: Attempt;
  readonly holder: string;
  readonly settings: WorkerSettings;
}

export const createWorker = (deps: WorkerDeps) => {
  let session: DeliverySession | null = null;
  return {
    /** Until nothing is due any more, or the signal ends it. */
    run: async (signal: AbortSignal): Promise<void> => {
      session = createDeliverySession(deps);
      try {
        await session.run(signal);
      } finally {
        session = null;
      }
    },
    /** There is something new for these tenants; false when the job does not run and must be woken. */
    wake: (tenantIds: readonly string[]): boolean => {
      session?.wake(tenantIds);
      return session !== null;
    },
  };
};
