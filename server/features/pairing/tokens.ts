// Enrollment tokens: people create them for install scripts, and bootstrap creates one for the operator's own tenant.
import type { contract, TenantId } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Handlers } from "../../core/feature.ts";
import { newId, newSecret, secretHash } from "../../core/ids.ts";
import { pageWithActors } from "../../core/people/actors.ts";
import { operatorTx } from "../../core/ports/audit.ts";
import { actorOf, actorOfUser } from "../../core/scope.ts";
import { installCommands } from "./install-command.ts";
import { requireApprovals } from "./require-approvals.ts";
import { expireRequestsOf } from "./store/pairings.ts";
import { findNamed, insertToken, pageOfTokens, prolong, revokeToken } from "./store/tokens.ts";
import type { PairingDeps } from "./types.ts";

const PREFIX = "enr_";
const BOOTSTRAP = "bootstrap";
const BOOTSTRAP_SECONDS = 30 * DAY_SECONDS;

type TokenHandlers = Pick<Handlers<typeof contract.pairing>, "createToken" | "installCommand" | "listTokens" | "revokeToken">;

export const createTokenHandlers = ({ db, clock, deployments, plan, flags, settings }: PairingDeps): TokenHandlers => ({
  createToken: async ({ scope, fail, commit }, { name, expiresInSeconds, maxUses, tags, deploymentId, allowRepair, approval }) => {
    if (approval === "required") await requireApprovals(flags, scope);
    const token = `${PREFIX}${newSecret()}`;
    return commit(async (tx) => {
      if (deploymentId !== undefined && !(await deployments.has(tx, scope, deploymentId))) throw fail("DEPLOYMENT_NOT_FOUND", { deploymentId });
      await plan.require(tx, scope, "enrollmentTokens", 1);
      const stored = await insertToken(tx, scope, {
        tokenId: newId("ent"),
        hash: secretHash(token),
        name,
        maxUses,
        tags,
        deploymentId: deploymentId ?? null,
        allowRepair,
        approval,
        createdBy: actorOf(scope.principal),
        expiresAt: secondsFromNow(expiresInSeconds, clock.now()),
      });
      const commands = installCommands(settings.publicUrl(), token);
      return { ...stored, token, installCommand: commands.linux, commands };
    });
  },

  installCommand: async () => {
    const commands = installCommands(settings.publicUrl());
    return { command: commands.linux, commands };
  },

  listTokens: async ({ scope }, query) => pageWithActors(db, scope, await pageOfTokens(db, scope, query)),

  revokeToken: ({ scope, fail, commit }, { tokenId }) =>
    commit(async (tx) => {
      if (!(await revokeToken(tx, scope, tokenId, clock.now()))) throw fail("ENROLLMENT_TOKEN_NOT_FOUND", { tokenId });
      await expireRequestsOf(tx, scope, tokenId);
      return null;
    }),
});

export interface EnsureToken {
  readonly tenantId: TenantId;
  readonly userId: string;
}

/**
 * Returns the tenant's bootstrap token, valid for 30 days from now and any number of uses. Derives it from the master key and its id, so repeating
 * returns the same token although the database has only its hash. Replaces one that was revoked or has expired.
 */
export const createEnsureToken =
  ({ db, clock, audit, secretBox }: PairingDeps) =>
  async ({ tenantId, userId }: EnsureToken): Promise<string> => {
    const scope = { tenantId };
    const derived = (tokenId: string) => `${PREFIX}${Buffer.from(secretBox.derive(`enrollment-token|${tenantId}|${tokenId}`)).toString("base64url")}`;
    const now = clock.now();
    const known = (await findNamed(db, scope, BOOTSTRAP, now)).find(({ tokenId, hash }) => secretHash(derived(tokenId)).equals(hash));
    const tokenId = known?.tokenId ?? newId("ent");
    const token = derived(tokenId);
    await operatorTx(db, audit)("cli.bootstrap", async (tx) => {
      const expiresAt = secondsFromNow(BOOTSTRAP_SECONDS, now);
      if (known !== undefined) return prolong(tx, scope, { tokenId, expiresAt });
      await insertToken(tx, scope, {
        name: BOOTSTRAP,
        tokenId,
        expiresAt,
        hash: secretHash(token),
        maxUses: null,
        tags: [],
        deploymentId: null,
        allowRepair: false,
        approval: "none",
        createdBy: actorOfUser(userId),
      });
    });
    return token;
  };
