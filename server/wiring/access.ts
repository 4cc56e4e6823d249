// Creates the features of people: how they come in, who they are, and where they are signed in.

import { type AccountDeps, createAccount } from "../features/account/index.ts";
import { createInvites, type InvitesDeps } from "../features/invites/index.ts";
import type { FeatureKit } from "../features/kit.ts";
import { createSessions } from "../features/sessions/index.ts";
import type { Tenants } from "../features/tenants/index.ts";
import type { IdentityProvider } from "../platform/identity/identity-provider.ts";
import type { FeaturesDeps } from "./deps.ts";
import { inviteSettings, sessionSettings } from "./settings.ts";

interface Others {
  readonly kit: FeatureKit;
  readonly tenants: Tenants;
  readonly roles: Pick<InvitesDeps, "grants">;
  readonly audit: AccountDeps["audit"];
  readonly provider: IdentityProvider | null;
}

export const createPeople = ({ config, log, publicUrl, tokens }: FeaturesDeps, { kit, tenants, roles, audit, provider }: Others) => {
  const sessions = createSessions({
    ...kit,
    tokens,
    provider,
    signedIn: (tx, userId) => account.signedIn(tx, userId),
    settings: sessionSettings(config, publicUrl),
  });
  const account = createAccount({ ...kit, tenants, audit, deleteUser: sessions.deleteUser });
  return {
    sessions,
    invites: createInvites({ ...kit, log, tenants, grants: roles.grants, settings: inviteSettings(config, publicUrl) }),
    account,
  };
};
