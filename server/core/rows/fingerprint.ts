// The digest of a request, independent of the order of its fields. An idempotency key is bound to it.
import { createHash } from "node:crypto";

/** Canonical JSON: keys sorted, undefined fields left out. */
const canonical = (value: unknown): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  return joined(fieldsOf(value));
};

type Fields = readonly (readonly [name: string, canonical: string])[];
const fieldsOf = (value: object): Fields =>
  Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .map(([name, inner]) => [name, canonical(inner)]);
const joined = (fields: Fields): string =>
  `{${fields
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
    .join(",")}}`;

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

/** SHA-256, 32 bytes. */
export const fingerprint = (value: unknown): Buffer => sha256(canonical(value));

/** The fingerprint of `{ ...shared, ...own }`, for many requests that share most fields, which it reads once. The two have no field in common. */
export const fingerprintWith = (shared: object): ((own: object) => Buffer) => {
  const fields = fieldsOf(shared);
  return (own) => sha256(joined([...fields, ...fieldsOf(own)]));
};
