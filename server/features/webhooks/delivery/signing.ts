// The headers of a delivery: two signatures by each valid secret, the one of Standard Webhooks and the one that agents use.
import { createHmac, randomBytes } from "node:crypto";
import { standardHeaders } from "../../../core/people/standard-webhooks.ts";

export const MASKED = "***";
const PREFIX = "whsec_";
const MIN_BYTES = 24;
const MAX_BYTES = 64;
/** A shorter secret can be guessed. */
const WEAK_BELOW = 24;

export const newWebhookSecret = (): string => `${PREFIX}${randomBytes(32).toString("base64")}`;
export const isWeak = (secret: string): boolean => secret.length < WEAK_BELOW;

/** `whsec_` and Base64 stands for bytes, as Standard Webhooks says; any other text is the key itself. */
export const signingKeyOf = (secret: string): Buffer => {
  if (!secret.startsWith(PREFIX)) return Buffer.from(secret);
  const text = secret.slice(PREFIX.length);
  const bytes = Buffer.from(text, "base64");
  const isBase64 = bytes.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "");
  return isBase64 && bytes.length >= MIN_BYTES && bytes.length <= MAX_BYTES ? bytes : Buffer.from(secret);
};

export interface Signed {
  readonly eventId: string;
  readonly body: string;
}

/** One signature of each scheme for each key, separated by spaces. */
export const signatureHeaders = ({ eventId, body }: Signed, keys: readonly Buffer[], at: Date): Record<string, string> => {
  const iso = at.toISOString();
  const own = keys.map((key) => createHmac("sha256", key).update(`${body}${iso}`).digest("hex"));
  return { ...standardHeaders(eventId, body, { keys, at }), "x-svc-timestamp": iso, "x-svc-signature": own.join(" ") };
};
