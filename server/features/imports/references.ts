// References between the records of a document, and to those that are there: by id as an export has them, or by kind and key as people write them.

const PREFIXES: ReadonlyMap<string, string> = new Map([
  ["flt", "fleet"],
  ["upl", "update-policy"],
  ["dev", "device"],
  ["dep", "deployment"],
  ["app", "app"],
  ["rol", "role"],
  ["mem", "member"],
  ["chn", "channel"],
  ["bkd", "backup-destination"],
  ["bpl", "backup-policy"],
  ["arl", "alert-rule"],
  ["wh", "webhook"],
  ["tun", "tunnel"],
]);
const ID = /^([a-z]{2,3})_[0-9A-Za-z]{20,32}$/;
const WRITTEN = /^([a-z-]+)\/(.+)$/s;
const FIELD = /^(?:id|\w+Ids?)$/;
const MADE = /^import-line:(\d+)$/;

export interface RecordReference {
  readonly kind: string;
  readonly id: string | null;
  readonly key: string | null;
}

/** Null: the text names no record. */
export const referenceOf = (text: string): RecordReference | null => {
  const [, prefix = ""] = ID.exec(text) ?? [];
  const byId = PREFIXES.get(prefix);
  if (byId !== undefined) return { kind: byId, id: text, key: null };
  const [, kind = "", key = ""] = WRITTEN.exec(text) ?? [];
  return [...PREFIXES.values()].includes(kind) ? { kind, id: null, key } : null;
};

/** In place of the id of a record that the import itself makes. */
export const madeBy = (line: number): string => `import-line:${line}`;
export const lineThatMakes = (text: string): number | null => {
  const [, line] = MADE.exec(text) ?? [];
  return line === undefined ? null : Number(line);
};

/** Replaces the texts of the fields that hold ids, however deep they stand. */
export const replaceIds = (value: unknown, replace: (text: string) => string, field = ""): unknown => {
  if (typeof value === "string") return FIELD.test(field) ? replace(value) : value;
  if (Array.isArray(value)) return value.map((each) => replaceIds(each, replace, field));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, replaceIds(inner, replace, name)]));
};
