// Rows of load tests: one per tenant, so only one can run.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import { type LoadTest, LoadTestResults, type TenantId } from "../../../../protocol/index.ts";
import { secondsFromNow } from "../../../core/clock.ts";
import type { Clients } from "../../../core/database.ts";
import type { SystemScope } from "../../../core/scope.ts";

const DEFAULTS = { duration: 30, concurrency: 10, endpoints: ["/v1/devices"] };

export interface StoredLoadTest {
  readonly loadTestId: string;
  readonly status: string;
  readonly isCanceled: boolean;
  readonly shown: LoadTest;
}

export const findLoadTest = async (db: Clients, scope: SystemScope): Promise<StoredLoadTest | null> => {
  const row = await db.for(scope).loadTest.findFirst();
  if (row === null) return null;
  const { duration, concurrency, endpoints, status, startedAt } = row;
  const shown: LoadTest = {
    status: status === "running" ? "running" : "completed",
    tenantId: scope.tenantId,
    lastRun: startedAt.toISOString(),
    results: row.results === null ? null : LoadTestResults.parse(row.results),
    configuration: { duration, concurrency, endpoints },
  };
  return { loadTestId: row.loadTestId, status, isCanceled: row.cancelAskedAt !== null, shown };
};

export const notStarted = ({ tenantId }: SystemScope): LoadTest => ({ status: "not_started", tenantId, lastRun: null, results: null, configuration: DEFAULTS });

export interface NewLoadTest {
  readonly loadTestId: string;
  readonly duration: number;
  readonly concurrency: number;
  readonly endpoints: string[];
  readonly startedBy: string;
  readonly nodeId: string;
  readonly results: LoadTestResults;
  readonly startedAt: Date;
}

/** False when one runs. */
export const beginLoadTest = async (tx: Clients, scope: SystemScope, test: NewLoadTest, graceSeconds: number): Promise<boolean> => {
  const deadlineAt = secondsFromNow(test.duration + graceSeconds, test.startedAt);
  const row = { ...test, status: "running", deadlineAt, cancelAskedAt: null, finishedAt: null };
  const { loadTest } = tx.for(scope);
  if ((await loadTest.createMany({ data: [row], skipDuplicates: true })).count === 1) return true;
  return (await loadTest.updateMany({ where: { status: { not: "running" } }, data: row })).count === 1;
};

/** False when none runs. */
export const askToCancel = async (tx: Clients, scope: SystemScope, cancelAskedAt: Date): Promise<boolean> =>
  (await tx.for(scope).loadTest.updateMany({ where: { status: "running" }, data: { cancelAskedAt } })).count === 1;

const json = (results: LoadTestResults): Prisma.InputJsonObject => results as Prisma.InputJsonObject; // as: a record of numbers and texts

/** False when this run is no longer the tenant's running one, or when somebody has canceled it. */
export const writeLoadTest = async (db: Clients, scope: SystemScope, loadTestId: string, results: LoadTestResults): Promise<boolean> =>
  (await db.for(scope).loadTest.updateMany({ where: { loadTestId, status: "running", cancelAskedAt: null }, data: { results: json(results) } })).count === 1;

export interface LoadTestEnd {
  readonly results: LoadTestResults;
  readonly finishedAt: Date;
}

/** False when the run has ended already. */
export const endLoadTest = async (tx: Clients, scope: SystemScope, loadTestId: string, { results, finishedAt }: LoadTestEnd): Promise<boolean> => {
  const data = { status: results.outcome, results: json(results), deadlineAt: null, finishedAt };
  return (await tx.for(scope).loadTest.updateMany({ where: { loadTestId, status: "running" }, data })).count === 1;
};

export const findPastDeadline = async (
  db: Clients,
  now: Date,
  limit: number,
): Promise<readonly { readonly tenantId: TenantId; readonly loadTestId: string; readonly results: LoadTestResults | null }[]> => {
  const where = { deadlineAt: { lt: now } };
  const rows = await db.system.loadTest.findMany({ where, take: limit, select: { tenantId: true, loadTestId: true, results: true } });
  return rows.map(({ tenantId, loadTestId, results }) => ({
    tenantId: tenantId as TenantId,
    loadTestId,
    results: LoadTestResults.safeParse(results).data ?? null,
  }));
};
