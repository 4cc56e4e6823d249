// The catalogue joins the contract with its handlers; every transport loops over it. The node refuses to start if the two do not fit.
import { type Auth, type Deprecated, ERRORS, type Group, LIMITS, type LimitClass, type Operation, PERMISSIONS, type Rest } from "../../../protocol/index.ts";
import type { KeyedCall } from "../../core/feature.ts";

/** A handler without its types: the pipeline parses the input by the operation's schema before it calls the handler. */
export type AnyHandler = (call: KeyedCall, input: unknown) => Promise<unknown> | AsyncIterable<unknown>;

export interface Entry {
  /** `group.operation`, the name on the tRPC side. */
  readonly id: string;
  readonly group: string;
  readonly name: string;
  readonly tag: string;
  readonly op: Operation;
  readonly handler: AnyHandler;
  /** The read of the record that the operation is about: of `/apps/{appId}/logs/stream` it is `GET /apps/{appId}`. */
  readonly record?: Entry | undefined;
}

type AnyContract = Readonly<Record<string, Group>>;
/** The features by the names of their groups. */
export type Implementations<C extends AnyContract> = { readonly [G in keyof C]: { readonly handlers: { readonly [N in keyof C[G]["operations"]]: unknown } } };

const MONTHS_OF_NOTICE = 6;

/** Counts calendar months. False for an invalid date. */
const givesNotice = ({ since, sunset }: Deprecated): boolean => {
  const earliest = new Date(since);
  earliest.setUTCMonth(earliest.getUTCMonth() + MONTHS_OF_NOTICE);
  return Date.parse(sunset) >= earliest.getTime();
};

/** The path without the names of its fields, because paths that differ only in them match the same requests. */
const place = (rest: Rest): string => rest.replace(/\{\w+\}/g, "{}");

const fieldsOf = (rest: Rest): readonly string[] => [...rest.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "");

/** Permissions that do not depend on a role. */
const OTHER_NEEDS: ReadonlySet<string> = new Set(["self", "public", "platform"]);

const problemsOf = ({ id, op }: Omit<Entry, "handler">): readonly string[] => [
  ...op.errors.filter((code) => !(code in ERRORS)).map((code) => `${id}: unknown error code ${code}`),
  ...(!OTHER_NEEDS.has(op.permission) && !(PERMISSIONS as readonly string[]).includes(op.permission)
    ? [`${id}: unknown permission ${String(op.permission)}`]
    : []),
  ...(op.limit in LIMITS ? [] : [`${id}: unknown limit class ${op.limit satisfies LimitClass}`]),
  ...(op.auth.length === 0 ? [`${id}: names no credential`] : []),
  ...(op.auth.includes("public") && op.auth.length > 1 ? [`${id}: is public and asks for a credential`] : []),
  ...op.rest.filter((rest) => new Set(fieldsOf(rest)).size !== fieldsOf(rest).length).map((rest) => `${id}: ${rest} names a field twice`),
  ...(op.deprecated !== undefined && !givesNotice(op.deprecated) ? [`${id}: Sunset must be at least six months after Deprecation`] : []),
];

const EVERY_AUTH: readonly Auth[] = ["public", "user", "apiKey", "agent"];

/** One path may serve several operations only if their credentials differ (an agent polls where a portal lists). */
const clashesOf = (entries: readonly Omit<Entry, "handler">[]): readonly string[] => {
  const taken = new Map<string, string>();
  const problems: string[] = [];
  for (const { id, op } of entries)
    for (const rest of op.rest)
      for (const auth of op.auth) {
        const at = place(rest);
        const key = `${at} as ${auth}`;
        // A public operation takes every call of its path, whichever of the two comes first in the contract.
        const holder =
          taken.get(key) ??
          taken.get(`${at} as public`) ??
          (auth === "public" ? EVERY_AUTH.map((other) => taken.get(`${at} as ${other}`)).find(Boolean) : undefined);
        if (holder !== undefined) problems.push(`${id}: ${key} is already taken by ${holder}`);
        taken.set(key, id);
      }
  return problems;
};

/** The paths above this one that end in a field, the nearest first. */
const above = (rest: Rest): readonly string[] => {
  const parts = (rest.split(" ")[1] ?? "").split("/");
  return parts
    .flatMap((_, at) => (at > 0 && parts[at]?.endsWith("}") === true ? [parts.slice(0, at + 1).join("/")] : []))
    .slice(0, parts.at(-1)?.endsWith("}") === true ? -1 : undefined)
    .reverse();
};

const findRecord = (entries: readonly Entry[], { op }: Entry): Entry | undefined => {
  const isRead = (path: string, each: Entry): boolean =>
    each.op.kind === "query" && each.op.rest.some((rest) => rest === `GET ${path}`) && each.op.auth.some((auth) => op.auth.includes(auth));
  for (const path of op.rest.slice(0, 1).flatMap(above)) {
    const found = entries.find((each) => isRead(path, each));
    if (found !== undefined) return found;
  }
  return undefined;
};

/** Throws with every problem listed at once. */
export const createOperationTable = <C extends AnyContract>(contract: C, features: Implementations<C>): readonly Entry[] => {
  const entries = Object.entries(contract).flatMap(([group, { tag, operations }]) =>
    Object.entries(operations).map(([name, op]) => ({
      id: `${group}.${name}`,
      group,
      name,
      tag,
      op,
      handler: (features[group]?.handlers as Readonly<Record<string, unknown>> | undefined)?.[name],
    })),
  );
  const problems = [
    ...entries.filter(({ handler }) => typeof handler !== "function").map(({ id }) => `${id}: has no handler`),
    ...entries.flatMap(problemsOf),
    ...clashesOf(entries),
  ];
  if (problems.length > 0) throw new Error(`the contract is invalid:\n${problems.map((line) => `  ${line}`).join("\n")}`);
  const whole = entries as readonly Entry[];
  return whole.map((entry) => ({ ...entry, record: findRecord(whole, entry) }));
};
