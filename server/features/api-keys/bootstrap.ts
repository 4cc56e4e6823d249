// The bootstrap key of a user, for the operator's command line.

import type { Role, TenantId } from "../../../protocol/index.ts";
import { newId } from "../../core/ids.ts";
import { operatorTx } from "../../core/ports/audit.ts";
import { actorOfUser } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { makeKey } from "./keys.ts";
import { findUsableNamed, insertKey, lockBootstrap, replaceKey } from "./store.ts";

export interface EnsureKey {
  readonly tenantId: TenantId;
  readonly userId: string;
  readonly role: Role;
}

const BOOTSTRAP = "bootstrap";
// A script may still run with the key that somebody rotated by hand.
const REPAIR_GRACE_SECONDS = 86_400;

/** Derives the key from the master key and the key's id: bootstrap returns the same key again although the database has only its hash. */
export const createEnsureKey =
  ({ db, clock, audit, secretBox }: Pick<FeatureKit, "db" | "clock" | "audit" | "secretBox">, forgetAll: () => void) =>
  async ({ tenantId, userId, role }: EnsureKey): Promise<string> => {
    const scope = { tenantId };
    const createdBy = actorOfUser(userId);
    const derived = (keyId: string) => makeKey(keyId, secretBox.derive(`api-key|${tenantId}|${keyId}`));
    const apiKey = await operatorTx(db, audit)("cli.bootstrap", async (tx) => {
      await lockBootstrap(tx, scope);
      const now = clock.now();
      const known = await findUsableNamed(tx, scope, { name: BOOTSTRAP, createdBy }, now);
      const keyId = known?.keyId ?? newId("key");
      const { apiKey: derivedKey, ...made } = derived(keyId);
      const key = { keyId, name: BOOTSTRAP, role, scopes: [], selector: null, ipAllowlist: [], createdBy, createdAt: now, expiresInDays: null };
      if (known === null) await insertKey(tx, scope, { ...made, ...key });
      else if (!made.hash.equals(known.hash)) await replaceKey(tx, scope, { keyId, made, graceSeconds: REPAIR_GRACE_SECONDS }, now);
      return derivedKey;
    });
    forgetAll();
    return apiKey;
  };
