// Closes the sockets of tenants that were suspended while their agents were connected: the upgrade refuses only those who come later.
import { CLOSE } from "../../../protocol/index.ts";
import type { TenantDirectory } from "../../core/directories.ts";
import { endSession, type Session } from "./session.ts";

export interface SuspensionDeps {
  readonly tenants: TenantDirectory;
  /** Every open socket. */
  readonly all: ReadonlySet<Session>;
  readonly onError: (error: unknown) => void;
}

export const createSuspension = ({ tenants, all, onError }: SuspensionDeps): (() => Promise<void>) => {
  let looking = false;

  const look = async (): Promise<void> => {
    // One after the other: many tenants must not become many questions at once.
    for (const tenantId of new Set([...all].map(({ agent }) => agent.tenantId))) {
      const tenant = await tenants.find(tenantId);
      if (tenant?.status !== "suspended") continue;
      for (const session of all) if (session.agent.tenantId === tenantId) endSession(session, CLOSE.tenantSuspended);
    }
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
