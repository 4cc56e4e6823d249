// The recovery sheet: what plain restic needs to restore a device's backups without this product. For an owner who has just signed in, and recorded.

import type { contract, DestinationKind } from "../../../protocol/index.ts";
import { secondsFromNow } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { Handlers } from "../../core/feature.ts";
import { requireRecentSignIn } from "../../core/people/recent-sign-in.ts";
import { userOf } from "../../core/people/user-of.ts";
import type { AuditEntry } from "../../core/ports/audit.ts";
import type { TenantScope } from "../../core/scope.ts";
import type { FeatureKit } from "../kit.ts";
import { findPlace, type Places, unknownDestination } from "./places.ts";

const SHEET_SECONDS = 24 * 3_600;

export interface RecoveryDeps extends Pick<FeatureKit, "db" | "clock" | "audit" | "watch"> {
  readonly places: Places;
  readonly isKnown: (db: Clients, scope: TenantScope, deviceId: string) => Promise<boolean>;
}

const linesOf = (kind: DestinationKind): string[] => [
  ...(kind === "local" ? ["# On the device, in the agent's folder if the repository is a relative path:"] : []),
  "restic snapshots",
  "restic restore latest --target ./restored --verify",
  "restic check --read-data",
];

export const createRecovery = ({ db, clock, audit, watch, places, isKnown }: RecoveryDeps): Pick<Handlers<typeof contract.backupDestinations>, "recovery"> => ({
  recovery: async ({ scope }, { destinationId, deviceId }) => {
    const user = userOf(scope);
    const { userId, email } = user;
    requireRecentSignIn(user, clock);
    if (!(await isKnown(db, scope, deviceId))) throw new AppError("DEVICE_NOT_FOUND", { details: { deviceId } });
    const place = await findPlace(db, scope, { destinationId, deviceId });
    if (place === null) throw unknownDestination(destinationId);
    const { tenantId, ip } = scope;
    const actor = { type: "user", id: userId, email } as const;
    const entry: AuditEntry = {
      tenantId,
      actor,
      action: "backupDestinations.recovery",
      resource: { type: "backupDestinations", id: destinationId },
      code: null,
      call: scope,
    };
    await db.sqlTx((tx) => audit.append(tx, entry));
    watch.note({
      type: "secrets.read",
      tenantId,
      entityType: "user",
      entityId: userId,
      ipAddress: ip,
      reason: destinationId,
      operation: "backupDestinations.recovery",
    });
    const { kind } = place.destination;
    const { repositoryId } = place.repository;
    const deadlineAt = secondsFromNow(SHEET_SECONDS, clock.now());
    const access = places.access(scope, place, { right: "read", commandId: null, deviceId: place.repository.deviceId, deadlineAt });
    return {
      destinationId: access.destinationId,
      deviceId: place.repository.deviceId,
      kind,
      repository: access.repository,
      password: access.password,
      environment: access.environment,
      folder: kind === "gateway" ? repositoryId : null,
      expiresAt: kind === "gateway" ? access.expiresAt : null,
      commands: linesOf(kind),
    };
  },
});
