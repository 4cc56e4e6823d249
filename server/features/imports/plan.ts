// Makes the plan of an import: what each line does to the records that are there, by the operations that carry it out. Nothing is changed here.
import { createHash } from "node:crypto";
import type { ImportAction } from "../../../protocol/index.ts";
import type { Data, ReadDocument, WantedLine } from "./document.ts";
import { IMPORTED_KINDS, type ImportedKind } from "./kinds.ts";
import {
  canonical,
  fieldsIn,
  type ImportPlanDeps,
  LineRefused,
  type PlanContext,
  type PlannedLine,
  type PlanOptions,
  planCreate,
  planUpdate,
  type RecordKind,
} from "./plan-changes.ts";
import { madeBy, referenceOf, replaceIds } from "./references.ts";

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
    byId: new Map(records.map((record) => [String(record[named.id]), record])),
    // The first of several that have one name.
    byKey: new Map(records.toReversed().map((record) => [recordKey(named, record), record])),
    byAlias,
  };
};

export const makePlan = async (document: ReadDocument, deps: ImportPlanDeps, options: PlanOptions): Promise<readonly PlannedLine[]> => {
  const context: PlanContext = { deps, options, format: document.format };
  const known = new Map<string, Known>();
  const knownOf = async (kind: string): Promise<Known> => {
    const found = known.get(kind) ?? index(deps.kindNamed(kind), IMPORTED_KINDS[kind]?.alias, await deps.load(kind));
    known.set(kind, found);
    return found;
  };
  /** What became of the lines so far: the id of their record, or a word for the one that they will make. */
  const targets = new Map<string, string>();
  const seen = new Set<string>();

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

  /** What an import does not do with a line, whatever it says. */
  const leftOut = (named: RecordKind, record: Data | undefined, isTwice: boolean): readonly [ImportAction, code: string, message: string] | null => {
    if (named.isHistory) return ["skip", "HISTORY", "history is never imported"];
    if (IMPORTED_KINDS[named.kind] === undefined) return ["skip", "NOT_IMPORTED", "an import makes none of these"];
    if (record?.["builtIn"] === true) return ["skip", "BUILT_IN", "comes with every tenant"];
    return isTwice ? ["refuse", "DUPLICATE", "an earlier line has the same name"] : null;
  };

  const planOf = async (line: WantedLine): Promise<PlannedLine> => {
    const named = deps.kindNamed(line.kind);
    const how: ImportedKind = IMPORTED_KINDS[line.kind] ?? {};
    const key = recordKey(named, line.data);
    const base = { n: line.n, line: line.line, kind: line.kind, key: key.slice(0, 500), changes: [], recordId: null };
    const ended = (action: ImportAction, code: string, message: string) => ({ ...base, action, code, message, calls: [] });
    const { byId, byKey, byAlias } = await knownOf(line.kind);
    const alias = how.alias?.(line.data);
    const record = byId.get(line.id ?? "") ?? byKey.get(key) ?? (typeof alias === "string" ? byAlias.get(alias) : undefined);
    const recordId = record === undefined ? null : String(record[named.id]);
    const note = (target: string): void => {
      for (const name of [line.id, key]) if (name !== null) targets.set(`${line.kind} ${name}`, target);
    };
    if (recordId !== null) note(recordId);
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

  const plan: PlannedLine[] = [];
  for (const line of document.lines) plan.push(await planOf(line));
  return plan;
};

export const planHashOf = (plan: readonly PlannedLine[]): string => createHash("sha256").update(canonical(plan)).digest("hex");
