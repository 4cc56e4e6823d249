// One limit over several nodes: what is admitted of a load that is spread over them, with Redis and without.

import { type Http, type HttpAnswer, type PairedDevice, pause, systemTime as time } from "../../agent-sim/agent/index.ts";
import { createLatency, type Latency } from "../../agent-sim/fleet/latency.ts";
import { signedHeaders } from "../../protocol/index.ts";
import { inLanes, orNoAnswer, withClients } from "./calls.ts";
import { type Rig, withRig } from "./rig.ts";
import type { Context, Outcome, Scenario } from "./scenario.ts";
import { withSql } from "./sql.ts";

const PATH = "/v1/agent/me";
const LANES = 8;
/** The window that the interface names; the first call that is admitted begins it. */
const WINDOW_MS = 60_000;
const TOLERANCE = 0.05;

interface Cell {
  readonly limit: number;
  readonly nodes: number;
  /** Times the limit. */
  readonly load: number;
}
interface Judged {
  readonly over: boolean;
  readonly under: boolean;
  readonly share: number;
}

/** Signs each call at a time of its own. */
const createStamps = (): (() => Date) => {
  let lastMs = 0;
  return () => {
    lastMs = Math.max(lastMs + 1, time.wallMs());
    return new Date(lastMs);
  };
};
const stamp = createStamps();

interface Spent {
  readonly admitted: readonly number[];
  readonly last: HttpAnswer | null;
}
/** How many each of the nodes admitted. */
const spend = async (clients: readonly Http[], member: PairedDevice, calls: number, latency: Latency): Promise<Spent> => {
  const admitted = clients.map(() => 0);
  let last: HttpAnswer | null = null;
  await inLanes(Array.from({ length: calls }), LANES, async (_, index) => {
    const at = index % clients.length;
    const startMs = time.elapsedMs();
    const answer = await orNoAnswer((clients[at] as Http).call({ method: "GET", path: PATH, headers: signedHeaders(member, "", stamp()) }));
    latency.add(time.elapsedMs() - startMs);
    if (answer?.status === 200) admitted[at] = (admitted[at] ?? 0) + 1;
    else if (answer !== null && answer.status !== 429) throw new Error(`a call was answered ${answer.status}`);
    last = answer ?? last;
  });
  return { admitted, last };
};
const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

const judge = ({ limit }: Cell, calls: number, admitted: number): Judged => ({
  over: admitted > limit * (1 + TOLERANCE),
  under: admitted < Math.min(limit, calls) * (1 - TOLERANCE),
  share: admitted / limit,
});

const untilReset = async ({ last }: Spent): Promise<void> => {
  const resetMs = Number(last?.headers["x-ratelimit-reset"] ?? 0) * 1_000;
  await pause(time, Math.min(WINDOW_MS, Math.max(0, resetMs - time.wallMs())) + 1_000);
};

interface Tried {
  readonly judged: readonly Judged[];
  /** The most that one node admitted on its own, as a share of the limit. */
  readonly alone: readonly number[];
}

/** One rig for each limit, because the nodes are started with it. */
const tryLimit = ({ seed, scale, control }: Context, limit: number, latency: Latency): Promise<Tried> => {
  const full = scale.agents > 50;
  const count = full ? 3 : 2;
  return withRig({ nodes: count, seed, redis: !control, env: { RATE_LIMIT_AGENT: String(limit) } }, async (rig: Rig) => {
    // The rig's tenant has no limits until its operator takes that back; no node has asked yet.
    await withSql(rig.postgres, (sql) => sql.query("update tenants set rate_limit_overrides = '{}'"));
    return withClients(rig.nodes, async (clients) => {
      const loads = full ? [0.9, 1, 1.5, 3] : [0.9, 3];
      const cells = Array.from({ length: count }, (_, n) => n + 1).flatMap((nodes) => loads.map((load): Cell => ({ limit, nodes, load })));
      const members = [...(await rig.provision(cells.length + 1))];
      const judged: Judged[] = [];
      for (const cell of cells) {
        const member = members.pop() as PairedDevice;
        const calls = Math.round(cell.load * limit);
        const spread = clients.slice(0, cell.nodes);
        const first = await spend(spread, member, calls, latency);
        judged.push(judge(cell, calls, sum(first.admitted)));
        if (!full || cell.load < 3 || cell.nodes < count) continue;
        await untilReset(first);
        judged.push(judge(cell, calls, sum((await spend(spread, member, calls, latency)).admitted)));
      }
      if (control) return { judged, alone: [] };
      await rig.redis?.kill();
      const { admitted } = await spend(clients, members.pop() as PairedDevice, 3 * limit * count, latency);
      return { judged, alone: admitted.map((each) => each / limit) };
    });
  });
};

const run = async (context: Context): Promise<Outcome> => {
  const latency = createLatency();
  const tried: Tried[] = [];
  for (const limit of context.scale.agents > 50 ? [3, 10, 60, 100] : [10]) tried.push(await tryLimit(context, limit, latency));
  const judged = tried.flatMap((each) => each.judged);
  const alone = tried.flatMap((each) => each.alone);
  const shares = judged.map(({ share }) => share);
  return {
    n: judged.length + alone.length,
    faults: tried.length,
    violations: {
      "over-admitted": judged.filter(({ over }) => over).length,
      "under-admitted": judged.filter(({ under }) => under).length,
      "over-admitted-alone": alone.filter((share) => share > 1).length,
    },
    latencyMs: latency.percentiles(),
    notes: [
      "n counts windows; a window begins with its first admitted call and lasts 60 s, and all calls of one are sent within it; ms are of single calls",
      `admitted with Redis ${Math.min(...shares).toFixed(2)} to ${Math.max(...shares).toFixed(2)} of the limit, loads below it included`,
      `without Redis each node admitted ${alone.length === 0 ? "-" : `${Math.min(...alone).toFixed(2)} to ${Math.max(...alone).toFixed(2)}`} of the limit`,
      "windows are fixed: 60 s that lie across two of them may hold twice the limit",
    ],
  };
};

export const sharedLimitScenarios: readonly Scenario[] = [
  {
    name: "shared-limits",
    promise: "S15",
    claim: "of a load on several nodes 95 to 105 % of the limit is admitted in a window; without Redis no node admits more than the limit",
    needsRedis: true,
    control: { how: "the nodes do not share a Redis: each counts for itself", red: "over-admitted" },
    run,
  },
];
