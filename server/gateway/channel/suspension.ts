// Closes the sockets of tenants that were suspended while their agents were connected: the upgrade refuses only those who come later.
import { CLOSE } from "../../../protocol/index.ts";
import type { TenantLookup } from "../../core/lookups.ts";
import { endSession, type Session } from "./session.ts";

export interface SuspensionDeps {
  readonly tenants: Pick<TenantLookup, "suspended">;
  /** Every open socket. */
  readonly all: ReadonlySet<Session>;
  readonly onError: (error: unknown) => void;
}

export const createSuspension = ({ tenants, all, onError }: SuspensionDeps): (() => Promise<void>) => {
  let looking = false;

  const look = async (): Promise<void> => {
    if (all.size === 0) return;
    const suspended = await tenants.suspended([...new Set([...all].map(({ tenantId }) => tenantId))]);
    for (const session of all) if (suspended.has(session.tenantId)) endSession(session, CLOSE.tenantSuspended);
  };

  return async () => {
    if (looking) return;
    looking = true;
    await look()
      .catch(onError)
      .finally(() => {
        looking = false;
      });
  };
};
