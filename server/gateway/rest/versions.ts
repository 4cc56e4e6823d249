// Which operations answer with a record that has a version, and which change such a record: for ETag, If-None-Match and If-Match, all of it
// derived from the contract.
import { hash } from "node:crypto";
import type { Operation } from "../../../protocol/index.ts";
import { invalid } from "./parse.ts";
import { jsonSchemaOf } from "./rest-input.ts";

/** The parts of an entry that matter here. */
interface Declared {
  readonly op: Operation;
}

interface Fields {
  readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>;
}

const hasVersion = ({ output, list, status }: Operation): boolean =>
  list === undefined && status !== 204 && (jsonSchemaOf(output, "output") as Fields).properties?.["version"]?.type === "integer";

const pathOf = ({ rest }: Operation): string => rest[0]?.split(" ")[1] ?? "";
const isRead = ({ rest }: Operation): boolean => rest[0]?.startsWith("GET ") === true;

export interface Versions {
  /** Its answer is one record with a version. */
  isVersioned(op: Operation): boolean;
  /** The field of the path that names the record which the operation changes, when callers can read that record's version. */
  changedBy(op: Operation): string | null;
}

/** A change is at the record's own path or at an action below it, such as `POST /api-keys/{keyId}/rotate`; what can be read itself is no action. */
export const versionsOf = (entries: readonly Declared[]): Versions => {
  const ops = entries.map(({ op }) => op).filter(({ rest }) => rest.length > 0);
  const versioned = new Set(ops.filter(hasVersion));
  const reads = new Set(ops.filter(isRead).map(pathOf));
  const records = new Set([...versioned].filter(isRead).map(pathOf));
  const fieldOf = (op: Operation): string | null => {
    const path = pathOf(op);
    if (op.kind !== "mutation" || !op.auth.some((kind) => kind === "user" || kind === "apiKey")) return null;
    const record = reads.has(path) ? path : path.slice(0, path.lastIndexOf("}") + 1);
    return records.has(record) ? (/\{(\w+)\}[^{}]*$/.exec(record)?.[1] ?? null) : null;
  };
  const changed = new Map(ops.map((op) => [op, fieldOf(op)]));
  return { isVersioned: (op) => versioned.has(op), changedBy: (op) => changed.get(op) ?? null };
};

const TAG = /^(?:W\/)?(?:"(\d{1,9})(?:-[\w-]+)?"|(\d{1,9}))$/;
const split = (header: string): readonly string[] => header.split(",").map((tag) => tag.trim());

/** The versions that the caller accepts; null for `*` and without the header. Proxies that compress make a tag weak, so a weak one counts. */
export const readIfMatch = (header: string | undefined): readonly number[] | null => {
  if (header === undefined || header.trim() === "*") return null;
  return split(header).map((tag) => {
    const [, quoted, bare] = TAG.exec(tag) ?? [];
    const version = quoted ?? bare;
    if (version === undefined) throw invalid("header.if-match", "must be a version in quotes, a list of them, or *");
    return Number(version);
  });
};

const META = ',"meta":{';

/**
 * The tag of an answer. A record has fields that change without a new version, such as a device's status, so a tag that may spare a
 * read also says what the record looks like.
 */
export const tagOf = (result: unknown, body: string | null): string => {
  const { version } = result as { readonly version: number };
  return body === null ? `"${version}"` : `"${version}-${hash("sha1", body.slice(0, body.lastIndexOf(META)), "base64url").slice(0, 11)}"`;
};

/** Whether the caller has this answer already (RFC 9110, 13.1.2: weak comparison). */
export const isKnown = (ifNoneMatch: string | undefined, tag: string): boolean =>
  ifNoneMatch !== undefined && (ifNoneMatch.trim() === "*" || split(ifNoneMatch).some((each) => each.replace(/^W\//, "") === tag));
