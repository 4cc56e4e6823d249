// The signature of Standard Webhooks, for all that signs what it posts.
import { createHmac } from "node:crypto";

/** One signature for each key, separated by spaces. */
export const standardHeaders = (id: string, body: string, { keys, at }: { readonly keys: readonly Buffer[]; readonly at: Date }) => {
  const seconds = String(Math.floor(at.getTime() / 1_000));
  const signatures = keys.map((key) => `v1,${createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64")}`);
  return { "webhook-id": id, "webhook-timestamp": seconds, "webhook-signature": signatures.join(" ") };
};
