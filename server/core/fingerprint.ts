// The digest of a request, independent of the order of its fields. An idempotency key is bound to it.
import { createHash } from "node:crypto";

/** Canonical JSON: keys sorted, undefined fields left out. */
const canonical = (value: unknown): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const entries = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(",")}}`;
};

/** SHA-256, 32 bytes. */
export const fingerprint = (value: unknown): Buffer => createHash("sha256").update(canonical(value)).digest();
