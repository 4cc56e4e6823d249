// What passes through tunnels, added to their rows every few seconds.
import type { Clock } from "../../core/clock.ts";
import type { SqlTx } from "../../core/events.ts";
import { createUseCounter } from "../../core/structures/use-counter.ts";
import type { Job } from "../../platform/jobs.ts";
import { addTunnelUse, TUNNEL_USE } from "./store.ts";

const EVERY_MS = 10_000;

export const createTunnelUsage = ({ db, clock }: { readonly db: SqlTx; readonly clock: Clock }) => {
  const counter = createUseCounter(TUNNEL_USE);
  const flush: Job = { name: "tunnels.usage", everyMs: EVERY_MS, run: () => counter.flush((used) => addTunnelUse(db, used, clock.now())) };
  return { add: counter.add, jobs: [flush] };
};
export type TunnelUsage = ReturnType<typeof createTunnelUsage>;
