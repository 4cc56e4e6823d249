// What looks like an attack and nobody has answered.
import type { Attention, AttentionSource } from "../../core/people/attention.ts";
import type { FeatureKit } from "../kit.ts";
import { findUnansweredAlerts } from "./store.ts";

const TONES = { critical: "bad", high: "bad", medium: "warn", low: "info" } as const;

export const createSecurityAttention = ({ db }: Pick<FeatureKit, "db">): AttentionSource => ({
  needs: "security:read",
  find: async (scope, limit) =>
    (await findUnansweredAlerts(db, scope, limit)).map(
      ({ alertId: id, type, severity, count, createdAt }): Attention => ({
        kind: "security_alert",
        tone: TONES[severity],
        count: Math.max(1, count),
        since: createdAt,
        subject: { kind: "securityAlert", id, name: type },
        names: [],
        params: { severity, type },
        action: { place: "security", id, search: "" },
      }),
    ),
});
