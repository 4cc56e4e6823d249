// One rate limit over several nodes: how much of a load they admit together, with and without Redis.

import { type Http, type HttpAnswer, type PairedDevice, pause, systemTime as time } from "../../../agent-sim/agent/index.ts";
import { createLatency, type Latency } from "../../../agent-sim/fleet/latency.ts";
import { signedHeaders } from "../../../protocol/index.ts";
import { inLanes, orNoAnswer, withClients } from "../rig/calls.ts";
import { type Rig, withRig } from "../rig/rig.ts";
import { withSql } from "../rig/sql.ts";
import type { Context, Scenario, ScenarioOutcome } from "../scenario.ts";

const PATH = "/v1/agent/me";
const LANES = 8;
/** The window of the public limit; its first admitted call starts it. */
const WINDOW_MS = 60_000;
const TOLERANCE = 0.05;

interface Cell {
  readonly limit: number;
  readonly nodes: number;
  /** The load as a multiple of the limit. */
  readonly load: number;
}
interface Judged {
  readonly over: boolean;
  readonly under: boolean;
  readonly share: number;
}

/** Gives each signature its own time. */
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
/** Spends the calls and counts how many each node admitted. */
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
  /** The share of the limit that each node admitted without Redis. */
  readonly alone: readonly number[];
}

/** One rig per limit, because the limit is a start setting of the nodes. */
const tryLimit = ({ seed, scale, control }: Context, limit: number, latency: Latency): Promise<Tried> => {
  const full = scale.agents > 50;
  const count = full ? 3 : 2;
  return withRig({ nodes: count, seed, redis: !control, env: { RATE_LIMIT_AGENT: String(limit) } }, async (rig: Rig) => {
    // The rig's tenant starts without limits. No node has cached it yet.
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

const run = async (context: Context): Promise<ScenarioOutcome> => {
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
      "n counts windows; a window starts with its first admitted call and lasts 60 s, and all calls of a window fall into it; ms are of single calls",
      `with Redis the nodes admitted ${Math.min(...shares).toFixed(2)} to ${Math.max(...shares).toFixed(2)} of the limit, including loads below it`,
      `without Redis each node admitted ${alone.length === 0 ? "-" : `${Math.min(...alone).toFixed(2)} to ${Math.max(...alone).toFixed(2)}`} of the limit`,
      "windows are fixed: 60 s across two windows may admit twice the limit",
    ],
  };
};

export const sharedLimitScenarios: readonly Scenario[] = [
  {
    name: "shared-limits",
    promise: "S15",
    claim: "several nodes together admit 95 to 105 % of the limit in a window; without Redis no node admits more than the limit",
    needsRedis: true,
    control: { how: "the nodes share no Redis, so each counts for itself", red: "over-admitted" },
    run,
  },
];
