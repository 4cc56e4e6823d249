// The settings and dependencies of the sessions feature.
import type { Tx } from "../../core/database.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { IdentityProvider } from "../../platform/identity/identity-provider.ts";
import type { Tokens } from "../../platform/identity/jwt.ts";
import type { FeatureKit } from "../kit.ts";

export interface SessionSettings {
  /** Without use. */
  readonly idleSeconds: number;
  readonly lifeSeconds: number;
  /** Known once the listener is open. */
  readonly publicUrl: () => string;
  readonly portalUrl: () => string;
  /** Where a browser goes that was told no other place. */
  readonly home: () => string;
  readonly isReturnAllowed: (url: string) => boolean;
}

export type SessionsDeps = Pick<FeatureKit, "db" | "clock" | "audit" | "secretBox"> & {
  readonly tokens: Pick<Tokens, "local">;
  /** Null without one, or if this gateway is not registered there. */
  readonly provider: IdentityProvider | null;
  readonly settings: SessionSettings;
  /** What a sign-in means to the person's account, in its transaction. */
  readonly signedIn: (tx: Tx, userId: string) => Promise<void>;
  /** For an administrator who acts in a member's name and has done enough. */
  readonly leaveImpersonation: (tx: Tx, scope: SystemScope, impersonationId: string, by: string) => Promise<void>;
};
