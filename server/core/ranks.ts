// Ranks: nobody manages, blocks or frees somebody who may do more, and nobody grants what they do not hold.
import { permissionsIn } from "./access.ts";
import { AppError } from "./errors.ts";
import type { SystemScope } from "./scope.ts";

/** `powers`: what the other one may do, or is about to. Throws PRIVILEGE_ESCALATION. */
export const requireHeld = (scope: Pick<SystemScope, "principal">, powers: Iterable<string>): void => {
  const held: ReadonlySet<string> = permissionsIn(scope);
  const permissions = [...powers].filter((permission) => !held.has(permission));
  if (permissions.length > 0) throw new AppError("PRIVILEGE_ESCALATION", { details: { permissions } });
};
