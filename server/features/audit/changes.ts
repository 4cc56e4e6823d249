// The rows that a transaction changed, as PostgreSQL's trigger kept them, and as the log may show them: secrets masked, long values cut.
import type { AuditLog } from "../../../protocol/index.ts";

type Columns = Readonly<Record<string, unknown>>;
export type Change = AuditLog["changes"][number];

export interface Captured {
  readonly change: Change;
  readonly tenantId: string | null;
}

interface Kept {
  readonly table: string;
  readonly id: string | null;
  readonly tenantId: string | null;
  readonly before: Columns | null;
  readonly after: Columns | null;
}

export const MASK = "[masked]";
const MAX_TEXT = 500;
const MAX_JSON = 4_000;

/** Names of columns, and of fields inside of JSON, that hold a secret, its hash or a code. */
const SECRET = /secret|hash|token|password|passphrase|private|credential|cipher|sealed|cookie|authorization|verifier|nonce|api_?key|(?:^|_)(?:key|otp|code)$/i;
/** An id or a time of a secret is none. */
const HARMLESS = /(?:_id|Id|_ids|_at|At|_until|Until|_seconds|_version|last4|_prefix)$/;
// How to_jsonb writes bytes: whatever they are, nobody reads them here.
const BYTES = /^\\x(?:[0-9a-f]{2})*$/;

export const isSecretName = (name: string): boolean => SECRET.test(name) && !HARMLESS.test(name);

const shown = (name: string, value: unknown): unknown => {
  if (value === null || typeof value === "boolean") return value;
  if (isSecretName(name)) return MASK;
  if (typeof value === "string") return BYTES.test(value) ? MASK : value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT).toWellFormed()}…` : value;
  if (typeof value !== "object") return value;
  const masked = Array.isArray(value) ? value.map((each) => shown("", each)) : maskedFields(value as Columns);
  return JSON.stringify(masked).length > MAX_JSON ? `[${JSON.stringify(value).length} characters of JSON]` : masked;
};
const maskedFields = (fields: Columns): Columns => Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, shown(name, value)]));

const camel = (name: string): string => name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
const columns = (row: Columns | null): Record<string, unknown> | null =>
  row === null ? null : Object.fromEntries(Object.entries(row).map(([name, value]) => [camel(name), shown(name, value)]));

/** One line of JSON per row. */
export const readChanges = (lines: string): readonly Captured[] =>
  lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { table, id, tenantId, before, after } = JSON.parse(line) as Kept; // as: the trigger writes nothing else
      return { change: { type: table.replaceAll("_", "-"), id, before: columns(before), after: columns(after) }, tenantId };
    });
