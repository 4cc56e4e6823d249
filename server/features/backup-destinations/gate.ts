// Judges requests to the repositories of this installation, and counts what they hold.
import type { TenantId } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import { permitsAction, type RepositoryGate, type RepositoryVerdict } from "../../core/ports/repository-access.ts";
import type { Db } from "../../platform/database/db.ts";
import type { RepositoryTokens } from "./repository-tokens.ts";
import { addBytes, saveRepository, storedBytes } from "./store/repositories.ts";

export interface GateDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly tokens: RepositoryTokens;
  /** The gigabytes that the tenant may store here; null: no limit. */
  readonly storageLimit: (tenantId: TenantId) => Promise<number | null>;
}

const GIGABYTE = 1_000_000_000;
/** So long another node's uploads are not counted. */
const CACHE_MS = 5_000;

const refuse = (status: 401 | 403 | 507, reason: string): RepositoryVerdict => ({ allowed: false, status, reason });

export const createRepositoryGate = ({ db, clock, tokens, storageLimit }: GateDeps): RepositoryGate => {
  /** The bytes that each tenant may still add, less what this node has added since. */
  const spaces = createSpaces({
    clock,
    read: async (tenantId) => {
      const limit = await storageLimit(tenantId);
      return limit === null ? null : limit * GIGABYTE - (await storedBytes(db, { tenantId }));
    },
  });
  return {
    judge: async ({ repositoryId, token, action, kind, bytes }) => {
      if (token === null) return refuse(401, "no credentials");
      const claim = tokens.read(token);
      if (claim === null) return refuse(401, "the credentials are not valid any more");
      if (claim.repositoryId !== repositoryId) return refuse(403, "the credentials are for another repository");
      if (!permitsAction(claim, action, kind)) return refuse(403, `the right ${claim.right} does not cover ${action} of ${kind}`);
      const isGrowing = action === "add" && kind !== "locks";
      if (!isGrowing) return { allowed: true, claim, space: null };
      const space = await spaces.of(claim.tenantId);
      if (space !== null && space < bytes) return refuse(507, "the plan has no space for more backups");
      return { allowed: true, claim, space };
    },
    changed: async ({ tenantId, repositoryId }, bytes) => {
      spaces.take(tenantId, bytes);
      await addBytes(db, { tenantId }, repositoryId, bytes);
    },
    measured: async ({ tenantId, repositoryId }, bytes) => {
      await saveRepository(db, { tenantId }, repositoryId, { bytes: BigInt(Math.max(0, Math.trunc(bytes))) });
      spaces.forget(tenantId);
    },
  };
};

interface SpacesDeps {
  readonly clock: Pick<Clock, "elapsed">;
  readonly read: (tenantId: TenantId) => Promise<number | null>;
}
const MAX_TENANTS = 10_000;

const createSpaces = ({ clock, read }: SpacesDeps) => {
  const known = new Map<string, { readonly atMs: number; space: Promise<number | null>; taken: number }>();
  return {
    of: async (tenantId: TenantId): Promise<number | null> => {
      const found = known.get(tenantId);
      if (found !== undefined && clock.elapsed() - found.atMs < CACHE_MS) {
        const space = await found.space;
        return space === null ? null : space - found.taken;
      }
      if (known.size >= MAX_TENANTS) known.clear();
      const fresh = { atMs: clock.elapsed(), space: read(tenantId), taken: 0 };
      known.set(tenantId, fresh);
      try {
        return await fresh.space;
      } catch (error) {
        known.delete(tenantId);
        throw error;
      }
    },
    take: (tenantId: TenantId, bytes: number): void => {
      const found = known.get(tenantId);
      if (found !== undefined) found.taken += bytes;
    },
    forget: (tenantId: TenantId): void => {
      known.delete(tenantId);
    },
  };
};
