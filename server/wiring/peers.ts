// What features offer each other, and how they are made: each when somebody first reads it, so their order is nobody's concern.
import type { AccountFeature } from "../features/account/index.ts";
import type { AdminFeature } from "../features/admin/index.ts";
import type { ApiKeysFeature } from "../features/api-keys/index.ts";
import type { AppsFeature } from "../features/apps/index.ts";
import type { AuditFeature } from "../features/audit/index.ts";
import type { BillingFeature } from "../features/billing/index.ts";
import type { Commands } from "../features/commands/index.ts";
import type { Deployments } from "../features/deployments/index.ts";
import type { Devices } from "../features/devices/index.ts";
import type { Fleets } from "../features/fleets/index.ts";
import type { InvitesFeature } from "../features/invites/index.ts";
import type { Live } from "../features/live/index.ts";
import type { RolesFeature } from "../features/roles/index.ts";
import type { SessionsFeature } from "../features/sessions/index.ts";
import type { Tenants } from "../features/tenants/index.ts";

/** A feature that offers nothing to others is not here. */
export interface Peers {
  readonly account: Pick<AccountFeature, "signedIn">;
  readonly admin: Pick<AdminFeature, "flags" | "liveNodes">;
  readonly apiKeys: Pick<ApiKeysFeature, "forgetAll" | "limitedTo" | "powersOf">;
  readonly apps: Pick<AppsFeature, "countByStatus" | "logs" | "ofDevice" | "placing">;
  readonly audit: Pick<AuditFeature, "recordsOf">;
  readonly billing: Pick<BillingFeature, "end" | "grantPlan" | "isAnswering">;
  readonly commands: Commands;
  readonly deployments: Pick<Deployments, "adopt" | "follow">;
  readonly devices: Devices;
  readonly fleets: Pick<Fleets, "holdForLimit" | "toLimit">;
  readonly invites: Pick<InvitesFeature, "limitedTo">;
  readonly live: Live;
  readonly roles: Pick<RolesFeature, "grants">;
  readonly sessions: Pick<SessionsFeature, "deleteUser">;
  readonly tenants: Tenants;
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
