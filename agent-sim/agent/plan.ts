// The intervals and limits that the gateway sets for its agents: the defaults, and how `welcome` and `config` change them.
import { z } from "zod";

/** The longest wait that a gateway can impose. */
export const LONGEST_WAIT_MS = 3_600_000;
/** The shortest interval: a fraction of a millisecond would keep the agent busy with nothing else. */
export const SHORTEST_INTERVAL_MS = 100;

export const DEFAULT_AGENT_PLAN = {
  heartbeat: { intervalSec: 30, jitterPct: 10, graceMs: 10_000 },
  limits: { maxOutputBytes: 65_536, inboundPerSec: 20 },
  reconnect: { firstWindowMs: 30_000, baseMs: 1_000, capMs: 300_000, stableAfterSec: 60 },
  poll: { intervalSec: 30, safetySec: 900 },
  ack: { resendMs: 15_000, capMs: 300_000 },
};
export type AgentPlan = typeof DEFAULT_AGENT_PLAN;

const Figures = z.record(z.string(), z.unknown()).catch({});
/** A plan as `welcome` and `config` send it: any group and any value may be missing, and unknown ones may be there. */
export const GivenPlan = z.object({ heartbeat: Figures, limits: Figures, reconnect: Figures, poll: Figures, ack: Figures });
type GivenPlan = z.infer<typeof GivenPlan>;

const boundsOf = (name: string): readonly [least: number, most: number] => {
  if (name.endsWith("Pct")) return [0, 100];
  if (name.endsWith("Ms")) return [SHORTEST_INTERVAL_MS, LONGEST_WAIT_MS];
  return name.endsWith("Sec") && name !== "inboundPerSec" ? [SHORTEST_INTERVAL_MS / 1_000, LONGEST_WAIT_MS / 1_000] : [0, Number.MAX_SAFE_INTEGER];
};

const adjusted = <G extends Record<string, number>>(before: G, given: Readonly<Record<string, unknown>>): G => {
  const after: Record<string, number> = { ...before };
  for (const name of Object.keys(before)) {
    const value = given[name];
    const [least, most] = boundsOf(name);
    if (typeof value === "number" && Number.isFinite(value) && value > 0) after[name] = Math.min(most, Math.max(least, value));
  }
  return after as G;
};

/** Missing and nonsensical values leave the previous ones unchanged. */
export const adjustPlan = (before: AgentPlan, given: GivenPlan): AgentPlan => ({
  heartbeat: adjusted(before.heartbeat, given.heartbeat),
  limits: adjusted(before.limits, given.limits),
  reconnect: adjusted(before.reconnect, given.reconnect),
  poll: adjusted(before.poll, given.poll),
  ack: adjusted(before.ack, given.ack),
});
