// What passes through tunnels, counted in memory and added to their rows every few seconds.
import type { Clock } from "../../core/clock.ts";
import type { SqlTx } from "../../core/events.ts";
import type { Job } from "../../platform/jobs.ts";
import { addTunnelUse, type TunnelUse } from "./store.ts";

const EVERY_MS = 10_000;

export const createTunnelUsage = ({ db, clock }: { readonly db: SqlTx; readonly clock: Clock }) => {
  const used = new Map<string, TunnelUse>();
  const add = (tunnelId: string, { requests, bytesIn, bytesOut }: TunnelUse): void => {
    const counted = used.get(tunnelId) ?? { requests: 0, bytesIn: 0, bytesOut: 0 };
    counted.requests += requests;
    counted.bytesIn += bytesIn;
    counted.bytesOut += bytesOut;
    used.set(tunnelId, counted);
  };
  const flush: Job = {
    name: "tunnels.usage",
    everyMs: EVERY_MS,
    run: async () => {
      if (used.size === 0) return;
      const taken = new Map(used);
      used.clear();
      try {
        await addTunnelUse(db, taken, clock.now());
      } catch (error) {
        for (const [tunnelId, each] of taken) add(tunnelId, each);
        throw error;
      }
    },
  };
  return { add, jobs: [flush] };
};
export type TunnelUsage = ReturnType<typeof createTunnelUsage>;
