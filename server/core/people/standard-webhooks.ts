// Secrets and signatures of Standard Webhooks, for all that signs what it posts.
import { createHmac, randomBytes } from "node:crypto";

const PREFIX = "whsec_";
const MIN_BYTES = 24;
const MAX_BYTES = 64;

export const newWebhookSecret = (): string => `${PREFIX}${randomBytes(32).toString("base64")}`;

/** The bytes of strict Base64, with its padding or without; null for any other text. */
const bytesOf = (text: string): Buffer | null => {
  const bytes = Buffer.from(text, "base64");
  const exact = bytes.toString("base64");
  return text === exact || text === exact.replace(/=+$/, "") ? bytes : null;
};

/** `whsec_` and the Base64 of 24 to 64 bytes stands for these bytes, as Standard Webhooks says. Any other text is the key itself. */
export const signingKeyOf = (secret: string): Buffer => {
  const bytes = secret.startsWith(PREFIX) ? bytesOf(secret.slice(PREFIX.length)) : null;
  return bytes !== null && bytes.length >= MIN_BYTES && bytes.length <= MAX_BYTES ? bytes : Buffer.from(secret);
};

/** One signature for each key, separated by spaces. */
export const standardHeaders = (id: string, body: string, { keys, at }: { readonly keys: readonly Buffer[]; readonly at: Date }) => {
  const seconds = String(Math.floor(at.getTime() / 1_000));
  const signatures = keys.map((key) => `v1,${createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64")}`);
  return { "webhook-id": id, "webhook-timestamp": seconds, "webhook-signature": signatures.join(" ") };
};
