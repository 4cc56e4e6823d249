// The features of access: tenants, who belongs to them, how people and programs come in.
import { createAccount } from "../features/account/index.ts";
import { createApiKeys } from "../features/api-keys/index.ts";
import { createBeginTrial } from "../features/billing/index.ts";
import { deploymentGroups } from "../features/deployments/index.ts";
import { createImpersonations } from "../features/impersonations/index.ts";
import { createInvites } from "../features/invites/index.ts";
import { createRoles } from "../features/roles/index.ts";
import { createSessions } from "../features/sessions/index.ts";
import { createTenants } from "../features/tenants/index.ts";
import { deleteRowsOf } from "../platform/database/delete-tenant.ts";
import type { Wiring } from "./deps.ts";
import type { Peers } from "./peers.ts";
import { inviteSettings, sessionSettings, tenantSettings } from "./settings.ts";

export const access = ({ kit, config, log, publicUrl, ...wiring }: Wiring, peers: Peers) => ({
  tenants: () =>
    createTenants({
      ...kit,
      ...tenantSettings(config),
      deployments: deploymentGroups,
      counters: wiring.counters,
      beginTrial: createBeginTrial(kit.clock),
      deleteRows: (scope, limit) => deleteRowsOf(kit.db, scope, limit),
      endBilling: (scope) => peers.billing.end(scope),
      deviceStates: (scope) => peers.devices.states(scope),
      deviceIds: (scope) => peers.devices.ids(scope),
      countBackups: (scope) => peers.backups.count(scope),
      appStates: (scope) => peers.apps.countByStatus(scope),
      recentEvents: (scope, limit) => peers.live.recent(scope, limit),
      nodeId: wiring.nodeId,
      flags: () => peers.admin.flags,
      loadCalls: () => wiring.serving.loadCalls(),
      onError: wiring.failed("load test"),
      toLimit: wiring.toLimit,
    }),
  roles: () =>
    createRoles({
      ...kit,
      ...peers.tenants,
      knownDevices: (...asked) => peers.devices.known(...asked),
      holdFleets: (...holding) => peers.fleets.holdForLimit(...holding),
    }),
  apiKeys: () =>
    createApiKeys({
      ...kit,
      memberships: peers.tenants.memberships,
      toLimit: wiring.toLimit,
      checkSelector: (...selecting) => peers.roles.grants.checkSelector(...selecting),
    }),
  sessions: () =>
    createSessions({
      ...kit,
      tokens: wiring.tokens,
      provider: wiring.provider,
      signedIn: (tx, userId) => peers.account.signedIn(tx, userId),
      leaveImpersonation: (...leaving) => peers.impersonations.leave(...leaving),
      settings: sessionSettings(config, publicUrl),
    }),
  impersonations: () => createImpersonations({ ...kit, tenants: peers.tenants.lookup, members: peers.tenants.members }),
  account: () =>
    createAccount({
      ...kit,
      tenants: peers.tenants,
      audit: peers.audit,
      deleteUser: async (tx, userId) => {
        await peers.sessions.deleteUser(tx, userId);
        await peers.announcements.deleteUser(tx, userId);
      },
    }),
  invites: () => createInvites({ ...kit, log, tenants: peers.tenants, grants: peers.roles.grants, settings: inviteSettings(config, publicUrl) }),
});
