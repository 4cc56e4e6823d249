// What the doors ask about an API key, remembered for at most five seconds. Asking for an active key is using it.
import type { ApiKey, Role } from "../../../protocol/index.ts";
import { ROLES } from "../../../protocol/index.ts";
import { createCached } from "../../core/cached.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import type { ApiKeyLookup, ApiKeyRecord, Memberships } from "../../core/lookups.ts";
import type { Job } from "../../platform/jobs.ts";
import { hashOf, isWellFormed } from "./keys.ts";
import { findByHash, writeUses } from "./store.ts";

// A key that was revoked through another node ends here after this long.
const REMEMBERED_MS = 5_000;
const WRITE_USES_MS = 60_000;
const USER = "user:";

interface ApiKeyLookupDeps {
  readonly db: Tx;
  readonly clock: Clock;
  readonly memberships: Memberships;
}

export const lowerOf = (a: Role, b: Role): Role => (ROLES.indexOf(a) <= ROLES.indexOf(b) ? a : b);

export const createApiKeyLookup = ({ db, clock, memberships }: ApiKeyLookupDeps) => {
  // By hash, so that the keys themselves are not kept in memory either.
  const keys = createCached<ApiKey>({ load: (hash) => findByHash(db, Buffer.from(hash, "hex")), clock, ttlMs: REMEMBERED_MS });
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
  // Rare, and a change touches up to three hashes: forgetting all of them is the simplest that is right.
  return { lookup, jobs, forgetAll: keys.forgetAll };
};

/** A remembered key may have passed its end meanwhile. */
const statusNow = ({ status, expiresAt }: ApiKey, now: Date): ApiKey["status"] =>
  status === "active" && expiresAt !== null && expiresAt <= now.toISOString() ? "expired" : status;
