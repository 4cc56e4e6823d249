// The jobs of the queue. The reaper enforces every deadline (command timeout, expiry), the sweep finds due and canceled commands whose hint got lost, and
// retention deletes what ended long ago.

import type { Clock } from "../../core/clock.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { CommandTelemetry } from "./command-telemetry.ts";
import type { AfterCommit } from "./sending/after-commit.ts";
import type { CommandSettings } from "./settings.ts";
import { lockOverdue } from "./store/lock.ts";
import { findSweepable } from "./store/read.ts";
import { deleteEnded, RETENTION_START } from "./store/retention.ts";
import type { Transitions } from "./transitions.ts";

export interface CommandJobsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly afterCommit: Pick<AfterCommit, "changed" | "due" | "remind">;
  readonly transitions: Transitions;
  readonly telemetry: Pick<CommandTelemetry, "swept">;
  readonly nodeId: string;
  readonly settings: CommandSettings;
  /** False while hints between nodes get lost. */
  readonly hintsArrive?: (() => boolean) | undefined;
}

export interface Sweep extends Job {
  /** Sweeps everything at once, because hints may have been lost. */
  now(): Promise<void>;
}

const SWEEP_LIMIT = 5_000;
/** A hint that takes longer counts as lost. */
const HINT_MS = 2_000;

/** Any number of nodes may run it: each takes the rows that no other holds. */
export const reaperJob = ({ db, transitions, afterCommit, settings }: CommandJobsDeps): Job => ({
  name: "commands.reaper",
  everyMs: settings.reaperEveryMs,
  run: async () => {
    const { count, made } = await db.sqlTx(async (tx) => {
      const locked = await lockOverdue(tx, settings.reaperBatch, settings.sentGraceMs);
      const applied = await transitions.apply(
        tx,
        locked,
        () => [{ kind: "deadline" }],
        () => "system",
      );
      return { count: locked.rows.length, made: applied.transitions };
    });
    afterCommit.changed(made);
    // A full batch in which nothing changed would only come again.
    return count === settings.reaperBatch && made.length > 0;
  },
});

const DAY_MS = 86_400_000;

export const retentionJob = ({
  db,
  clock,
  settings: { keepDays, retentionBatch, retentionEveryMs },
}: Pick<CommandJobsDeps, "db" | "clock" | "settings">): Job => {
  let place = RETENTION_START;
  return {
    name: "commands.retention",
    everyMs: retentionEveryMs,
    run: async () => {
      const before = new Date(clock.now().getTime() - keepDays * DAY_MS);
      const { next } = await db.sqlTx((tx) => deleteEnded(tx, { place, before, limit: retentionBatch }));
      place = next ?? RETENTION_START;
      return next !== null;
    },
  };
};

export const sweepJob = ({ db, clock, afterCommit, telemetry, nodeId, settings, hintsArrive = () => true }: CommandJobsDeps): Sweep => {
  let after: string | null = null;
  let lastFullMs = -Infinity;
  const run = async (): Promise<void> => {
    const startedMs = clock.elapsed();
    const isFull = startedMs - lastFullMs >= settings.fullSweepEveryMs;
    const found = await findSweepable(db, nodeId, { after: isFull ? null : after, graceMs: hintsArrive() ? HINT_MS : 0, limit: SWEEP_LIMIT });
    if (isFull) lastFullMs = startedMs;
    // At the limit the window stays where it is until the found devices have been served.
    if (Math.max(found.deviceIds.length, found.canceling.length) < SWEEP_LIMIT) after = found.until;
    telemetry.swept(found.deviceIds);
    if (found.deviceIds.length > 0) afterCommit.due(found.deviceIds);
    afterCommit.remind(found.canceling);
  };
  return {
    name: "commands.sweep",
    everyMs: () => (hintsArrive() ? settings.sweepEveryMs : Math.min(settings.sweepEveryMs, settings.sweepWithoutHintsMs)),
    run,
    now: async () => {
      lastFullMs = -Infinity;
      await run();
    },
  };
};
