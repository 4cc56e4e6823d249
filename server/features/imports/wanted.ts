// A record that a document wants, and what is true of every one of them, whatever the document is. Nothing of it is trusted.
import { AppError } from "../../core/errors.ts";
import { isDeeperThan } from "../../core/rows/json-bounds.ts";
import { badInputName, unstorable } from "../../core/rows/storable.ts";

export const MAX_DEPTH = 10;
const QUOTED = 200;

export type Data = Readonly<Record<string, unknown>>;

/** A record that the document wants. */
export interface WantedLine {
  /** From 1, among the records of the document. */
  readonly n: number;
  /** In the text, from 1. */
  readonly line: number;
  readonly kind: string;
  /** Its id where it was exported. */
  readonly id: string | null;
  readonly data: Data;
}
export interface ReadDocument {
  readonly format: "export" | "manifest";
  readonly origin: "written" | "this" | "foreign";
  readonly lines: readonly WantedLine[];
  /** The kinds that it has a section for, even an empty one. */
  readonly kinds: ReadonlySet<string>;
}

export interface DocumentDeps {
  /** The kind of the records of a scope, and the other way round. */
  readonly kindOf: (scope: string) => string | undefined;
  readonly isKind: (kind: string) => boolean;
  /** The signature that this installation gives to a file of that digest. */
  readonly isSigned: (digest: string, signature: string) => boolean;
}

export const invalidDocument = (line: number | null, reason: string): AppError =>
  new AppError("IMPORT_INVALID", { details: { line, reason: reason.slice(0, QUOTED) } });

export const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
const hasNumbers = (value: unknown): boolean =>
  typeof value === "number" ? Number.isFinite(value) : typeof value !== "object" || value === null || Object.values(value).every(hasNumbers);

export const checkedRecord = (line: number, value: unknown): Data => {
  if (!isObject(value)) throw invalidDocument(line, "a record must be an object");
  if (isDeeperThan(value, MAX_DEPTH)) throw invalidDocument(line, `is nested deeper than ${MAX_DEPTH} levels`);
  const problem = unstorable(value, badInputName);
  if (problem !== null) throw invalidDocument(line, problem);
  if (!hasNumbers(value)) throw invalidDocument(line, "has a number that is none");
  if (value["tenantId"] !== undefined) throw invalidDocument(line, "names a tenant");
  return value;
};

export const unsupported = (found: unknown, known: string): AppError =>
  new AppError("IMPORT_VERSION_UNSUPPORTED", { details: { found: String(found).slice(0, QUOTED), known } });
