// The headers of a delivery: two signatures by each valid secret, the one of Standard Webhooks and the one that agents use.
import { createHmac } from "node:crypto";
import { standardHeaders } from "../../../core/people/standard-webhooks.ts";

export const MASKED = "***";
/** A shorter secret can be guessed. */
const WEAK_BELOW = 24;

export const isWeak = (secret: string): boolean => secret.length < WEAK_BELOW;

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
