// Finds API keys for authentication. Caches them for at most two seconds and records when and from where a key was last used.

import { type ApiKey, HELD } from "../../../protocol/index.ts";
import { createAccess, type ToLimit } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { secretHash } from "../../core/ids.ts";
import type { ApiKeyLookup, ApiKeyRecord, Memberships } from "../../core/ports/lookups.ts";
import type { SecurityWatch } from "../../core/ports/security.ts";
import { type Access, type DeviceLimit, type SystemScope, userIdOf } from "../../core/scope.ts";
import { createCached } from "../../core/structures/cached.ts";
import type { Job } from "../../platform/jobs.ts";
import { isWellFormed } from "./keys.ts";
import { findByHash, findKey, type MovedKey, type Use, writeUses } from "./store.ts";

// A key revoked through another node keeps working on this one for up to this long; its streams for as long as stream-reauthorizer.ts adds.
const CACHE_MS = 2_000;
/** Uses of more keys than this within a minute go unrecorded. */
const MAX_USES = 20_000;
const WRITE_USES_MS = 60_000;
const NOTHING = createAccess("viewer", []);

interface ApiKeyLookupDeps {
  readonly db: Tx;
  readonly clock: Clock;
  readonly memberships: Memberships;
  readonly toLimit: ToLimit;
  readonly watch: SecurityWatch;
}

interface CachedKey {
  readonly key: ApiKey;
  readonly limit: DeviceLimit | null;
}

/** What both the key and its creator have. The role shown is the creator's if the key's own has more. */
const keyAccess = ({ key: { role, scopes }, limit }: CachedKey, creator: Access): Access => {
  const own = [...HELD[role]];
  const granted = own.filter((permission) => creator.permissions.has(permission));
  const scoped = scopes.length === 0 ? granted : granted.filter((permission) => scopes.includes(permission));
  return createAccess(granted.length === own.length ? role : creator.role, scoped, limit === null ? creator.limits : [limit, ...creator.limits]);
};

export const createApiKeyLookup = ({ db, clock, memberships, toLimit, watch }: ApiKeyLookupDeps) => {
  const load = async (hash: string): Promise<CachedKey | null> => {
    const key = await findByHash(db, Buffer.from(hash, "hex"), clock.now());
    return key === null ? null : { key, limit: key.selector === null ? null : await toLimit(key.tenantId, key.selector) };
  };
  // Cached by hash, so the process holds no key in memory.
  const keys = createCached<CachedKey>({ load, clock, ttlMs: CACHE_MS });
  let uses = new Map<string, Use>();
  // Worked out once for each pair of cached records.
  const known = new WeakMap<CachedKey, { readonly creator: Access; readonly access: Access }>();
  const accessOfKey = (cached: CachedKey, creator: Access): Access => {
    const last = known.get(cached);
    if (last?.creator === creator) return last.access;
    const access = keyAccess(cached, creator);
    known.set(cached, { creator, access });
    return access;
  };

  const noteMove = ({ tenantId, keyId, ip }: MovedKey): void =>
    watch.note({ type: "api_key.used_from_new_ip", tenantId, entityType: "key", entityId: keyId, ipAddress: ip });

  const recordOf = async (cached: CachedKey): Promise<ApiKeyRecord> => {
    const { key } = cached;
    const { keyId, tenantId, ipAllowlist, createdBy } = key;
    const creatorId = userIdOf(createdBy);
    const creator = creatorId === null ? null : await memberships.find(tenantId, creatorId);
    const status = creator === null ? "revoked" : statusNow(key, clock.now());
    const { role, permissions, limits } = creator === null ? NOTHING : accessOfKey(cached, creator);
    return { keyId, tenantId, ipAllowlist, status, role, permissions, limits };
  };

  const lookup: ApiKeyLookup = {
    find: async (apiKey) => {
      if (!isWellFormed(apiKey)) throw new AppError("UNAUTHORIZED", { details: { reason: "api_key_malformed" } });
      const cached = await keys.get(secretHash(apiKey).toString("hex"));
      return cached === null ? null : recordOf(cached);
    },
    used: ({ keyId, tenantId }, ip) => {
      const last = uses.get(keyId);
      if (last !== undefined && last.ip !== ip) noteMove({ tenantId, keyId, ip });
      if (uses.size < MAX_USES || uses.has(keyId)) uses.set(keyId, { at: clock.now(), ip });
    },
  };

  const write = async (): Promise<void> => {
    if (uses.size === 0) return;
    const written = uses;
    uses = new Map();
    for (const moved of await writeUses(db, written)) noteMove(moved);
  };
  /** What a key may do now that nobody presents: for work that it ordered earlier. */
  const byId = async (scope: SystemScope, keyId: string): Promise<ApiKeyRecord | null> => {
    const key = await findKey(db, scope, keyId, clock.now());
    return key === null ? null : recordOf({ key, limit: key.selector === null ? null : await toLimit(key.tenantId, key.selector) });
  };
  const jobs: readonly Job[] = [{ name: "api-keys.write-uses", everyMs: WRITE_USES_MS, run: write }];
  // A change is rare and touches up to three hashes, or the keys that are limited to a fleet, so it simply empties the cache.
  return { lookup, byId, jobs, forgetAll: keys.forgetAll };
};

/** A cached key may have expired since it was read. */
const statusNow = ({ status, expiresAt }: ApiKey, now: Date): ApiKeyRecord["status"] => {
  if (status === "expired" || status === "revoked") return status;
  return expiresAt !== null && expiresAt <= now.toISOString() ? "expired" : "active";
};
