// Makes the plan of an import: what each line does to the records that are there, by the operations that carry it out. Nothing is changed here.
import type { ImportAction } from "../../../protocol/index.ts";
import { IMPORTED_KINDS, type ImportedKind } from "./kinds.ts";
import {
  fieldsIn,
  type ImportPlanDeps,
  LineRefused,
  type PlanContext,
  type PlannedLine,
  type PlanOptions,
  planCreate,
  planDeletion,
  planUpdate,
  type RecordKind,
} from "./plan-changes.ts";
import { madeBy, referenceOf, replaceIds } from "./references.ts";
import type { Data, ReadDocument, WantedLine } from "./wanted.ts";

/** What every tenant has, so that nobody wishes for it and no import deletes it. */
export const comesWithTenant = (kind: string, record: Data): boolean => record["builtIn"] === true || (kind === "deployment" && record["isDefault"] === true);

/** The code of lines that are counted and nothing else: there may be a million of them. */
export const HISTORY = "HISTORY";
const MAX_KEY = 500;
/** Beyond one of so many records of a kind, whoever applies the plan confirms its deletions. */
const SMALL_SHARE = 10;

export interface Deletions {
  readonly lines: readonly PlannedLine[];
  /** How many they are, if that has to be confirmed. */
  readonly toConfirm: number | null;
}

/** What names a record among others of its kind. */
export const recordKey = ({ key, id }: RecordKind, record: Data): string => {
  try {
    return String(key(record) ?? record["name"] ?? "");
  } catch {
    // A record that people write may lack what its key is made of.
    return String(record[id] ?? record["name"] ?? "");
  }
};

interface Known {
  readonly all: readonly Data[];
  readonly byId: ReadonlyMap<string, Data>;
  readonly byKey: ReadonlyMap<string, Data>;
  /** Undefined for a name that several have. */
  readonly byAlias: ReadonlyMap<string, Data | undefined>;
}
const index = (named: RecordKind, alias: ImportedKind["alias"], records: readonly Data[]): Known => {
  const byAlias = new Map<string, Data | undefined>();
  for (const record of records) {
    const name = alias?.(record);
    if (typeof name === "string") byAlias.set(name, byAlias.has(name) ? undefined : record);
  }
  return {
    all: records,
    byId: new Map(records.map((record) => [String(record[named.id]), record])),
    // The first of several that have one name.
    byKey: new Map(records.toReversed().map((record) => [recordKey(named, record), record])),
    byAlias,
  };
};

/** Plans one record after the other, in the order of the document. */
export const createPlanner = (deps: ImportPlanDeps, options: PlanOptions, format: ReadDocument["format"]) => {
  const context: PlanContext = { deps, options, format };
  const known = new Map<string, Known>();
  const knownOf = async (kind: string): Promise<Known> => {
    const found = known.get(kind) ?? index(deps.kindNamed(kind), IMPORTED_KINDS[kind]?.alias, await deps.load(kind));
    known.set(kind, found);
    return found;
  };
  /** What became of the lines so far: the id of their record, or a word for the one that they will make. */
  const targets = new Map<string, string>();
  const seen = new Set<string>();
  /** The records that the document names. */
  const met = new Set<string>();

  const resolve = async (data: Data): Promise<Data> => {
    const wanted = new Set<string>();
    replaceIds(data, (text) => {
      wanted.add(text);
      return text;
    });
    const resolved = new Map<string, string>();
    for (const text of wanted) {
      const reference = referenceOf(text);
      if (reference === null) continue;
      const { kind, id, key } = reference;
      const { byId, byKey, byAlias } = await knownOf(kind);
      const found = id === null ? (byKey.get(key ?? "") ?? byAlias.get(key ?? "")) : byId.get(id);
      const target = targets.get(`${kind} ${id ?? key}`) ?? (found === undefined ? undefined : String(found[deps.kindNamed(kind).id]));
      if (target === undefined) throw new LineRefused("REFERENCE_UNKNOWN", `${text.slice(0, 200)} is neither here nor made by the import`);
      resolved.set(text, target);
    }
    return replaceIds(data, (text) => resolved.get(text) ?? text) as Data; // as: an object stays one
  };

  /** What an import does not do with a record, whatever its line says. */
  const leftOut = (named: RecordKind, record: Data | undefined, isTwice: boolean): readonly [ImportAction, code: string, message: string] | null => {
    if (IMPORTED_KINDS[named.kind] === undefined) return ["skip", "NOT_IMPORTED", "an import makes none of these"];
    if (record?.["builtIn"] === true) return ["skip", "BUILT_IN", "comes with every tenant"];
    return isTwice ? ["refuse", "DUPLICATE", "an earlier line has the same name"] : null;
  };

  const planOf = async (line: WantedLine): Promise<PlannedLine> => {
    const named = deps.kindNamed(line.kind);
    const how: ImportedKind = IMPORTED_KINDS[line.kind] ?? {};
    const key = recordKey(named, line.data);
    const base = { n: line.n, line: line.line, kind: line.kind, key: key.slice(0, MAX_KEY), changes: [], recordId: null };
    const ended = (action: ImportAction, code: string, message: string) => ({ ...base, action, code, message, calls: [] });
    if (named.isHistory) return ended("skip", HISTORY, "history is never imported");
    const { byId, byKey, byAlias } = await knownOf(line.kind);
    const alias = how.alias?.(line.data);
    const record = byId.get(line.id ?? "") ?? byKey.get(key) ?? (typeof alias === "string" ? byAlias.get(alias) : undefined);
    const recordId = record === undefined ? null : String(record[named.id]);
    const note = (target: string): void => {
      for (const name of [line.id, key]) if (name !== null) targets.set(`${line.kind} ${name}`, target);
    };
    if (recordId !== null) {
      note(recordId);
      met.add(`${line.kind} ${recordId}`);
    }
    const left = leftOut(named, record, seen.has(`${line.kind} ${key}`));
    if (left !== null) return { ...ended(...left), recordId };
    seen.add(`${line.kind} ${key}`);
    try {
      const fields = await resolve(fieldsIn(context, line, how, named));
      if (record !== undefined) return { ...base, recordId, ...planUpdate(context, { line, how, fields, record }) };
      const planned = planCreate(context, line, how, fields);
      if (planned.action === "create") note(madeBy(line.n));
      return { ...base, ...planned };
    } catch (error) {
      if (error instanceof LineRefused) return { ...ended("refuse", error.code, error.message), recordId };
      throw error;
    }
  };

  /** Deletes what is here and the document lacks, of the kinds that it has, numbered from `first` on. What depends on others goes before them. */
  const deletionsOf = async (kinds: ReadonlySet<string>, first: number): Promise<Deletions> => {
    const lines: PlannedLine[] = [];
    let isMany = false;
    for (const [kind, { remove, removeWith }] of Object.entries(IMPORTED_KINDS).toReversed()) {
      if (remove === undefined || !kinds.has(kind)) continue;
      const named = deps.kindNamed(kind);
      const records = (await knownOf(kind)).all.filter((record) => !comesWithTenant(kind, record));
      const lacking = records.filter((record) => !met.has(`${kind} ${record[named.id]}`));
      isMany ||= lacking.length * SMALL_SHARE > records.length;
      for (const record of lacking)
        lines.push(
          planDeletion(
            context,
            { n: first + lines.length, kind, key: recordKey(named, record).slice(0, MAX_KEY), remove, removeWith },
            String(record[named.id]),
          ),
        );
    }
    return { lines, toConfirm: isMany ? lines.length : null };
  };

  return { planOf, deletionsOf };
};
export type Planner = ReturnType<typeof createPlanner>;
