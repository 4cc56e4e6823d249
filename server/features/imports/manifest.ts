// Writes a tenant as a manifest: what people wish for, without what only happened, and with names in place of ids.
import { stringify } from "yaml";
import { IMPORTED_KINDS, takenBy } from "./kinds.ts";
import { MANIFEST_FORMAT } from "./manifest-reader.ts";
import { comesWithTenant, recordKey } from "./plan.ts";
import type { RecordKind } from "./plan-changes.ts";
import { replaceIds } from "./references.ts";
import type { Data } from "./wanted.ts";

export interface ManifestSection {
  readonly scope: string;
  readonly named: RecordKind;
  readonly records: readonly Data[];
}

/** `kind/name` by id, for names that only one record of the kind has. */
const namesOf = (sections: readonly ManifestSection[]): ReadonlyMap<string, string> => {
  const names = new Map<string, string>();
  for (const { named, records } of sections) {
    const keys = records.map((record) => recordKey(named, record));
    for (const [at, record] of records.entries()) {
      const key = keys[at] ?? "";
      if (keys.indexOf(key) === keys.lastIndexOf(key)) names.set(String(record[named.id]), `${named.kind}/${key}`);
    }
  }
  return names;
};

/** The field that names a record which nothing else of the manifest does. */
const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ["device", "fingerprint"],
  ["role", "key"],
  ["member", "email"],
]);
/** What a change sets and nobody wishes for. */
const LEFT_OUT: ReadonlySet<string> = new Set(["version", "status"]);

const wishOf = ({ named }: ManifestSection, record: Data, names: ReadonlyMap<string, string>): Data => {
  const how = IMPORTED_KINDS[named.kind] ?? {};
  const { renamed = {}, only } = how;
  const taken = takenBy(how);
  const isWish = (name: string): boolean => taken.has(renamed[name] ?? name) && name !== named.id && !LEFT_OUT.has(name) && (only?.includes(name) ?? true);
  const own = NAMED_BY.get(named.kind);
  const fields = Object.entries(record).filter(([name, value]) => value !== null && (name === own || isWish(name)));
  return replaceIds(Object.fromEntries(fields), (text) => names.get(text) ?? text) as Data; // as: an object stays one
};

/** What comes with every tenant, and what nothing names, nobody can wish for. */
const isWished = ({ named }: ManifestSection, record: Data): boolean => {
  const name = NAMED_BY.get(named.kind);
  return !comesWithTenant(named.kind, record) && (name === undefined || (record[name] ?? null) !== null);
};

/** The records of these pages. No page is read after the one that brings more than `max`. */
export const takeRecords = async (pages: AsyncIterable<readonly Data[]>, max = Number.POSITIVE_INFINITY): Promise<readonly Data[]> => {
  const records: Data[] = [];
  for await (const page of pages) {
    records.push(...page);
    if (records.length > max) break;
  }
  return records;
};

export const writeManifest = (sections: readonly ManifestSection[]): string => {
  const names = namesOf(sections);
  const shown = sections.flatMap((section): (readonly [string, unknown])[] => {
    const wishes = section.records.filter((record) => isWished(section, record)).map((record) => wishOf(section, record, names));
    if (section.scope === "settings") return [[section.scope, wishes[0] ?? {}]];
    return wishes.length === 0 ? [] : [[section.scope, wishes]];
  });
  return stringify({ format: MANIFEST_FORMAT, ...Object.fromEntries(shown) }, { lineWidth: 0, aliasDuplicateObjects: false });
};
