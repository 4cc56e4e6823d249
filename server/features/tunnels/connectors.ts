// Connectors of this node: carriers that a tunnel's token opened. They end when the token is rotated, or the tunnel is stopped or deleted, on whichever node
// that happens.

import type { Carriers } from "../../core/ports/carriers.ts";
import { createBoundedCache } from "../../core/structures/bounded-cache.ts";
import type { TunnelRow } from "./store.ts";
import { hashOf } from "./visits/gate.ts";

type Known = Pick<TunnelRow, "tunnelId" | "tenantId" | "status" | "tokenHash">;

export interface ConnectorsDeps {
  readonly carriers: () => Pick<Carriers, "all" | "end">;
  readonly byToken: (tokenHash: string) => Promise<Known | null>;
  readonly byId: (tenantId: string, tunnelId: string) => Promise<Known | null>;
  readonly onError: (error: unknown) => void;
}

const MAX_TOKENS = 10_000;

export const createConnectors = ({ carriers, byToken, byId, onError }: ConnectorsDeps) => {
  /** The token that opened the carriers of each tunnel. */
  const tokens = createBoundedCache<string>(MAX_TOKENS);
  const end = (tunnelId: string): void => {
    tokens.delete(tunnelId);
    carriers().end(tunnelId);
  };
  const check = async (tenantId: string, tunnelId: string): Promise<void> => {
    const row = await byId(tenantId, tunnelId);
    if (row === null || row.status === "stopped" || row.tokenHash !== tokens.get(tunnelId)) end(tunnelId);
  };
  return {
    /** The tunnel whose token a connector brings. */
    admit: async (token: string): Promise<{ readonly key: string; readonly tenantId: string } | null> => {
      const row = await byToken(hashOf(token));
      if (row === null || row.status === "stopped") return null;
      const { tunnelId, tenantId, tokenHash } = row;
      // What an earlier token opened ends here, even if nobody has told this node.
      if (tokens.has(tunnelId) && tokens.get(tunnelId) !== tokenHash) end(tunnelId);
      tokens.set(tunnelId, tokenHash);
      return { key: tunnelId, tenantId };
    },
    /** Something of these tenants has changed. */
    recheck: (tenantIds: readonly string[]): void => {
      if (tokens.size === 0) return;
      const open = new Map(
        carriers()
          .all()
          .map(({ key, tenantId }) => [key, tenantId]),
      );
      for (const [key, tenantId] of open) if (key.startsWith("tun_") && tenantIds.includes(tenantId)) check(tenantId, key).catch(onError);
    },
  };
};
