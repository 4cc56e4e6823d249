// What the engine of rollouts and bulk operations asks of each kind of work, and what it offers to the feature that has the work.
import type { Tx } from "../database.ts";
import type { SystemScope } from "../scope.ts";

/** How many members or items one step may order. */
export const SLICE = 200;

/** One piece of work, for the time of one step. */
export interface StepFacts {
  /** Without a caller: the step acts for the tenant. */
  readonly scope: SystemScope;
  readonly recordId: string;
  /** The database's time at the begin of the step. Nothing else decides about deadlines. */
  readonly now: Date;
  /** Steps that failed in a row before this one. */
  readonly failures: number;
  /** False when the step has taken as long as it may: order no more and write. */
  hasTime(): boolean;
}

export interface Written {
  /** When the record is to be stepped next; null: it has ended, and the engine forgets it. */
  readonly next: Date | null;
  /** Runs after the commit: hints, which may get lost. */
  readonly notify: () => void;
}

/**
 * One kind of work that goes on in steps. A step is one transaction, in which the engine calls these five in this order while it holds the lock of the
 * work's row, so two steps of a record never overlap, and a step that does not commit has done nothing. `R` is the record as the step knows it.
 */
export interface ManyKind<R> {
  /** As in the row of the work. */
  readonly kind: string;
  /** Locks the record's own row and reads it. Null: it is gone or does not go on, and the engine forgets the work. */
  claim(tx: Tx, step: StepFacts): Promise<R | null>;
  /** Finds what has ended since the last step, by primary key, and writes it to the members: at most what is open. */
  pull(tx: Tx, record: R, step: StepFacts): Promise<R>;
  /** Decides by the figures whether and how it goes on. */
  judge(tx: Tx, record: R, step: StepFacts): Promise<R>;
  /** Orders the next slice, at most `SLICE`. What may throw for one member runs in `eachAlone`. */
  order(tx: Tx, record: R, step: StepFacts): Promise<R>;
  /** Writes the record with its counters, and its events, once. */
  write(tx: Tx, record: R, step: StepFacts): Promise<Written>;
}

/** A kind without its type of record, as the engine keeps them all. */
export interface ManyStepper {
  readonly kind: string;
  /** Null: the work is to be forgotten. */
  step(tx: Tx, step: StepFacts): Promise<Written | null>;
}

export const stepperOf = <R>(kind: ManyKind<R>): ManyStepper => ({
  kind: kind.kind,
  step: async (tx, step) => {
    const claimed = await kind.claim(tx, step);
    if (claimed === null) return null;
    const pulled = await kind.pull(tx, claimed, step);
    const judged = await kind.judge(tx, pulled, step);
    const ordered = await kind.order(tx, judged, step);
    return kind.write(tx, ordered, step);
  },
});

export interface NewWork {
  readonly recordId: string;
  readonly kind: string;
  /** Within the tenant, lower comes first: rollouts 1, bulk operations 2. */
  readonly priority: number;
  /** Null: at once. */
  readonly stepAt: Date | null;
}

/** How it goes with the work on a record. */
export interface WorkState {
  readonly stepAt: Date;
  readonly failures: number;
  readonly lastError: string | null;
}

/** What a feature does with its work outside of a step. */
export interface Many {
  /** In the transaction that makes the record go on. A record that has work already keeps it, and is stepped when this says. */
  begin(tx: Tx, scope: SystemScope, work: NewWork): Promise<void>;
  /**
   * Waits until no step of the record runs, and keeps others from running until the transaction ends. Call it before you lock the record itself, or two
   * transactions may wait for each other. False: it has no work.
   */
  hold(tx: Tx, scope: SystemScope, recordId: string): Promise<boolean>;
  /** In the transaction that changed the record: it is stepped soon after the commit. Waits for a step that runs. */
  wake(tx: Tx, scope: SystemScope, recordId: string): Promise<void>;
  /** The same without a wait: a record that is being stepped is left alone, so whoever calls must have written what the next step will find. */
  wakeIdle(tx: Tx, scope: Pick<SystemScope, "tenantId">, recordIds: readonly string[]): Promise<void>;
  /** In the transaction that ended the record outside of a step. */
  end(tx: Tx, scope: SystemScope, recordId: string): Promise<void>;
  /** Call it after a commit that woke or began work: this node looks for it at once. */
  hint(): void;
  states(tx: Tx, scope: SystemScope, recordIds: readonly string[]): Promise<ReadonlyMap<string, WorkState>>;
}
