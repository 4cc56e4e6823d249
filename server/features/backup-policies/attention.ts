// The backup policies whose last runs did not save all that they should.
import type { Attention, AttentionSource } from "../../core/people/attention.ts";
import type { FeatureKit } from "../kit.ts";
import { findFailingPolicies } from "./store/policies.ts";

export const createPolicyAttention = ({ db }: Pick<FeatureKit, "db">): AttentionSource => ({
  needs: "backup_policy:read",
  find: async (scope, limit) =>
    (await findFailingPolicies(db, scope, limit)).map(
      ({ policyId: id, name, consecutiveFailures, lastRunAt, runs: [run] }): Attention => ({
        kind: "backup_policy_failed",
        tone: "warn",
        count: 1,
        since: lastRunAt,
        subject: { kind: "backupPolicy", id, name },
        names: [name],
        params: { runs: consecutiveFailures, ...(run === undefined ? {} : { failed: run.failed + run.partiallyFailed, total: run.total }) },
        action: { place: "backup-policies", id, search: "" },
      }),
    ),
});
