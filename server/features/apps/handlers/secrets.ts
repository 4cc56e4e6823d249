// The secrets of apps: people set them, and those with the permission and the agent of the hosting device read them.
import { type contract, MAX_SECRETS } from "../../../../protocol/index.ts";
import { AppError } from "../../../core/errors.ts";
import type { Handlers } from "../../../core/feature.ts";
import { type AuditEntry, auditActorOf } from "../../../core/ports/audit.ts";
import { actorOf, type TenantScope } from "../../../core/scope.ts";
import type { FeatureKit } from "../../kit.ts";
import { openSecrets, sealSecrets } from "../app-secrets.ts";
import type { Orders } from "../orders.ts";
import type { AppRow } from "../record.ts";
import { canMoveApp } from "../states.ts";
import { findApp, raiseDesired, saveApp } from "../store/apps.ts";
import { lockedApp, unknownApp } from "./changes.ts";

export interface AppSecretsDeps extends Pick<FeatureKit, "db" | "secretBox" | "audit" | "watch"> {
  readonly orders: Orders;
}

const readOf = (scope: TenantScope, appId: string): AuditEntry => {
  const { tenantId, principal } = scope;
  return { tenantId, actor: auditActorOf(principal), action: "apps.secrets", resource: { type: "apps", id: appId }, code: null, call: scope };
};

const without = (stored: Readonly<Record<string, string>>, given: Readonly<Record<string, string | null>>): Record<string, string> =>
  Object.fromEntries(Object.entries({ ...stored, ...given }).filter((entry): entry is [string, string] => entry[1] !== null));

const tooMany = (): AppError =>
  new AppError("APP_CONFIG_INVALID", { details: { issues: [{ path: "secrets", code: "too_big", message: `must have at most ${MAX_SECRETS} keys` }] } });

export const createAppSecrets = ({ db, secretBox, audit, watch, orders }: AppSecretsDeps): Pick<Handlers<typeof contract.apps>, "secrets" | "setSecrets"> => {
  const visible = async (scope: TenantScope, appId: string): Promise<AppRow> => {
    const app = await findApp(db, scope, appId);
    const { principal } = scope;
    if (app === null || (principal.kind === "agent" && principal.deviceId !== app.deviceId)) throw unknownApp(appId);
    return app;
  };
  return {
    secrets: async ({ scope }, { appId }) => {
      const app = await visible(scope, appId);
      const { principal, tenantId, ip } = scope;
      if (principal.kind !== "agent") {
        await db.sqlTx((tx) => audit.append(tx, readOf(scope, appId)));
        const reader = {
          entityType: principal.kind === "user" ? "user" : "key",
          entityId: principal.kind === "user" ? principal.userId : actorOf(principal),
        } as const;
        watch.note({ type: "secrets.read", tenantId, ...reader, ipAddress: ip, reason: appId, operation: "apps.secrets" });
      }
      return openSecrets(secretBox, scope, app);
    },
    setSecrets: ({ scope, commit }, { appId, secrets: given }) =>
      commit(async (tx, afterwards) => {
        const app = await lockedApp(tx, scope, appId);
        const stored = openSecrets(secretBox, scope, app);
        const secrets = without(stored, given);
        const keys = Object.keys(secrets).sort();
        if (keys.length > MAX_SECRETS) throw tooMany();
        const isSame = keys.length === Object.keys(stored).length && keys.every((key) => stored[key] === secrets[key]);
        if (isSame) return { appId: app.appId, keys, secretsVersion: app.secretsVersion };
        const patch = { ...sealSecrets(secretBox, scope, appId, secrets), secretsVersion: app.secretsVersion + 1 };
        // A running app gets them by a restart; any other takes them when it starts.
        if (canMoveApp(app.status, "restart")) {
          const { notify } = await orders.restart(tx, scope, app, { by: actorOf(scope.principal), patch });
          afterwards(notify);
        } else {
          await raiseDesired(tx, scope, app.deviceId);
          await saveApp(tx, scope, appId, { ...patch, version: { increment: 1 } });
        }
        return { appId: app.appId, keys, secretsVersion: patch.secretsVersion };
      }),
  };
};
