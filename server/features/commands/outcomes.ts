// Calls the outcome handlers of features, in the transaction that ends their commands. A handler that throws undoes only what it wrote itself: the command
// ends, the acks of other commands go on, and a job calls the handler again.
import type { z } from "zod";
import { type CommandType, isOpen } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import type { Hide, Outcome, RegisteredOutcome, UnsuccessfulStatus } from "../../core/ports/command-outcomes.ts";
import type { Db } from "../../platform/database/db.ts";
import { isConflict, isUnavailable } from "../../platform/database/db-errors.ts";
import type { Job } from "../../platform/jobs.ts";
import { addUntold, payloadsOf, removeUntold, retryLater, takeUntold } from "./store/outcomes.ts";
import { findCommand } from "./store/read.ts";
import type { CommandRow } from "./store/rows.ts";

/** By command type. Filled by the time the first command ends. */
export type OutcomeRegistry = ReadonlyMap<string, RegisteredOutcome>;

export interface OutcomesDeps {
  readonly db: Db;
  readonly registry: OutcomeRegistry;
  readonly onError: (error: unknown) => void;
}

export interface Outcomes {
  has(type: string): boolean;
  /** Per command, what hides the secrets in what its agent says. */
  hides(tx: SqlTx, commands: readonly CommandRow[]): Promise<ReadonlyMap<string, Hide>>;
  /**
   * Call it after saving the rows, in the same transaction. Returns the ids of the commands that succeeded with an output that their feature cannot use:
   * the feature takes that for a failure.
   */
  handle(tx: SqlTx, ended: readonly CommandRow[]): Promise<ReadonlySet<string>>;
  /** Whether its feature wants to know how the command gets on. */
  follows(type: string): boolean;
  /** Call it after saving the rows, in the same transaction. */
  progress(tx: SqlTx, working: readonly CommandRow[]): Promise<void>;
  /** Retries handlers that threw. */
  readonly job: Job;
}

interface Told {
  /** The handler took it; false if it threw, and its writes are undone. */
  readonly handled: boolean;
  readonly isMisfit: boolean;
}

const RETRY_EVERY_MS = 5_000;

export const createOutcomes = ({ db, registry, onError }: OutcomesDeps): Outcomes => {
  const call = async (tx: Tx, { command, handle }: RegisteredOutcome, row: CommandRow): Promise<Told> => {
    let isMisfit = false;
    await tx.query("savepoint outcome");
    try {
      const outcome = outcomeOf(command, row);
      isMisfit = outcome.kind === "invalid_output";
      await handle(tx, outcome);
      await tx.query("release savepoint outcome");
      return { handled: true, isMisfit };
    } catch (error) {
      // Fails the whole transaction; `db.tx` or the agent's next ack repeats it.
      if (isConflict(error) || isUnavailable(error)) throw error;
      onError(new Error(`the outcome of ${row.commandId} (${row.type}) could not be handled and will be retried`, { cause: error }));
      await tx.query("rollback to savepoint outcome");
      return { handled: false, isMisfit };
    }
  };

  return {
    has: (type) => registry.has(type),
    hides: async (sqlTx, commands) => {
      const tx = sqlTx as Tx; // as: see below
      const owned = commands.filter(({ type }) => registry.get(type)?.hideFor !== undefined);
      if (owned.length === 0) return new Map();
      const payloads = await payloadsOf(tx, owned);
      const found = new Map<string, Hide>();
      for (const { commandId, type, tenantId } of owned) {
        const hide = await registry.get(type)?.hideFor?.(tx, { scope: { tenantId }, payload: payloads.get(commandId) });
        if (hide) found.set(commandId, hide);
      }
      return found;
    },
    handle: async (sqlTx, ended) => {
      // as: every transaction is a Tx; the queue's code only uses its SQL part
      const tx = sqlTx as Tx;
      const payloads = await payloadsOf(tx, ended);
      const misfits = new Set<string>();
      for (const lean of ended) {
        const row = { ...lean, payload: payloads.get(lean.commandId) ?? {} };
        const registered = registry.get(row.type);
        if (registered === undefined) continue;
        const { handled, isMisfit } = await call(tx, registered, row);
        if (isMisfit) misfits.add(row.commandId);
        if (!handled) await addUntold(tx, row);
        // The late result replaces an earlier outcome that is still to be retried.
        else if (row.late) await removeUntold(tx, row.commandId);
      }
      return misfits;
    },
    follows: (type) => registry.get(type)?.progress !== undefined,
    progress: async (sqlTx, working) => {
      const tx = sqlTx as Tx; // as: see above
      for (const { tenantId, traceparent, commandId, deviceId, type, progress } of working) {
        const { pct = null, stage = null, bytesDone = null, bytesTotal = null } = progress ?? {};
        await tx.query("savepoint progress");
        try {
          await registry.get(type)?.progress?.(tx, { scope: { tenantId, traceparent }, commandId, deviceId, percent: pct, stage, bytesDone, bytesTotal });
          await tx.query("release savepoint progress");
        } catch (error) {
          if (isConflict(error) || isUnavailable(error)) throw error;
          onError(new Error(`the progress of ${commandId} (${type}) could not be handled`, { cause: error }));
          await tx.query("rollback to savepoint progress");
        }
      }
    },
    job: {
      name: "commands.outcomes",
      everyMs: RETRY_EVERY_MS,
      run: () =>
        db.tx(async (tx) => {
          const untold = await takeUntold(tx);
          if (untold === null) return false;
          const row = await findCommand(tx, untold, untold.commandId, null);
          const registered = row === null ? undefined : registry.get(row.type);
          // This release may have no handler for the type any more.
          if (row === null || registered === undefined || isOpen(row.status) || (await call(tx, registered, row)).handled)
            await removeUntold(tx, untold.commandId);
          else await retryLater(tx, untold.commandId);
          return true;
        }),
    },
  };
};

const outcomeOf = ({ output: schema }: CommandType, row: CommandRow): Outcome => {
  const { tenantId, traceparent, commandId, deviceId, payload, late, status, output } = row;
  const common = { scope: { tenantId, traceparent }, commandId, deviceId, payload, late };
  if (status !== "succeeded") return { ...common, kind: "unsuccessful", status: status as UnsuccessfulStatus, code: row.failureCode, output };
  const parsed = schema.safeParse(output);
  return parsed.success
    ? { ...common, kind: "succeeded", output: parsed.data }
    : { ...common, kind: "invalid_output", output, issues: parsed.error.issues.map(toIssue) };
};

const toIssue = ({ path, message }: z.core.$ZodIssue): string => `${path.join(".") || "output"}: ${message}`;
