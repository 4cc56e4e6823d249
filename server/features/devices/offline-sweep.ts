// The sweep that takes silent devices offline. It reads all of presence, so it runs again when the first device may be due, not every two seconds.

import type { SqlTx } from "../../core/events.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { DeviceSettings } from "./settings.ts";
import type { StatusChange } from "./store/presence.ts";
import { sweepOffline, untilOffline } from "./store/sweep.ts";

export interface OfflineSweepDeps {
  readonly db: Pick<Db, "sqlTx">;
  readonly emitOffline: (tx: SqlTx, changes: readonly StatusChange[]) => Promise<void>;
  /** Runs the job again soon. */
  readonly wake: () => void;
  readonly settings: Pick<DeviceSettings, "offlineAfterMs" | "closeGraceMs" | "sweepEveryMs" | "sweepBatch">;
}

export const OFFLINE_JOB = "devices.offline";
/** Pauses of jobs vary by this factor. */
const JITTER = 1.2;
/** Nodes may have different settings for a while. */
const LONGEST_MS = 15_000;

export const createOfflineSweep = ({ db, emitOffline, wake, settings }: OfflineSweepDeps) => {
  const { offlineAfterMs, closeGraceMs, sweepEveryMs, sweepBatch } = settings;
  // Only an announced disconnect makes a device due sooner than this, and its node calls `announced`.
  const longestMs = Math.max(sweepEveryMs, Math.min(closeGraceMs, offlineAfterMs, LONGEST_MS) / JITTER);
  let pauseMs = sweepEveryMs;
  let timer: NodeJS.Timeout | null = null;

  const sweep = (): Promise<boolean> =>
    db.sqlTx(async (tx) => {
      const changes = await sweepOffline(tx, { offlineAfterMs, limit: sweepBatch });
      await emitOffline(tx, changes);
      if (changes.length >= sweepBatch) return true;
      pauseMs = Math.min(longestMs, Math.max(sweepEveryMs, (await untilOffline(tx)) / JITTER));
      return false;
    });

  const job: Job = {
    name: OFFLINE_JOB,
    everyMs: () => pauseMs,
    run: () => {
      pauseMs = sweepEveryMs;
      return sweep();
    },
  };
  return {
    job,
    /** A device has said when it expects to be back. */
    announced: (): void => {
      if (timer !== null) return;
      timer = setTimeout(() => {
        timer = null;
        wake();
      }, sweepEveryMs).unref();
    },
  };
};
