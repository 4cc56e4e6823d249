// The access that an agent gets for the command that it carries out, with the right that this command needs and no other.
import { contract, type DeviceId, type RepositoryRight } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import type { AgentPrincipal, SystemScope, TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { findPlace, type Places, unknownDestination } from "./places.ts";

/** A command that the device has and has not ended; null for any other. */
export type FindOrder = (
  scope: SystemScope,
  deviceId: string,
  commandId: string,
) => Promise<{ readonly type: string; readonly payload: Readonly<Record<string, unknown>>; readonly deadlineAt: Date } | null>;

export interface RepositoryAccessDeps extends Pick<FeatureKit, "db"> {
  readonly places: Places;
  readonly findOrder: FindOrder;
}

/** A test makes the repository if there is none. */
const RIGHTS: ReadonlyMap<string, RepositoryRight> = new Map([
  [contract.backupDestinations.commands.test.type, "append"],
  [contract.backups.commands.delete.type, "forget"],
  [contract.backups.commands.prune.type, "prune"],
]);

export const agentOf = ({ principal }: TenantScope): AgentPrincipal => {
  if (principal.kind !== "agent") throw new AppError("FORBIDDEN", { details: { reason: "credential_kind" } });
  return principal;
};
export const unknownCommand = (commandId: string): AppError => new AppError("COMMAND_NOT_FOUND", { details: { commandId } });

export const createRepositoryAccess = ({ db, places, findOrder }: RepositoryAccessDeps): Pick<Handlers<typeof contract.backupDestinations>, "access"> => ({
  access: async ({ scope }, { destinationId, commandId }) => {
    const { deviceId } = agentOf(scope);
    const place = await findPlace(db, scope, { destinationId, deviceId });
    if (place === null) throw unknownDestination(destinationId);
    const order = await findOrder(scope, deviceId, commandId);
    const right = order === null ? undefined : RIGHTS.get(order.type);
    if (order === null || right === undefined || order.payload["destinationId"] !== destinationId) throw unknownCommand(commandId);
    const isRenewed = order.payload["initialize"] === true;
    return places.access(scope, place, { right, isRenewed, commandId, deviceId: deviceId as DeviceId, deadlineAt: order.deadlineAt });
  },
});
