// The engine of work on many: rollouts and bulk operations go on in steps, each of them one transaction. A step
//
// 1. takes the row of the work with `for no key update skip locked`. That lock is the lease: nothing has to expire. A node that is killed undoes its step,
//    and PostgreSQL ends the session of one that is frozen, after the pool's limits of 5 s for a statement and 10 s for a silent transaction.
// 2. calls its kind to pull the ends of what is open, to judge, to order the next slice, and to write the record with its counters once.
// 3. says when the work is due again, and gives the turn to the next tenant, in the same transaction.
//
// So counters, members and commands always agree, and the path of the agents' acks knows nothing of it. Tenants take turns, whatever the number of their
// jobs, and none has more than two steps at once in the whole installation.
import type { Clock } from "../clock.ts";
import type { Tx } from "../database.ts";
import type { SqlTx } from "../events.ts";
import type { FindStuck } from "../people/stuck.ts";
import type { SystemScope } from "../scope.ts";
import type { Many, ManyStepper, StepFacts, Written } from "./types.ts";
import {
  beginWork,
  type ClaimedWork,
  claimWork,
  endWork,
  findFailing,
  finishStep,
  holdWork,
  noteFailure,
  readStates,
  wakeIdleWork,
  wakeWork,
} from "./work-rows.ts";

export interface ManyDeps {
  readonly db: SqlTx & { tx<T>(run: (tx: Tx) => Promise<T>): Promise<T> };
  readonly clock: Pick<Clock, "elapsed">;
  /** Runs the job now on this node. */
  readonly wakeJob: (name: string) => void;
  readonly onError: (error: unknown) => void;
  readonly settings?: Partial<ManySettings> | undefined;
}

export interface ManySettings {
  /** How often a node looks for what is due. */
  readonly everyMs: number;
  /** Steps at once on one node. A node with 0 leaves all steps to others. */
  readonly lanes: number;
  /** How long a step may go on ordering. */
  readonly stepMs: number;
  /** For tests: what a step takes for the database's time. */
  readonly nowOf: (now: Date) => Date;
}

const DEFAULTS: ManySettings = { everyMs: 1_000, lanes: 4, stepMs: 2_000, nowOf: (now) => now };
const JOB = "many.step";
/** A run of the job ends now and then, so that it shows in the list of jobs. */
const STEPS_PER_LANE = 50;
const MAX_ERROR = 300;
/** Failures in a row that are no accident any more. */
const FAILING = 3;

export interface ManyEngine extends Many {
  readonly job: { readonly name: string; readonly everyMs: number; run(signal: AbortSignal): Promise<boolean> };
  readonly stuck: FindStuck;
  /** Steps of this node that failed, by the kind of the work. */
  readonly stepFailures: () => Iterable<readonly [{ readonly kind: string }, number]>;
  /** Call it before the job starts. */
  add(stepper: ManyStepper): void;
  /** One step of what is due. False if nothing is. */
  stepOnce(): Promise<boolean>;
}

interface Done extends Pick<Written, "notify"> {
  readonly work: ClaimedWork;
}

export const createManyEngine = ({ db, clock, wakeJob, onError, settings: given }: ManyDeps): ManyEngine => {
  const settings = { ...DEFAULTS, ...given };
  const steppers = new Map<string, ManyStepper>();
  const failures = new Map<string, number>();

  const factsOf = ({ tenantId, recordId, now, failures }: ClaimedWork): StepFacts => {
    const endsAt = clock.elapsed() + settings.stepMs;
    const scope: SystemScope = { tenantId: tenantId as SystemScope["tenantId"] }; // as: a row's id
    return { scope, recordId, now: settings.nowOf(now), failures, hasTime: () => clock.elapsed() < endsAt };
  };

  const step = async (tx: Tx, work: ClaimedWork): Promise<Done> => {
    const written = (await steppers.get(work.kind)?.step(tx, factsOf(work))) ?? null;
    await finishStep(tx, work, written?.next ?? null);
    return { work, notify: written?.notify ?? (() => undefined) };
  };

  const stepOnce = async (): Promise<boolean> => {
    let claimed: ClaimedWork | null = null;
    try {
      const done = await db.tx(async (tx) => {
        claimed = await claimWork(tx, [...steppers.keys()]);
        return claimed === null ? null : await step(tx, claimed);
      });
      done?.notify();
      return done !== null;
    } catch (error) {
      const failed = claimed as ClaimedWork | null; // as: the compiler does not see the assignment in the transaction
      if (failed === null) throw error;
      failures.set(failed.kind, (failures.get(failed.kind) ?? 0) + 1);
      onError(new Error(`a step of ${failed.recordId} failed and will be taken again`, { cause: error }));
      await noteFailure(db, failed, String(error).slice(0, MAX_ERROR).toWellFormed());
      return true;
    }
  };

  const lane = async (signal: AbortSignal): Promise<boolean> => {
    for (let steps = 0; steps < STEPS_PER_LANE; steps += 1) if (signal.aborted || !(await stepOnce())) return false;
    return true;
  };

  return {
    add: (stepper) => {
      steppers.set(stepper.kind, stepper);
      failures.set(stepper.kind, 0);
    },
    stepFailures: () => [...failures].map(([kind, count]) => [{ kind }, count] as const),
    stepOnce,
    job: {
      name: JOB,
      everyMs: settings.everyMs,
      run: async (signal) => {
        if (settings.lanes === 0 || !(await stepOnce())) return false;
        const lanes = await Promise.allSettled(Array.from({ length: settings.lanes }, () => lane(signal)));
        for (const each of lanes) if (each.status === "rejected") throw each.reason;
        return lanes.some((each) => each.status === "fulfilled" && each.value);
      },
    },
    stuck: async (limit) =>
      (await findFailing(db, FAILING, limit)).map(({ tenant_id, record_id, kind, failures, last_error, since }) => ({
        kind: "many_step_failing",
        tenantId: tenant_id,
        id: record_id,
        since,
        reason: `the last ${failures} steps of this ${kind} failed: ${last_error ?? "unknown"}`,
        whatToDo: "Look for the error in the log. The step is tried again by itself, at least once a minute, and has changed nothing so far.",
      })),
    begin: beginWork,
    hold: holdWork,
    wake: wakeWork,
    wakeIdle: wakeIdleWork,
    end: endWork,
    hint: () => wakeJob(JOB),
    states: readStates,
  };
};
