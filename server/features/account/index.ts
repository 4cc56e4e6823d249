// The signed-in user's own account: profile, default tenant, notification preferences, export, deletion.
import { contract, type Notification } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { seenTenants } from "../../core/people/seen-tenants.ts";
import { userOf } from "../../core/people/user-of.ts";
import { createCached } from "../../core/structures/cached.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Consumer } from "../../platform/outbox/outbox.ts";
import type { Feature } from "../kit.ts";
import type { MemberTenant } from "../tenants/index.ts";
import { createDeletion } from "./deletion.ts";
import { createNoticeConsumer } from "./notices.ts";
import { type Choices, findProfile, writeProfile } from "./store.ts";
import { type AccountDeps, showTenant, toAccount, toNotifications } from "./types.ts";

export type { AccountDeps } from "./types.ts";

// As old as every other answer by which the gateway identifies a caller.
const CACHE_MS = 5_000;
const MAX_RECORDS = 1_000;

export interface AccountFeature extends Feature<typeof contract.account> {
  readonly jobs: readonly Job[];
  readonly consumer: Consumer;
  /** Cancels a deletion that is scheduled. */
  readonly signedIn: (tx: Tx, userId: string) => Promise<void>;
  /** The tenant in which the user's calls take place if they name none; null: they have several and chose none, or have none. */
  readonly defaultTenantOf: (userId: string) => Promise<string | null>;
}

export const createAccount = (deps: AccountDeps): AccountFeature => {
  const usual = createCached<MemberTenant>({ load: (userId) => usualTenantOf(deps, userId), clock: deps.clock, ttlMs: CACHE_MS });
  const deletion = createDeletion(deps);
  const forget = (userId: string) => usual.forget([userId]);
  return {
    handlers: implement(contract.account, { ...createReads(deps), ...createChanges(deps, forget), ...deletion.handlers }),
    jobs: [deletion.job],
    signedIn: deletion.restore,
    consumer: createNoticeConsumer(deps),
    defaultTenantOf: async (userId) => (await usual.get(userId))?.tenantId ?? null,
  };
};

/** The one that the user has chosen, or the only one. */
const usualTenantOf = async ({ db, tenants: { members } }: AccountDeps, userId: string): Promise<MemberTenant | null> => {
  const [{ defaultTenantId }, mine] = await Promise.all([findProfile(db, userId), members.tenantsOf(db, userId)]);
  return mine.find(({ tenantId }) => tenantId === defaultTenantId) ?? (mine.length === 1 ? (mine[0] ?? null) : null);
};

type Read = "get" | "tenants" | "notifications" | "export";
const createReads = ({ db, clock, tenants: { members }, audit }: AccountDeps): Pick<Handlers<typeof contract.account>, Read> => ({
  get: async ({ scope }) => {
    const user = userOf(scope);
    return toAccount(user, await findProfile(db, user.userId), seenTenants(user, await members.tenantsOf(db, user.userId)));
  },

  tenants: async ({ scope }) => {
    const user = userOf(scope);
    const profile = await findProfile(db, user.userId);
    return { items: seenTenants(user, await members.tenantsOf(db, user.userId)).map((tenant) => showTenant(tenant, profile)) };
  },

  notifications: async ({ scope }) => ({ items: toNotifications((await findProfile(db, userOf(scope).userId)).notifications) }),

  export: async ({ scope }) => {
    const user = userOf(scope);
    const profile = await findProfile(db, user.userId);
    const mine = await members.tenantsOf(db, user.userId);
    const tenantIds = mine.map(({ tenantId }) => tenantId);
    const records = await audit.recordsOf(db, user.userId, tenantIds, MAX_RECORDS);
    return {
      exportedAt: clock.now().toISOString(),
      account: toAccount(user, profile, mine),
      tenants: mine.map((tenant) => showTenant(tenant, profile)),
      notifications: toNotifications(profile.notifications),
      auditRecords: records.map(({ tenantId, at, action, resource, outcome, actor: { ip, userAgent } }) => ({
        tenantId,
        at,
        action,
        resource,
        outcome,
        ip,
        userAgent,
      })),
    };
  },
});

const choicesOf = (items: readonly Notification[]): Choices => Object.fromEntries(items.map(({ event, ...choice }) => [event, choice]));

type Change = "update" | "switchTenant" | "updateNotifications";
const createChanges = ({ tenants: { members } }: AccountDeps, forget: (userId: string) => void): Pick<Handlers<typeof contract.account>, Change> => ({
  update: ({ scope, fail, commit }, { version, preferences, ...change }) =>
    commit(async (tx) => {
      const user = userOf(scope);
      const { userId } = user;
      // as: the input is JSON
      const changed = await writeProfile(tx, userId, { ...change, preferences: preferences as never }, version);
      if (changed === null) throw fail("VERSION_CONFLICT", { currentVersion: (await findProfile(tx, userId)).version });
      return toAccount(user, changed, await members.tenantsOf(tx, userId));
    }),

  switchTenant: ({ scope, fail, commit }, { tenantId }) =>
    commit(async (tx, afterwards) => {
      const { userId } = userOf(scope);
      const tenant = (await members.tenantsOf(tx, userId)).find((each) => each.tenantId === tenantId);
      if (tenant === undefined) throw fail("TENANT_NOT_FOUND", { tenantId });
      const profile = await writeProfile(tx, userId, { defaultTenantId: tenantId });
      afterwards(() => forget(userId));
      return showTenant(tenant, profile ?? (await findProfile(tx, userId)));
    }),

  updateNotifications: ({ scope, commit }, { items }) =>
    commit(async (tx) => {
      const { userId } = userOf(scope);
      const changed = await writeProfile(tx, userId, { notifications: choicesOf(items) });
      return { items: toNotifications(changed?.notifications ?? {}) };
    }),
});
