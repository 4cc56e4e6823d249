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
  /** Whether the row has ended as succeeded with an output that its feature cannot use: then the feature takes it for a failure. */
  isMisfit(row: Pick<CommandRow, "type" | "status" | "output">): boolean;
  /** Per command, what hides the secrets in what its agent says. */
  hides(tx: SqlTx, commands: readonly CommandRow[]): Promise<ReadonlyMap<string, Hide>>;
  /** Call it after saving the rows, in the same transaction. */
  handle(tx: SqlTx, ended: readonly CommandRow[]): Promise<void>;
  /** Retries handlers that threw. */
  readonly job: Job;
}

const RETRY_EVERY_MS = 5_000;

export const createOutcomes = ({ db, registry, onError }: OutcomesDeps): Outcomes => {
  /** Undoes the handler's writes and returns false if it throws. */
  const call = async (tx: Tx, { command, handle }: RegisteredOutcome, row: CommandRow): Promise<boolean> => {
    await tx.query("savepoint outcome");
    try {
      await handle(tx, outcomeOf(command, row));
      await tx.query("release savepoint outcome");
      return true;
    } catch (error) {
      // Fails the whole transaction; `db.tx` or the agent's next ack repeats it.
      if (isConflict(error) || isUnavailable(error)) throw error;
      onError(new Error(`the outcome of ${row.commandId} (${row.type}) could not be handled and will be retried`, { cause: error }));
      await tx.query("rollback to savepoint outcome");
      return false;
    }
  };

  return {
    has: (type) => registry.has(type),
    isMisfit: ({ type, status, output }) => status === "succeeded" && registry.get(type)?.command.output.safeParse(output).success === false,
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
      for (const lean of ended) {
        const row = { ...lean, payload: payloads.get(lean.commandId) ?? {} };
        const registered = registry.get(row.type);
        if (registered === undefined) continue;
        const handled = await call(tx, registered, row);
        if (!handled) await addUntold(tx, row);
        // The late result replaces an earlier outcome that is still to be retried.
        else if (row.late) await removeUntold(tx, row.commandId);
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
          if (row === null || registered === undefined || isOpen(row.status) || (await call(tx, registered, row))) await removeUntold(tx, untold.commandId);
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
