// Finds API keys for authentication. Caches them for at most five seconds and records when an active key was used.
import type { ApiKey, Role } from "../../../protocol/index.ts";
import { ROLES } from "../../../protocol/index.ts";
import { createCached } from "../../core/cached.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import type { ApiKeyLookup, ApiKeyRecord, Memberships } from "../../core/lookups.ts";
import type { Job } from "../../platform/jobs.ts";
import { hashOf, isWellFormed } from "./keys.ts";
import { findByHash, writeUses } from "./store.ts";

// A key revoked through another node keeps working on this one for up to this long.
const CACHE_MS = 5_000;
const WRITE_USES_MS = 60_000;
const USER = "user:";

interface ApiKeyLookupDeps {
  readonly db: Tx;
  readonly clock: Clock;
  readonly memberships: Memberships;
}

export const lowerOf = (a: Role, b: Role): Role => (ROLES.indexOf(a) <= ROLES.indexOf(b) ? a : b);

export const createApiKeyLookup = ({ db, clock, memberships }: ApiKeyLookupDeps) => {
  // Cached by hash, so the process holds no key in memory.
  const keys = createCached<ApiKey>({ load: (hash) => findByHash(db, Buffer.from(hash, "hex")), clock, ttlMs: CACHE_MS });
  let uses = new Map<string, Date>();

  const lookup: ApiKeyLookup = {
    find: async (apiKey) => {
      if (!isWellFormed(apiKey)) return null;
      const key = await keys.get(hashOf(apiKey).toString("hex"));
      if (key === null) return null;
      const { keyId, tenantId, ipAllowlist, createdBy } = key;
      const creator = createdBy.startsWith(USER) ? await memberships.find(tenantId, createdBy.slice(USER.length)) : null;
      const status: ApiKeyRecord["status"] = creator === null ? "revoked" : statusNow(key, clock.now());
      if (status === "active") uses.set(keyId, clock.now());
      return { keyId, tenantId, ipAllowlist, status, role: creator === null ? "viewer" : lowerOf(key.role, creator.role) };
    },
  };

  const write = async (): Promise<void> => {
    if (uses.size === 0) return;
    const written = uses;
    uses = new Map();
    await writeUses(db, written);
  };
  const jobs: readonly Job[] = [{ name: "api-keys.write-uses", everyMs: WRITE_USES_MS, run: write }];
  // A change is rare and touches up to three hashes, so it simply empties the cache.
  return { lookup, jobs, forgetAll: keys.forgetAll };
};

/** A cached key may have expired since it was read. */
const statusNow = ({ status, expiresAt }: ApiKey, now: Date): ApiKey["status"] =>
  status === "active" && expiresAt !== null && expiresAt <= now.toISOString() ? "expired" : status;
