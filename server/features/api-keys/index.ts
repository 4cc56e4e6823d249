// API keys for scripts and third parties. The gateway shows a key once and never grants it more than its creator may do now.

import { type ApiKey, contract, HELD, toWindow } from "../../../protocol/index.ts";
import { permissionsIn } from "../../core/access.ts";
import { happened } from "../../core/events.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newId } from "../../core/ids.ts";
import type { ApiKeyLookup, Memberships } from "../../core/lookups.ts";
import { actorOf, type TenantScope } from "../../core/scope.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { createApiKeyLookup } from "./api-key-lookup.ts";
import { createEnsureKey } from "./bootstrap.ts";
import { createExpiryNotices } from "./expiry-notices.ts";
import { makeKey } from "./keys.ts";
import { countKeys, findKey, insertKey, pageOfKeys, replaceKey, revokeKey, updateKey } from "./store.ts";

export type ApiKeysDeps = Pick<FeatureKit, "db" | "clock" | "emit" | "audit" | "plan" | "secretBox"> & { readonly memberships: Memberships };

export interface ApiKeysFeature extends Feature<typeof contract.apiKeys> {
  readonly jobs: readonly Job[];
  readonly lookup: ApiKeyLookup;
  /** Returns the user's bootstrap key in this tenant: the same key each time, or a new one after it was revoked. */
  readonly ensureKey: ReturnType<typeof createEnsureKey>;
}

export const createApiKeys = (deps: ApiKeysDeps): ApiKeysFeature => {
  const { lookup, jobs, forgetAll } = createApiKeyLookup(deps);
  return {
    handlers: createHandlers(deps, forgetAll),
    lookup,
    jobs: [...jobs, createExpiryNotices(deps)],
    counters: { apiKeys: countKeys },
    ensureKey: createEnsureKey(deps, forgetAll),
  };
};

/** What the key would have and the caller has not. */
const missingFor = (scope: TenantScope, { role, scopes }: Pick<ApiKey, "role" | "scopes">): readonly string[] => {
  const held = permissionsIn(scope);
  return [...HELD[role]].filter((permission) => !held.has(permission) && (scopes.length === 0 || scopes.includes(permission)));
};

const createHandlers = ({ db, emit, plan }: ApiKeysDeps, forgetAll: () => void): Handlers<typeof contract.apiKeys> => {
  const { created, rotated, revoked } = contract.apiKeys.events;
  return implement(contract.apiKeys, {
    list: async ({ scope }, query) => pageOfKeys(db, scope, toWindow(query)),

    get: async ({ scope, fail }, { keyId }) => {
      const key = await findKey(db, scope, keyId);
      if (key === null) throw fail("API_KEY_NOT_FOUND", { keyId });
      return key;
    },

    create: async ({ scope, fail, commit }, { name, role, expiresInDays, ipAllowlist }) => {
      const permissions = missingFor(scope, { role, scopes: [] });
      if (permissions.length > 0) throw fail("PRIVILEGE_ESCALATION", { permissions });
      const keyId = newId("key");
      const { apiKey, ...made } = makeKey(keyId);
      return commit(async (tx) => {
        await plan.require(tx, scope, "apiKeys", 1);
        const key = await insertKey(tx, scope, { ...made, keyId, name, role, ipAllowlist, expiresInDays, createdBy: actorOf(scope.principal) });
        await emit(tx, [happened(scope, created, keyId, { keyId, name })]);
        return { ...key, apiKey };
      });
    },

    update: ({ scope, fail, commit }, { keyId, name, ipAllowlist, version }) =>
      commit(async (tx, afterwards) => {
        const changed = await updateKey(tx, scope, keyId, { name, ipAllowlist, version });
        if (changed === null) {
          const current = await findKey(tx, scope, keyId);
          throw current === null ? fail("API_KEY_NOT_FOUND", { keyId }) : fail("VERSION_CONFLICT", { currentVersion: current.version });
        }
        afterwards(forgetAll);
        return changed;
      }),

    rotate: async ({ scope, fail, commit }, { keyId, graceSeconds }) => {
      const before = await findKey(db, scope, keyId);
      if (before === null) throw fail("API_KEY_NOT_FOUND", { keyId });
      // The caller receives the new key, so rotating must not grant more than creating would.
      const permissions = missingFor(scope, before);
      if (permissions.length > 0) throw fail("PRIVILEGE_ESCALATION", { permissions });
      const { apiKey, ...made } = makeKey(keyId);
      return commit(async (tx, afterwards) => {
        const replaced = await replaceKey(tx, scope, { keyId, made, graceSeconds });
        if (replaced === null) throw fail("API_KEY_NOT_FOUND", { keyId, status: before.status });
        await emit(tx, [happened(scope, rotated, keyId, { keyId: replaced.keyId, name: replaced.name })]);
        afterwards(forgetAll);
        return { ...replaced, apiKey };
      });
    },

    revoke: ({ scope, fail, commit }, { keyId }) =>
      commit(async (tx, afterwards) => {
        const key = await revokeKey(tx, scope, keyId);
        if (key === null) throw fail("API_KEY_NOT_FOUND", { keyId });
        await emit(tx, [happened(scope, revoked, keyId, { keyId: key.keyId, name: key.name })]);
        afterwards(forgetAll);
        return null;
      }),
  });
};
