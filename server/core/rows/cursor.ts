// Cursors: the sort values of the last item of a page, bound to the list, its owner, its sort and its filters. A cursor grants nothing: the list
// applies its own conditions beside it, so it is checked and not signed.
import { createHash } from "node:crypto";
import { FIRST } from "../../../protocol/index.ts";
import { AppError } from "../errors.ts";
import { isStorableText } from "./storable.ts";

export type CursorValue = string | number | Date | null;
/** What a cursor may hold for a column. */
export interface CursorColumn {
  readonly kind: "time" | "text" | "number";
  readonly nullable?: true;
}

const PAGING: ReadonlySet<string> = new Set(["page", "pageSize", "limit", "offset", "cursor"]);

/** The same for two queries that differ at most in paging. `owner` is the tenant or the user whose rows the list shows. */
export const bindingOf = (list: string, owner: string, query: object): string => {
  const kept = Object.entries(query).filter(([name, value]) => !PAGING.has(name) && value !== undefined);
  const text = JSON.stringify([list, owner, kept.sort(([a], [b]) => (a < b ? -1 : 1))]);
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
};

export const writeCursor = (binding: string, values: readonly CursorValue[]): string => Buffer.from(JSON.stringify([binding, ...values])).toString("base64url");

const refuse = (message: string): AppError =>
  new AppError("VALIDATION_FAILED", { details: { reason: "invalid_cursor", issues: [{ path: "cursor", code: "custom", message }] } });

const parse = (cursor: string): readonly unknown[] => {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (Array.isArray(parsed)) return parsed;
  } catch {
    // Refused below, like any other text.
  }
  throw refuse("is not a cursor of this gateway");
};

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const checked = (value: unknown, { kind, nullable }: CursorColumn): CursorValue | undefined => {
  if (value === null) return nullable === true ? null : undefined;
  if (kind === "number") return Number.isSafeInteger(value) ? (value as number) : undefined;
  if (typeof value !== "string" || !isStorableText(value)) return undefined;
  if (kind === "text") return value;
  const at = new Date(value);
  return ISO.test(value) && !Number.isNaN(at.getTime()) && at.getUTCFullYear() > 0 ? at : undefined;
};

/** Null at the beginning of the list. Throws for a cursor that this list did not give for this query. */
export const readCursor = (cursor: string | undefined, binding: string, columns: readonly CursorColumn[]): readonly CursorValue[] | null => {
  if (cursor === undefined || cursor === FIRST) return null;
  const [bound, ...given] = parse(cursor);
  if (bound !== binding) throw refuse("belongs to another list, sort or filter");
  const values = columns.map((column, at) => checked(given[at], column));
  if (given.length !== columns.length || values.includes(undefined)) throw refuse("is not a cursor of this gateway");
  return values as readonly CursorValue[]; // as: none is undefined
};
