// The same work on more nodes and for a larger fleet: what a command costs the nodes must hardly change.
import { summarise } from "../arithmetic.ts";
import { checkCommands } from "../read-back.ts";
import type { Finding } from "../report.ts";
import type { BenchStage } from "../stage.ts";
import { bursts, type ClusterOptions, type CommandPlan, openCluster } from "./cluster.ts";

interface Cost {
  readonly nodes: number;
  readonly agents: number;
  readonly microsecondsEach: number;
  readonly perSecond: number;
}

const costOf = (stage: BenchStage, { nodes: count, agents }: ClusterOptions, { rounds, windowMs }: CommandPlan): Promise<Cost> =>
  stage.scope(async (scope) => {
    const cluster = await openCluster(scope, { nodes: count, agents });
    const found = await bursts(cluster, rounds, { windowMs });
    await checkCommands(scope, cluster.tenant.tenantId, cluster.created);
    return {
      nodes: count,
      agents,
      microsecondsEach: summarise(found.map(({ microsecondsEach }) => microsecondsEach)).value,
      perSecond: summarise(found.map(({ perSecond }) => perSecond)).value,
    };
  });

export const nodes = async (stage: BenchStage, plan: CommandPlan): Promise<readonly Finding[]> => {
  const rows: Cost[] = [];
  for (const options of [1, 2, 3].map((count) => ({ nodes: count, agents: 1_000 })).concat({ nodes: 1, agents: plan.agents }))
    rows.push(await costOf(stage, options, plan));
  const costs = rows.map(({ microsecondsEach }) => microsecondsEach);
  return [
    {
      id: "nodes",
      value: Math.max(...costs) / Math.min(...costs),
      rounds: rows,
      note: rows.map((row) => `${row.nodes}n/${row.agents}: ${Math.round(row.perSecond)}/s`).join(", "),
    },
  ];
};
