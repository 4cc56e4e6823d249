// An endpoint as its row says now: secrets and headers opened once per version of the webhook.
import { signingKeyOf } from "../../../core/people/standard-webhooks.ts";
import type { SealedContext } from "../../../platform/keys/sealed.ts";
import type { SecretBox } from "../../../platform/keys/secrets.ts";
import type { EndpointRow } from "../store/work.ts";
import type { EndpointState, Runner } from "./endpoint-runner.ts";
import type { WebhookFormat } from "./payload.ts";

export const webhookSecretContext = (tenantId: string, webhookId: string): SealedContext => `webhook-secret|${tenantId}|${webhookId}`;
export const headersContext = (tenantId: string, webhookId: string): SealedContext => `webhook-headers|${tenantId}|${webhookId}`;

export interface Sealed {
  readonly secret: Uint8Array;
  readonly previous: Uint8Array | null;
  readonly headers: Uint8Array | null;
}

export const openSealed = (secretBox: Pick<SecretBox, "open">, tenantId: string, webhookId: string, { secret, previous, headers }: Sealed) => ({
  keys: [secret, ...(previous === null ? [] : [previous])].map((each) => signingKeyOf(secretBox.open(each, webhookSecretContext(tenantId, webhookId)))),
  headers: headers === null ? {} : (JSON.parse(secretBox.open(headers, headersContext(tenantId, webhookId))) as Record<string, string>), // as: we sealed one
});

export const createRefresh = (secretBox: Pick<SecretBox, "open">) => {
  const versions = new WeakMap<EndpointState, string>();
  return ({ tenantId, webhookId, state: before }: Runner, row: EndpointRow): EndpointState => {
    // A grace that ends changes no version.
    const version = `${row.version}|${row.previous_secret === null}`;
    const opened =
      before !== null && versions.get(before) === version
        ? { keys: before.keys, headers: before.headers }
        : openSealed(secretBox, tenantId, webhookId, { secret: row.secret, previous: row.previous_secret, headers: row.headers });
    const state: EndpointState = {
      ...opened,
      webhookId,
      tenantId,
      url: row.url,
      format: row.format as WebhookFormat, // as: the column holds nothing else
      epoch: row.epoch,
      maxPerSecond: row.max_per_second,
      isOpen: row.is_open,
    };
    versions.set(state, version);
    return state;
  };
};
