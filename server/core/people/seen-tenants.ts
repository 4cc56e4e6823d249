// Who acts in a member's name sees one of the member's tenants, and does not learn of the others.
import type { UserPrincipal } from "../scope.ts";

export const seenTenants = <T extends { readonly tenantId: string }>({ impersonator }: UserPrincipal, tenants: readonly T[]): readonly T[] =>
  impersonator === undefined ? tenants : tenants.filter(({ tenantId }) => tenantId === impersonator.impersonation?.tenantId);
