// API keys for scripts and third parties. The gateway shows a key once and never grants it more than its creator may do now.

import { type ApiKey, contract, type DeviceSelector, HELD, isPermission, type Permission, permits } from "../../../protocol/index.ts";
import type { ToLimit } from "../../core/access.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import { findActors } from "../../core/people/actors.ts";
import type { ApiKeyLookup, ApiKeyRecord, FindLimited, Memberships } from "../../core/ports/lookups.ts";
import { requireHeld } from "../../core/ranks.ts";
import { actorOf, type SystemScope, type TenantScope } from "../../core/scope.ts";
import type { Db } from "../../platform/database/db.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { createApiKeyLookup } from "./api-key-lookup.ts";
import { createEnsureKey } from "./bootstrap.ts";
import { createExpiryNotices } from "./expiry-notices.ts";
import { makeKey } from "./keys.ts";
import { countKeys, findEveryUsableKey, findKey, findLimitedKeys, insertKey, type KeyToReview, pageOfKeys, replaceKey, revokeKey, updateKey } from "./store.ts";

export type ApiKeysDeps = Pick<FeatureKit, "db" | "clock" | "emit" | "audit" | "plan" | "secretBox" | "watch"> & {
  readonly memberships: Memberships;
  readonly toLimit: ToLimit;
  /** Throws DEVICE_NOT_FOUND or FLEET_NOT_FOUND for what the tenant does not have. */
  readonly checkSelector: (tx: Tx, scope: TenantScope, selector: DeviceSelector | null | undefined) => Promise<void>;
};

export interface ApiKeysFeature extends Feature<typeof contract.apiKeys> {
  readonly jobs: readonly Job[];
  readonly lookup: ApiKeyLookup;
  /** What a key may do now that nobody presents: for work that it ordered earlier. Null: the tenant has no such key. */
  readonly byId: (scope: SystemScope, keyId: string) => Promise<ApiKeyRecord | null>;
  /** A fleet has changed, and any key may be limited to it. */
  readonly forgetAll: () => void;
  readonly limitedTo: FindLimited;
  /** What the key may do; nothing for a key that the tenant does not have. */
  readonly powersOf: (tx: Tx, scope: SystemScope, keyId: string) => Promise<readonly Permission[]>;
  /** Returns the user's bootstrap key in this tenant: the same key each time, or a new one after it was revoked. */
  readonly ensureKey: ReturnType<typeof createEnsureKey>;
  /** The newest keys of all tenants that work, for the one who runs the installation. */
  readonly everyUsable: (limit: number) => Promise<readonly KeyToReview[]>;
}

export const createApiKeys = (deps: ApiKeysDeps): ApiKeysFeature => {
  const { clock } = deps;
  const { lookup, byId, jobs, forgetAll } = createApiKeyLookup(deps);
  return {
    handlers: createHandlers(deps, forgetAll),
    lookup,
    byId,
    forgetAll,
    limitedTo: (db, scope, fleetId, limit) => findLimitedKeys(db, scope, { fleetId, limit, now: clock.now() }),
    powersOf: async (tx, scope, keyId) => {
      const key = await findKey(tx, scope, keyId, clock.now());
      return key === null ? [] : powersOf(key);
    },
    jobs: [...jobs, createExpiryNotices(deps)],
    counters: { apiKeys: (db, scope) => countKeys(db, scope, clock.now()) },
    ensureKey: createEnsureKey(deps, forgetAll),
    everyUsable: (limit) => findEveryUsableKey(deps.db, limit, deps.clock.now()),
  };
};

type Wanted = Pick<ApiKey, "role" | "scopes">;
/** What a key may do. */
const powersOf = ({ role, scopes }: Wanted): readonly Permission[] =>
  [...HELD[role]].filter((permission) => scopes.length === 0 || scopes.includes(permission));
/** Nobody makes, changes or ends a key that may do more than they may. */
const checkHeld = (scope: TenantScope, key: Wanted): void => requireHeld(scope, powersOf(key));

/** A scope that the role does not have would silently do nothing. */
const checkScopes = ({ role, scopes }: Wanted): void => {
  const unknown = scopes.filter((scope) => !isPermission(scope));
  if (unknown.length > 0) throw new AppError("PERMISSION_UNKNOWN", { details: { permissions: unknown } });
  const message = `the role ${role} does not have this permission`;
  const issues = scopes.flatMap((scope, at) => (permits(role, scope as Permission) ? [] : [{ path: `scopes.${at}`, code: "custom", message }])); // as: checked above
  if (issues.length > 0) throw new AppError("VALIDATION_FAILED", { details: { issues } });
};

const withCreators = async (db: Db, scope: SystemScope, keys: readonly ApiKey[]) => {
  const actorOfId = await findActors(
    db,
    scope,
    keys.map(({ createdBy }) => createdBy),
  );
  return keys.map((key) => ({ ...key, actor: actorOfId(key.createdBy) }));
};

const createHandlers = ({ db, clock, emit, plan, checkSelector }: ApiKeysDeps, forgetAll: () => void): Handlers<typeof contract.apiKeys> => {
  const { created, rotated, revoked } = contract.apiKeys.events;
  return implement(contract.apiKeys, {
    list: async ({ scope }, query) => {
      const { items, ...page } = await pageOfKeys(db, scope, query, clock.now());
      return { items: await withCreators(db, scope, items), ...page };
    },

    get: async ({ scope, fail }, { keyId }) => {
      const key = await findKey(db, scope, keyId, clock.now());
      if (key === null) throw fail("API_KEY_NOT_FOUND", { keyId });
      return { ...key, actor: (await findActors(db, scope, [key.createdBy]))(key.createdBy) };
    },

    create: async ({ scope, commit }, { expiresInDays, ...wanted }) => {
      checkScopes(wanted);
      checkHeld(scope, wanted);
      const keyId = newId("key");
      const { apiKey, ...made } = makeKey(keyId);
      return commit(async (tx) => {
        await plan.require(tx, scope, "apiKeys", 1);
        await checkSelector(tx, scope, wanted.selector);
        const createdBy = actorOf(scope.principal);
        const key = await insertKey(tx, scope, { ...made, ...wanted, keyId, createdBy, createdAt: clock.now(), expiresInDays });
        await emit(tx, [happened(scope, created, keyId, { keyId, name: wanted.name })]);
        return { ...key, apiKey };
      });
    },

    update: ({ scope, fail, commit }, { keyId, ...change }) =>
      commit(async (tx, afterwards) => {
        const { scopes, selector } = change;
        const before = await findKey(tx, scope, keyId, clock.now());
        if (before === null) throw fail("API_KEY_NOT_FOUND", { keyId });
        checkHeld(scope, before);
        const widened = { ...before, scopes: scopes ?? before.scopes };
        if (scopes !== undefined) checkScopes(widened);
        if (scopes !== undefined || selector !== undefined) checkHeld(scope, widened);
        await checkSelector(tx, scope, selector);
        const changed = await updateKey(tx, scope, { keyId, ...change }, clock.now());
        if (changed === null) throw fail("VERSION_CONFLICT", { currentVersion: (await findKey(tx, scope, keyId, clock.now()))?.version });
        afterwards(forgetAll);
        return changed;
      }),

    rotate: async ({ scope, fail, commit }, { keyId, graceSeconds }) => {
      const before = await findKey(db, scope, keyId, clock.now());
      if (before === null) throw fail("API_KEY_NOT_FOUND", { keyId });
      // The caller receives the new key, so rotating must not grant more than creating would.
      checkHeld(scope, before);
      const { apiKey, ...made } = makeKey(keyId);
      return commit(async (tx, afterwards) => {
        const replaced = await replaceKey(tx, scope, { keyId, made, graceSeconds }, clock.now());
        if (replaced === null) throw fail("API_KEY_NOT_FOUND", { keyId, status: before.status });
        await emit(tx, [happened(scope, rotated, keyId, { keyId: replaced.keyId, name: replaced.name })]);
        afterwards(forgetAll);
        return { ...replaced, apiKey };
      });
    },

    revoke: ({ scope, fail, commit }, { keyId }) =>
      commit(async (tx, afterwards) => {
        const before = await findKey(tx, scope, keyId, clock.now());
        if (before !== null) checkHeld(scope, before);
        const key = await revokeKey(tx, scope, keyId, clock.now());
        if (key === null) throw fail("API_KEY_NOT_FOUND", { keyId });
        await emit(tx, [happened(scope, revoked, keyId, { keyId: key.keyId, name: key.name })]);
        afterwards(forgetAll);
        return null;
      }),
  });
};
