// Delivers: leases endpoints that are due, sends what waits for them, writes the results. Several nodes share the endpoints; one node has each at a time.
import { createDeliverySession, type DeliverySession, type WorkerDeps } from "./delivery-session.ts";

export const createWorker = (deps: WorkerDeps) => {
  let session: DeliverySession | null = null;
  return {
    /** Until nothing is due any more, or the signal ends it. */
    run: async (signal: AbortSignal): Promise<void> => {
      session = createDeliverySession(deps);
      try {
        await session.run(signal);
      } finally {
        session = null;
      }
    },
    /** There is something new for these tenants; false when the job does not run and must be woken. */
    wake: (tenantIds: readonly string[]): boolean => {
      session?.wake(tenantIds);
      return session !== null;
    },
  };
};
