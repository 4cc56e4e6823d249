// Reads of what is stuck.
import type { Clients } from "../../../core/database.ts";

/** Steps of the roll-up that lag by more than so many of their own length. */
export const findMetricsBehind = async (db: Clients, now: Date, steps: number): Promise<readonly { readonly stepSeconds: number; readonly at: Date }[]> => {
  const rows = await db.system.metricProgress.findMany({ select: { stepSeconds: true, at: true } });
  return rows.filter(({ stepSeconds, at }) => now.getTime() - at.getTime() > steps * stepSeconds * 1_000);
};

export const findLostLoadTests = async (db: Clients, before: Date, limit: number) => {
  const where = { deadlineAt: { lt: before } };
  const rows = await db.system.loadTest.findMany({
    where,
    orderBy: { deadlineAt: "asc" },
    take: limit,
    select: { tenantId: true, nodeId: true, deadlineAt: true },
  });
  return rows.flatMap(({ deadlineAt, ...row }) => (deadlineAt === null ? [] : [{ ...row, since: deadlineAt }]));
};
