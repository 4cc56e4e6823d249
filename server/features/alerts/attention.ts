// The open alerts, but for those whose cause has a line of its own: the feature that knows the cause says more of it.
import type { AlertMetric } from "../../../protocol/index.ts";
import type { Attention, AttentionSource } from "../../core/people/attention.ts";
import type { FeatureKit } from "../kit.ts";
import { findUnanswered } from "./store/alerts.ts";

const SAID_ELSEWHERE: readonly AlertMetric[] = [
  "device.offline_seconds",
  "rollout.stopped",
  "rollout.waiting_seconds",
  "certificate.days_left",
  "backup.failed",
];
const TONES = { critical: "bad", warning: "warn", info: "info" } as const;

export const createAlertAttention = ({ db, clock }: Pick<FeatureKit, "db" | "clock">): AttentionSource => ({
  needs: "alert:read",
  find: async (scope, limit) =>
    (await findUnanswered(db, scope, { except: SAID_ELSEWHERE, now: clock.now(), limit })).map(
      ({ alertId, title, severity, type, startedAt, activeCount, target }): Attention => ({
        kind: "alert",
        tone: TONES[severity],
        count: Math.max(1, activeCount),
        since: new Date(startedAt),
        subject: { kind: "alert", id: alertId, name: title },
        names: target?.name == null ? [] : [target.name],
        params: { severity, metric: type },
        action: { place: "alerts", id: alertId, search: "" },
      }),
    ),
});
