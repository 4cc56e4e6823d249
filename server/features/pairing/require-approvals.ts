// Whether people approve machines in the browser: an administrator of the installation may turn that off.
import { AppError } from "../../core/errors.ts";
import type { Flags } from "../../core/people/flags.ts";
import type { TenantScope } from "../../core/scope.ts";

export const requireApprovals = async (flags: Flags, { tenantId }: Pick<TenantScope, "tenantId">): Promise<void> => {
  if (!(await flags.isOn("browserPairing", tenantId))) throw new AppError("FORBIDDEN", { details: { reason: "feature_disabled", feature: "browserPairing" } });
};
