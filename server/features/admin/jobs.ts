// The background jobs of all nodes with their last runs. Each node writes its own now and then, so that any node can show them all.
import type { BackgroundJob, contract } from "../../../protocol/index.ts";
import type { SqlTx } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import type { FindStuck } from "../../core/people/stuck.ts";
import { statement } from "../../core/statements.ts";
import type { Job, JobBook, JobRun } from "../../platform/jobs.ts";

export interface JobsViewDeps {
  readonly db: SqlTx;
  readonly nodeId: () => string;
  readonly book: JobBook;
}

interface StoredRun extends JobRun {
  readonly nodeId: string;
}

const REPORT_EVERY_MS = 15_000;
/** A node that has not reported for this long is gone. */
const FORGET_SECONDS = 300;
const FAILURES = 3;

const REPORT = statement(
  "jobs.report",
  `with gone as (delete from job_runs where written_at < now() - $8 * interval '1 second')
   insert into job_runs (node_id, name, started_at, duration_ms, runs, failures, failed_since, error)
   select $1, r.* from unnest($2::text[], $3::timestamptz[], $4::float8[], $5::int[], $6::int[], $7::timestamptz[], $9::text[]) as r
   on conflict (node_id, name) do update set started_at = excluded.started_at, duration_ms = excluded.duration_ms, runs = excluded.runs,
     failures = excluded.failures, failed_since = excluded.failed_since, error = excluded.error, written_at = now()`,
);

const report = (sql: SqlTx, nodeId: string, runs: readonly JobRun[]): Promise<unknown> =>
  sql.query(REPORT, [
    nodeId,
    runs.map(({ name }) => name),
    runs.map(({ startedAt }) => startedAt),
    runs.map(({ durationMs }) => durationMs),
    runs.map((run) => run.runs),
    runs.map(({ failures }) => failures),
    runs.map(({ failedSince }) => failedSince),
    FORGET_SECONDS,
    runs.map(({ error }) => error),
  ]);

const READ = statement<StoredRun>(
  "jobs.read",
  `select node_id as "nodeId", name, started_at as "startedAt", duration_ms as "durationMs", runs, failures, failed_since as "failedSince", error
     from job_runs where written_at > now() - $1 * interval '1 second' order by node_id, name limit 10000`,
);

export const createJobsView = ({ db, nodeId, book }: JobsViewDeps) => {
  /** This node's as of now, the others' as they reported them. */
  const all = async (): Promise<readonly StoredRun[]> => {
    const mine = nodeId();
    const others = (await db.query(READ, [FORGET_SECONDS])).filter((run) => run.nodeId !== mine);
    return [...book.runs().map((run) => ({ ...run, nodeId: mine })), ...others];
  };
  const job: Job = { name: "jobs.report", everyMs: REPORT_EVERY_MS, run: async () => void (await report(db, nodeId(), book.runs())) };

  const stuck: FindStuck = async (limit) =>
    (await all())
      .filter(({ failures }) => failures >= FAILURES)
      .slice(0, limit)
      .map((run) => ({
        kind: "job_failing",
        tenantId: null,
        id: run.name,
        since: run.failedSince ?? run.startedAt,
        reason: `it failed ${run.failures} times in a row on node ${run.nodeId}: ${run.error ?? ""}`,
        whatToDo: "Find the error in the node's log. The job runs again by itself.",
      }));

  const handlers: Pick<Handlers<typeof contract.admin>, "listJobs" | "runJob"> = {
    listJobs: async () => {
      const runs = await all();
      return { items: book.jobs().map((each) => shownJob(each, runs)) };
    },
    runJob: ({ fail, commit }, { name }) =>
      commit(async (_tx, afterwards) => {
        if (!book.jobs().some((each) => each.name === name)) throw fail("JOB_NOT_FOUND", { name });
        afterwards(() => book.wake(name));
        return { name, nodeId: nodeId(), requestedAt: book.now().toISOString() };
      }),
  };
  return { job, stuck, handlers };
};

const shownJob = ({ name, everyMs }: Job, runs: readonly StoredRun[]): BackgroundJob => ({
  name,
  everySeconds: (typeof everyMs === "function" ? everyMs() : everyMs) / 1_000,
  nodes: runs
    .filter((run) => run.name === name)
    .map(({ nodeId, startedAt, durationMs, failures, failedSince, error, ...run }) => ({
      nodeId,
      startedAt: startedAt.toISOString(),
      durationMs,
      runs: run.runs,
      failures,
      ...(failedSince === null ? {} : { failedSince: failedSince.toISOString() }),
      ...(error === null ? {} : { error }),
    })),
});
