// The secrets of an app at rest: one sealed map, bound to tenant and app.

import type { SystemScope } from "../../core/scope.ts";
import type { SealedContext } from "../../platform/keys/sealed.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import type { AppRow } from "./record.ts";

type Secrets = Readonly<Record<string, string>>;

const contextOf = ({ tenantId }: SystemScope, appId: string): SealedContext => `app-secrets|${tenantId}|${appId}`;

/** As the app's row keeps them. */
export interface SealedSecrets {
  /** Null for none. */
  readonly secrets: Uint8Array<ArrayBuffer> | null;
  readonly secretKeys: string[];
}

export const sealSecrets = (box: Pick<SecretBox, "seal">, scope: SystemScope, appId: string, secrets: Secrets): SealedSecrets => {
  const secretKeys = Object.keys(secrets).sort();
  return { secretKeys, secrets: secretKeys.length === 0 ? null : box.seal(JSON.stringify(secrets), contextOf(scope, appId)) };
};

export const openSecrets = (box: Pick<SecretBox, "open">, scope: SystemScope, { appId, secrets }: Pick<AppRow, "appId" | "secrets">): Secrets =>
  secrets === null ? {} : (JSON.parse(box.open(secrets, contextOf(scope, appId))) as Secrets); // as: only we seal it
