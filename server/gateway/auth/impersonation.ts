// What an administrator of the installation may do in a member's name: less than the member, and only while the impersonation goes on.
import { type Permission, WITHHELD_FROM_IMPERSONATION } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import { IMPERSONATION_TOKEN, type ImpersonationLookup } from "../../core/ports/lookups.ts";
import type { OpenImpersonation } from "../../core/scope.ts";
import type { Entry } from "../call/operation-table.ts";

export interface ImpersonationAuth {
  /** Null: the token is none of an impersonation. Throws once that has ended. */
  prove(token: string): Promise<OpenImpersonation | null>;
  /** The impersonation that a stream ticket was made in. Throws once it has ended. */
  require(impersonationId: string): Promise<OpenImpersonation>;
}

export const createImpersonationAuth = (lookup: ImpersonationLookup, admins: ReadonlySet<string>): ImpersonationAuth => {
  const open = (found: OpenImpersonation | null): OpenImpersonation => {
    if (found === null || !admins.has(found.adminId)) throw new AppError("UNAUTHORIZED", { details: { reason: "impersonation_ended" } });
    return found;
  };
  return {
    prove: async (token) => (token.startsWith(IMPERSONATION_TOKEN) ? open(await lookup.find(token)) : null),
    require: async (impersonationId) => open(await lookup.byId(impersonationId)),
  };
};

/** Throws for what concerns the member alone, changes anything in a read-only impersonation, or gives a right that outlasts it. */
export const checkImpersonated = ({ op }: Entry, { readOnly }: OpenImpersonation): void => {
  const { permission, kind, whileImpersonated } = op;
  if (permission === "platform") throw new AppError("ADMIN_REQUIRED");
  if (WITHHELD_FROM_IMPERSONATION.has(permission as Permission))
    // as: the set holds no other word
    throw new AppError("FORBIDDEN", { details: { reason: "impersonation", requiredPermission: permission } });
  if (whileImpersonated === true) return;
  if (permission === "self") throw new AppError("FORBIDDEN", { details: { reason: "impersonation" } });
  if (readOnly && kind === "mutation") throw new AppError("FORBIDDEN", { details: { reason: "impersonation_read_only" } });
};
