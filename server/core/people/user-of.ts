// The signed-in user of a call that only users make.
import { AppError } from "../errors.ts";
import type { OpenScope, UserPrincipal } from "../scope.ts";

export const userOf = ({ principal }: OpenScope): UserPrincipal => {
  if (principal?.kind !== "user") throw new AppError("FORBIDDEN", { details: { reason: "credential_kind" } });
  return principal;
};
