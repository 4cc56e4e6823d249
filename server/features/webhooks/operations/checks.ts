// What a webhook may be: its URL, its events, and how its secret and headers are kept.
import type { Webhook } from "../../../../protocol/index.ts";
import { AppError } from "../../../core/errors.ts";
import { newWebhookSecret } from "../../../core/people/standard-webhooks.ts";
import type { Outbound } from "../../../core/ports/outbound.ts";
import type { SecretBox } from "../../../platform/keys/secrets.ts";
import { headersContext, webhookSecretContext } from "../delivery/endpoint-state.ts";
import { isWeak } from "../delivery/signing.ts";
import { unknownPatterns } from "./event-patterns.ts";

interface Named {
  readonly tenantId: string;
  readonly webhookId: string;
}

/** Before the transaction: it looks up the host's name. A refusal counts as a blocked call of the tenant's. */
export const checkUrl = async (outbound: Pick<Outbound, "refusal">, { tenantId }: Pick<Named, "tenantId">, url: string | undefined): Promise<void> => {
  if (url === undefined) return;
  const reason = await outbound.refusal(url, tenantId);
  if (reason !== null) throw new AppError("WEBHOOK_URL_NOT_ALLOWED", { details: { reason } });
};

/** Each pattern once and in one order, so that two webhooks with the same events are seen to be alike. */
export const checkEvents = (events: readonly string[]): string[] => {
  const unknown = unknownPatterns(events);
  if (unknown.length > 0) throw new AppError("EVENT_TYPE_UNKNOWN", { details: { unknown } });
  return [...new Set(events)].sort();
};

const HINT = 4;
export const sealSecret = (secretBox: Pick<SecretBox, "seal">, { tenantId, webhookId }: Named, chosen: string | undefined) => {
  const secret = chosen ?? newWebhookSecret();
  const warnings: "WEAK_SECRET"[] = isWeak(secret) ? ["WEAK_SECRET"] : [];
  return {
    columns: { secret: secretBox.seal(secret, webhookSecretContext(tenantId, webhookId)), secretHint: secret.slice(-HINT) },
    /** A secret of the caller's is never returned. */
    shown: { ...(chosen === undefined ? { secret } : {}), warnings },
  };
};

export const sealHeaders = (secretBox: Pick<SecretBox, "seal">, { tenantId, webhookId }: Named, headers: Readonly<Record<string, string>>) => {
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return {
    headers: names.length === 0 ? null : secretBox.seal(JSON.stringify(lower), headersContext(tenantId, webhookId)),
    headerNames: names.sort(),
  };
};

export type ShownWebhook = Webhook & ReturnType<typeof sealSecret>["shown"];
