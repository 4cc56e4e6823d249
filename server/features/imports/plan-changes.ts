// What a line of an import does to one record: makes it, changes it, or refuses to. Each by the schema of the operation that will carry it out.
import type { z } from "zod";
import type { ImportLine, Permission } from "../../../protocol/index.ts";
import { type NamedOperation, operationNamed } from "../../core/own-calls.ts";
import { fieldsOf, type ImportedKind, schemaOf, takenBy } from "./kinds.ts";
import { madeBy } from "./references.ts";
import { type Data, isObject, type ReadDocument, type WantedLine } from "./wanted.ts";

export interface PlannedCall {
  readonly operation: NamedOperation;
  readonly input: Data;
}
export interface PlannedLine extends Omit<ImportLine, "status"> {
  readonly calls: readonly PlannedCall[];
}

/** How the records of a kind are listed and named; the sections of exports say so. */
export interface RecordKind {
  readonly kind: string;
  readonly id: string;
  readonly key: (record: Data) => unknown;
  readonly fields: readonly string[];
  readonly isHistory: boolean;
}

export interface ImportPlanDeps {
  readonly kindNamed: (kind: string) => RecordKind;
  /** All records of the kind that the caller sees. */
  readonly load: (kind: string) => Promise<readonly Data[]>;
  readonly may: (permission: Permission) => boolean;
}
export interface PlanOptions {
  readonly conflict: "fail" | "skip" | "overwrite";
  readonly sendInvites: boolean;
  readonly lenient: boolean;
}

export interface PlanContext {
  readonly deps: ImportPlanDeps;
  readonly options: PlanOptions;
  readonly format: ReadDocument["format"];
}

interface Found {
  readonly line: WantedLine;
  readonly how: ImportedKind;
  readonly fields: Data;
  readonly record: Data;
}

export class LineRefused {
  readonly code: string;
  readonly message: string;
  constructor(code: string, message: string) {
    this.code = code;
    this.message = message;
  }
}

/** Equal texts for equal values, in whatever order their fields stand; null is as good as nothing. */
export const canonical = (value: unknown): string =>
  JSON.stringify(value, (_name, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(
          Object.entries(inner)
            .filter(([, each]) => each !== null && each !== undefined)
            .sort(([a], [b]) => (a < b ? -1 : 1)),
        )
      : inner,
  ) ?? "null";
const isEqual = (a: unknown, b: unknown): boolean => canonical(a ?? null) === canonical(b ?? null);

const pick = (data: Data, names: Iterable<string>): Record<string, unknown> =>
  Object.fromEntries([...names].flatMap((name) => (data[name] === undefined ? [] : [[name, data[name]]])));

/** The field by which the path of the operation names its record. */
const idFieldOf = (change: NamedOperation): string => /\{(\w+)\}/.exec(operationNamed(change).rest[0] ?? "")?.[1] ?? "";

const issueText = ({ issues }: z.ZodError): string => {
  const [issue] = issues;
  return issue === undefined ? "is not valid" : `${issue.path.join(".")}: ${issue.message}`;
};

const requireMay = ({ deps }: PlanContext, change: NamedOperation): void => {
  const { permission } = operationNamed(change);
  if (!deps.may(permission as Permission)) throw new LineRefused("FORBIDDEN", `needs the permission ${permission}`); // as: a test says that each has one
};

/** The fields as the operations call them. */
export const fieldsIn = ({ options }: PlanContext, { data }: WantedLine, how: ImportedKind, named: RecordKind): Data => {
  const taken = takenBy(how);
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(data)) {
    const called = how.renamed?.[name] ?? name;
    if (name === named.id) continue;
    if (taken.has(called)) fields[called] = value;
    else if (!named.fields.includes(name) && !options.lenient) throw new LineRefused("UNKNOWN_FIELD", `there is no field ${name.slice(0, 100)}`);
  }
  return how.only === undefined ? fields : pick(fields, how.only);
};

const parse = (change: NamedOperation, input: Data): Data => {
  const parsed = operationNamed(change).input.safeParse(input);
  if (!parsed.success) throw new LineRefused("VALIDATION_FAILED", issueText(parsed.error));
  return parsed.data as Data; // as: each input is an object
};

export const planCreate = (
  context: PlanContext,
  line: WantedLine,
  how: ImportedKind,
  fields: Data,
): Pick<PlannedLine, "action" | "code" | "message" | "calls"> => {
  if (how.create === undefined) throw new LineRefused("RECORD_NOT_FOUND", "is not here, and an import makes none");
  if (line.kind === "member" && !context.options.sendInvites)
    return { action: "skip", code: "INVITES_OFF", message: "is no member here, and no invite is sent without `sendInvites`", calls: [] };
  requireMay(context, how.create);
  const wanted = pick(fields, fieldsOf(how.create));
  const isWhole = operationNamed(how.create).input.safeParse(wanted).success;
  const missing = isWhole ? undefined : how.hidden?.find((name) => fields[name] === undefined);
  if (missing !== undefined) throw new LineRefused("SECRET_REQUIRED", `needs ${missing}, which no export has`);
  // What an export says is nothing is left to the operation.
  const input = { ...how.always, ...Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== null)) };
  // Whether it is valid with the ids of records that are still to be made shows when they are.
  parse(how.create, input);
  const later = line.kind === "fleet" ? pick(fields, ["updatePolicyId"]) : {};
  const calls: PlannedCall[] = [{ operation: how.create, input }];
  if (how.update !== undefined && Object.values(later).some((value) => value !== null))
    calls.push({ operation: how.update, input: { [idFieldOf(how.update)]: madeBy(line.n), ...later } });
  return { action: "create", code: null, message: null, calls };
};

export interface Doomed {
  readonly n: number;
  readonly kind: string;
  readonly key: string;
  readonly remove: NamedOperation;
  readonly removeWith?: Data | undefined;
}
export const planDeletion = ({ deps }: PlanContext, { remove, removeWith, ...named }: Doomed, recordId: string): PlannedLine => {
  const base = { ...named, line: null, message: null, changes: [], recordId };
  const { permission } = operationNamed(remove);
  if (!deps.may(permission as Permission)) return { ...base, action: "refuse", code: "FORBIDDEN", message: `needs the permission ${permission}`, calls: [] }; // as: a test says that each has one
  return { ...base, action: "delete", code: null, calls: [{ operation: remove, input: { [idFieldOf(remove)]: recordId, ...removeWith } }] };
};

/** A value with the defaults that the operation would give its parts; as it is if the operation does not take it. */
const completed = ({ update, create }: ImportedKind, name: string, value: unknown): unknown => {
  const taker = update !== undefined && fieldsOf(update).has(name) ? update : create;
  return (taker === undefined ? undefined : schemaOf(taker, name)?.safeParse(value).data) ?? value;
};

/** What a value says of the parts that another one has. */
const sameParts = (value: unknown, wished: unknown): unknown => (isObject(value) && isObject(wished) ? pick(value, Object.keys(wished)) : value);

/** The fields in which a line and its record differ. */
const differencesOf = ({ format }: PlanContext, { how, fields }: Found, own: Data): readonly string[] =>
  Object.keys(fields).filter((name) => {
    // The state of an exported record is none that anybody wished for.
    if (name === "version" || how.hidden?.includes(name) === true || (name === "status" && format === "export")) return false;
    const present = how.completes?.includes(name) === true ? sameParts(own[name], fields[name]) : own[name];
    return !isEqual(completed(how, name, fields[name]), completed(how, name, present));
  });

export const planUpdate = (context: PlanContext, found: Found): Pick<PlannedLine, "action" | "code" | "message" | "changes" | "calls"> => {
  const { how, fields, record } = found;
  const unchanged = { action: "unchanged" as const, code: null, message: null, changes: [], calls: [] };
  if (how.update === undefined) return unchanged;
  const own: Data = Object.fromEntries(Object.entries(record).map(([name, value]) => [how.renamed?.[name] ?? name, value]));
  const changeable = fieldsOf(how.update);
  const differing = differencesOf(context, found, own);
  const fixed = differing.find((name) => !changeable.has(name) && own[name] !== undefined);
  if (fixed !== undefined) throw new LineRefused("IMMUTABLE_FIELD", `${fixed} cannot change; delete the record first, or name another`);
  const changed = differing.filter((name) => changeable.has(name));
  if (changed.length === 0) return unchanged;
  const changes = changed.map((field) => ({ field, from: own[field] ?? null, to: fields[field] ?? null }));
  const differs = { code: "CONFLICT", message: "is here already, and differs", changes, calls: [] };
  if (context.options.conflict === "fail") return { action: "refuse", ...differs };
  if (context.options.conflict === "skip") return { action: "skip", ...differs };
  requireMay(context, how.update);
  const version = changeable.has("version") && typeof record["version"] === "number" ? { version: record["version"] } : {};
  const input = { [idFieldOf(how.update)]: record[context.deps.kindNamed(found.line.kind).id], ...version, ...pick(fields, changed) };
  parse(how.update, input);
  return { action: "update", code: null, message: null, changes, calls: [{ operation: how.update, input }] };
};
