// The destinations of backups that did not work when they were last used.
import type { Attention, AttentionSource } from "../../core/people/attention.ts";
import type { FeatureKit } from "../kit.ts";
import { findBrokenDestinations } from "./store/destinations.ts";

export const createDestinationAttention = ({ db }: Pick<FeatureKit, "db">): AttentionSource => ({
  needs: "backup_destination:read",
  find: async (scope, limit) =>
    (await findBrokenDestinations(db, scope, limit)).map(
      ({ destinationId: id, name, lastError, lastCheckedAt }): Attention => ({
        kind: "backup_destination_failed",
        tone: "warn",
        count: 1,
        since: lastCheckedAt,
        subject: { kind: "backupDestination", id, name },
        names: [name],
        params: lastError === null ? {} : { reason: lastError.reason, message: lastError.message },
        action: { place: "backup-destinations", id: null, search: "" },
      }),
    ),
});
