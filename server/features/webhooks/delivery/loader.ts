// Reads what is due: for all endpoints that ask in one statement, and their own rows before it.
import type { Db } from "../../../platform/database/db.ts";
import type { SecretBox } from "../../../platform/keys/secrets.ts";
import type { Log } from "../../../platform/telemetry/log.ts";
import { cancelSome, type DueRow, readDue, readEndpoints } from "../store/work.ts";
import type { Runner } from "./endpoint-runner.ts";
import { createRefresh } from "./endpoint-state.ts";

export interface LoaderDeps {
  readonly db: Db;
  readonly log: Pick<Log, "error">;
  readonly secretBox: Pick<SecretBox, "open">;
  readonly guarded: (work: Promise<unknown>) => void;
  readonly loaded: (runner: Runner) => void;
}

const BATCH = 64;

export const createLoader = ({ db, log, secretBox, guarded, loaded }: LoaderDeps) => {
  const asking = new Set<Runner>();
  const refresh = createRefresh(secretBox);
  let loading: Promise<void> | null = null;

  const refreshAll = async (batch: readonly Runner[]): Promise<void> => {
    const rows = new Map(
      (
        await readEndpoints(
          db,
          batch.map(({ webhookId }) => webhookId),
        )
      ).map((row) => [row.webhook_id, row]),
    );
    for (const runner of batch) {
      const row = rows.get(runner.webhookId);
      try {
        if (row === undefined) runner.stop();
        else runner.state = refresh(runner, row);
      } catch (error) {
        // Its lease ends by itself; the other endpoints go on.
        log.error({ webhookId: runner.webhookId, error }, "could not read a webhook's secret");
        runner.stop();
      }
    }
  };

  const cancelAll = async (runner: Runner): Promise<void> => {
    while (await cancelSome(db, runner.webhookId));
    runner.isDry = true;
  };

  /** The epochs are read before the deliveries, so none that is newer than its epoch is overlooked. */
  const load = async (batch: readonly Runner[]): Promise<void> => {
    await refreshAll(batch);
    for (const runner of batch) if (runner.state?.isOpen === false) await cancelAll(runner);
    const open = batch.filter((runner) => runner.state?.isOpen === true && runner.wants());
    const due = new Map<string, DueRow[]>(open.map(({ webhookId }) => [webhookId, []]));
    for (const row of open.length === 0
      ? []
      : await readDue(
          db,
          open.map((runner) => runner.wanted()),
        ))
      due.get(row.webhook_id)?.push(row);
    for (const runner of open) {
      runner.loaded(due.get(runner.webhookId) ?? []);
      loaded(runner);
    }
  };

  const loadAll = async (): Promise<void> => {
    try {
      while (asking.size > 0) {
        const batch = [...asking].slice(0, BATCH);
        for (const runner of batch) asking.delete(runner);
        await load(batch.filter((runner) => runner.wants()));
      }
    } finally {
      // At once, so that nobody asks in between and is forgotten.
      loading = null;
    }
  };

  return {
    ask: (runner: Runner): void => {
      if (!runner.wants()) return;
      asking.add(runner);
      loading ??= loadAll();
      guarded(loading);
    },
    idle: async (): Promise<void> => {
      asking.clear();
      await loading;
    },
  };
};
