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
/** Counts one visit. The result counts its bytes. */
export const countVisit = (use: TunnelUsage["add"], tunnelId: string): ((bytesIn: number, bytesOut: number) => void) => {
  use(tunnelId, { requests: 1, bytesIn: 0, bytesOut: 0 });
  return (bytesIn, bytesOut) => use(tunnelId, { requests: 0, bytesIn, bytesOut });
};
export type TunnelUsage = ReturnType<typeof createTunnelUsage>;
