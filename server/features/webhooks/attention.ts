// The webhooks that the gateway has switched off because nobody took their deliveries.
import type { Attention, AttentionSource } from "../../core/people/attention.ts";
import type { FeatureKit } from "../kit.ts";
import { findGivenUp } from "./store/endpoints.ts";

export const createWebhookAttention = ({ db }: Pick<FeatureKit, "db">): AttentionSource => ({
  needs: "webhook:read",
  find: async (scope, limit) =>
    (await findGivenUp(db, scope, limit)).map(
      ({ webhookId: id, url, disabledAt, disabledReason }): Attention => ({
        kind: "webhook_disabled",
        tone: "warn",
        count: 1,
        since: disabledAt,
        subject: { kind: "webhook", id, name: url },
        names: [url],
        params: disabledReason === null ? {} : { reason: disabledReason },
        action: { place: "webhooks", id, search: "" },
      }),
    ),
});
