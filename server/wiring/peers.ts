// What features offer each other, and how they are made: each when somebody first reads it, so their order is nobody's concern.
import type { Contract } from "../../protocol/index.ts";
import type { Handlers } from "../core/feature.ts";
import type { AccountFeature } from "../features/account/index.ts";
import type { AdminFeature } from "../features/admin/index.ts";
import type { AgentFeature } from "../features/agent/index.ts";
import type { AlertsFeature } from "../features/alerts/index.ts";
import type { AnnouncementsFeature } from "../features/announcements/index.ts";
import type { ApiKeysFeature } from "../features/api-keys/index.ts";
import type { AppsFeature } from "../features/apps/index.ts";
import type { AuditFeature } from "../features/audit/index.ts";
import type { DestinationsFeature } from "../features/backup-destinations/index.ts";
import type { PoliciesFeature } from "../features/backup-policies/index.ts";
import type { BackupsFeature } from "../features/backups/index.ts";
import type { BillingFeature } from "../features/billing/index.ts";
import type { BulkFeature } from "../features/bulk-operations/index.ts";
import type { Commands } from "../features/commands/index.ts";
import type { Deployments } from "../features/deployments/index.ts";
import type { Devices } from "../features/devices/index.ts";
import type { Fleets } from "../features/fleets/index.ts";
import type { ImpersonationsFeature } from "../features/impersonations/index.ts";
import type { InvitesFeature } from "../features/invites/index.ts";
import type { Live } from "../features/live/index.ts";
import type { MeshRoutes } from "../features/mesh-routes/index.ts";
import type { RolesFeature } from "../features/roles/index.ts";
import type { Rollouts } from "../features/rollouts/index.ts";
import type { SecurityFeature } from "../features/security/index.ts";
import type { SessionsFeature } from "../features/sessions/index.ts";
import type { Tenants } from "../features/tenants/index.ts";
import type { Tunnels } from "../features/tunnels/index.ts";

/** For what calls any operation: an export reads all lists, an import makes any record. */
export type HandlersOfAll = { readonly [G in keyof Contract]: { readonly handlers: Handlers<Contract[G]> } };

/** A feature that offers nothing to others is not here. */
export interface Peers {
  readonly account: Pick<AccountFeature, "signedIn">;
  readonly admin: Pick<AdminFeature, "flags" | "liveNodes">;
  readonly agent: Pick<AgentFeature, "newestRelease">;
  readonly alerts: Pick<AlertsFeature, "addBudgetRule" | "countChannels" | "countOpen" | "handlers" | "named">;
  readonly announcements: Pick<AnnouncementsFeature, "current" | "deleteUser" | "undismissed">;
  readonly apiKeys: Pick<ApiKeysFeature, "byId" | "forgetAll" | "limitedTo" | "powersOf">;
  readonly apps: Pick<
    AppsFeature,
    "backing" | "countByDevice" | "countByStatus" | "handlers" | "hideFor" | "logs" | "deviceOf" | "ofDevice" | "placing" | "portOf" | "rollouts" | "targets"
  >;
  readonly audit: Pick<AuditFeature, "recordsOf">;
  readonly backupDestinations: Pick<DestinationsFeature, "gate" | "repositories">;
  readonly backupPolicies: Pick<PoliciesFeature, "asksBeforeUpdate" | "count" | "follow" | "usesOf">;
  readonly backups: Pick<BackupsFeature, "backUpFirst" | "count" | "forPolicies" | "handlers" | "lastGood" | "named" | "usesOf">;
  readonly billing: Pick<BillingFeature, "end" | "grantPlan" | "isAnswering">;
  readonly bulkOperations: Pick<BulkFeature, "handlers" | "underWay">;
  readonly commands: Commands;
  readonly deployments: Pick<Deployments, "adopt" | "follow" | "handlers" | "targets">;
  readonly devices: Devices;
  readonly fleets: Pick<Fleets, "find" | "handlers" | "holdForLimit" | "toLimit">;
  readonly impersonations: Pick<ImpersonationsFeature, "leave">;
  readonly invites: Pick<InvitesFeature, "limitedTo">;
  readonly live: Live;
  readonly meshRoutes: Pick<MeshRoutes, "ofDevice">;
  readonly roles: Pick<RolesFeature, "grants">;
  readonly rollouts: Pick<Rollouts, "complianceOf" | "countLive" | "liveOf" | "requirePolicy" | "underWay">;
  readonly security: Pick<SecurityFeature, "blocks">;
  readonly sessions: Pick<SessionsFeature, "deleteUser">;
  readonly tenants: Tenants;
  readonly tunnels: Pick<Tunnels, "connected" | "handlerOf" | "handlers" | "named" | "ofDevice" | "targetOf">;
}

export type FeatureMakers = Readonly<Record<string, () => unknown>>;
export type Made<M extends FeatureMakers> = { readonly [Name in keyof M]: ReturnType<M[Name]> };

/** Gives `parts` its members. Each is made when it is first read; one that needs itself to be made throws. */
export const makeLazily = <M extends FeatureMakers>(parts: Made<M>, makers: M): void => {
  const making: string[] = [];
  for (const [name, make] of Object.entries(makers)) {
    const get = (): unknown => {
      if (making.includes(name)) throw new Error(`${name} is not made yet: ${[...making, name].join(" needs ")}`);
      making.push(name);
      try {
        const value = make();
        Object.defineProperty(parts, name, { value, enumerable: true });
        return value;
      } finally {
        making.pop();
      }
    };
    Object.defineProperty(parts, name, { get, enumerable: true, configurable: true });
  }
};

/** An object that is read when one of its members is used. For a part that would otherwise have to be made before its user. */
export const later = <T extends object>(read: () => T): T =>
  new Proxy({} as T, {
    get: (_target, name) => {
      const whole = read();
      const value: unknown = Reflect.get(whole, name);
      return typeof value === "function" ? value.bind(whole) : value;
    },
  });

/** Each group's handlers, read when they are used. */
export const handlersOf = (peers: HandlersOfAll): { readonly [G in keyof Contract]: Handlers<Contract[G]> } =>
  new Proxy({} as { readonly [G in keyof Contract]: Handlers<Contract[G]> }, { get: (_target, group) => peers[group as keyof Contract].handlers });
