// One command to each agent, queued by one caller that names a thousand devices per request: from the first request to the last ack.
import { z } from "zod";
import { createHttp } from "../../../agent-sim/agent/index.ts";
import { summarise } from "../arithmetic.ts";
import { checkCommands } from "../read-back.ts";
import type { Finding } from "../report.ts";
import { InvalidRun } from "../rounds.ts";
import type { BenchStage } from "../stage.ts";
import { type Acknowledged, type BenchCluster, openCluster, untilAcknowledged } from "./cluster.ts";

const CHUNK = 1_000;
const ROUNDS = 3;

const Queued = z.object({ data: z.object({ items: z.array(z.object({ deviceId: z.string(), command: z.object({ commandId: z.string() }).nullable() })) }) });

/** The caller sends its requests one after another over one connection. */
export const queueAll = async ({ tenant, members, nodes: [node] }: BenchCluster): Promise<number> => {
  const http = createHttp(node?.url ?? "", 1);
  const queued = new Set<string>();
  try {
    for (let at = 0; at < members.length; at += CHUNK) {
      const deviceIds = members.slice(at, at + CHUNK).map(({ deviceId }) => deviceId);
      const { status, body } = await http.call({
        method: "POST",
        path: "/v1/devices/commands",
        headers: { "x-api-key": tenant.apiKey, "x-svc-tenant-id": tenant.tenantId },
        body: JSON.stringify({ deviceIds, type: "ping", payload: {} }),
      });
      const answer = Queued.safeParse(body);
      if (!answer.success) throw new Error(`POST /v1/devices/commands answered ${status} ${JSON.stringify(body).slice(0, 200)}`);
      for (const { command } of answer.data.data.items) if (command !== null) queued.add(command.commandId);
    }
  } finally {
    http.close();
  }
  if (queued.size !== members.length) throw new InvalidRun(`${queued.size} commands for ${members.length} devices`);
  return queued.size;
};

export const oneEach = (stage: BenchStage, agents: number): Promise<readonly Finding[]> =>
  stage.scope(async (scope) => {
    const cluster = await openCluster(scope, { nodes: 2, agents });
    const rounds: Acknowledged[] = [];
    for (let round = 0; round <= ROUNDS; round += 1) {
      const found = await untilAcknowledged(cluster, () => queueAll(cluster));
      process.stderr.write(`  ${String(round).padStart(2)}  one command to each of ${found.commands} agents in ${found.seconds.toFixed(2)} s\n`);
      if (round > 0) rounds.push(found);
    }
    await checkCommands(scope, cluster.tenant.tenantId, cluster.created);
    const { value, min, max } = summarise(rounds.map(({ seconds }) => seconds));
    return [{ id: "one-each", value, span: [min, max], rounds, note: `${agents} agents` }];
  });
