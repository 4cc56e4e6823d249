// Prints the contract as plain TypeScript declarations for the package @mooring/client, which depends on neither zod nor type inference.
import { z } from "zod";
import { contract } from "../index.ts";
import { ERROR_CODES } from "../kit/errors.ts";
import { ID_NAMES } from "../kit/ids.ts";
import type { Group, Operation } from "../kit/operation.ts";
import { capitalized, PLAN_RESOURCES } from "../kit/words.ts";
import { metadata, SCHEMAS } from "../schemas.ts";

type Json = Readonly<Record<string, unknown>>;
type Io = "input" | "output";
/** The keywords that decide about a type. */
interface Shape {
  readonly $ref: string;
  readonly anyOf: readonly Json[];
  readonly oneOf: readonly Json[];
  readonly enum: readonly unknown[];
  readonly type: string | readonly string[];
  readonly items: Json;
}

/** `enrollment token` becomes `EnrollmentTokenId`. */
const idType = (name: string): string => `${name.toLowerCase().split(" ").map(capitalized).join("")}Id`;
const ID_TYPES: ReadonlyMap<string, string> = new Map([...ID_NAMES].map(([prefix, name]) => [prefix, idType(name)]));

const literal = (value: unknown): string => JSON.stringify(value);
const union = (types: readonly string[]): string => [...new Set(types)].join(" | ");
const arrayOf = (type: string): string => (type.includes("|") ? `(${type})[]` : `${type}[]`);
const property = (name: string): string => (/^[A-Za-z_]\w*$/.test(name) ? name : literal(name));
const comment = (text: unknown): string => (typeof text === "string" ? `/** ${text.replaceAll("*/", "*\\/")} */\n` : "");

const objectType = (schema: Json): string => {
  const {
    properties = {},
    required = [],
    additionalProperties: rest,
  } = schema as { properties?: Record<string, Json>; required?: string[]; additionalProperties?: Json };
  const fields = Object.entries(properties).map(([name, field]) => {
    const [mark, type] = required.includes(name) ? ["", typeOf(field)] : ["?", `${typeOf(field)} | undefined`];
    return `${comment(field["description"])}${property(name)}${mark}: ${type};`;
  });
  if (typeof rest === "object") fields.push(`[key: string]: ${fields.length === 0 ? typeOf(rest) : "unknown"};`);
  if (fields.length === 0) return "Record<string, never>";
  return `{\n${fields.join("\n")}\n}`;
};

const stringType = ({ examples }: Json): string => {
  const [, prefix = ""] = /^([a-z]{3})_[0-9A-Z]{26}$/.exec(String((examples as unknown[] | undefined)?.[0])) ?? [];
  return ID_TYPES.get(prefix) ?? "string";
};

/** Throws on a schema that it does not know, so that no type is lost silently. */
const typeOf = (schema: Json): string => {
  const { $ref, anyOf, oneOf = anyOf, enum: values, type, items } = schema as Partial<Shape>;
  if ($ref !== undefined) return $ref.replace("#/$defs/", "");
  if (oneOf !== undefined) return union(oneOf.map(typeOf));
  if (values !== undefined) return union(values.map(literal));
  if ("const" in schema) return literal(schema["const"]);
  if (Array.isArray(type)) return union(type.map((each) => typeOf({ ...schema, type: each })));
  if (type === "object") return objectType(schema);
  if (type === "array" && items !== undefined) return arrayOf(typeOf(items));
  if (type === "string") return stringType(schema);
  if (type === "integer" || type === "number") return "number";
  if (type === "boolean" || type === "null") return type;
  if (Object.keys(schema).every((key) => ["description", "examples", "default"].includes(key))) return "unknown";
  throw new Error(`cannot print the schema as TypeScript: ${JSON.stringify(schema)}`);
};

/** Collects the named schemas that others refer to. */
const createTypes = () => {
  const named = new Map<string, string>();
  const of = (schema: z.ZodType, io: Io): string => {
    const { $schema: _, $defs = {}, ...root } = z.toJSONSchema(schema, { io, metadata, unrepresentable: "any" }) as Json & { $defs?: Record<string, Json> };
    for (const [name, each] of Object.entries($defs)) {
      const text = typeOf(each);
      if ((named.get(name) ?? text) !== text) throw new Error(`${name} has different types as input and as output`);
      named.set(name, text);
    }
    return typeOf(root);
  };
  return { named, of };
};

const PROCEDURE = { query: "TRPCQueryProcedure", mutation: "TRPCMutationProcedure", subscription: "TRPCSubscriptionProcedure" } as const;

export const declareContract = (): string => {
  const { named, of } = createTypes();
  const procedure = ([name, op]: readonly [string, Operation]): string => {
    const output = op.kind === "subscription" ? `Stream<${of(op.output, "output")}>` : of(op.output, "output");
    return `${comment(op.summary)}${name}: ${PROCEDURE[op.kind]}<{ input: ${of(op.input, "input")}; output: ${output}; meta: unknown }>;`;
  };
  const group = ([name, { operations }]: readonly [string, Group]): string =>
    `${name}: {\n${Object.entries(operations)
      .filter(([, { plain }]) => plain?.pieces !== true)
      .map(procedure)
      .join("\n")}\n};`;
  const router = Object.entries<Group>(contract).map(group).join("\n");
  // Some named records are only part of others.
  for (const schema of Object.values(SCHEMAS)) of(schema, "output");
  return [
    'import type { TRPCMutationProcedure, TRPCQueryProcedure, TRPCSubscriptionProcedure } from "@trpc/server";',
    'import type { ErrorFacts, RouterOf, Stream } from "./router.js";',
    "",
    "// Ids are opaque strings. The type names only say what they identify.",
    ...[...ID_TYPES.values()].map((name) => `export type ${name} = string;`),
    "",
    ...[...named].sort(([a], [b]) => a.localeCompare(b)).map(([name, text]) => `export type ${name} = ${text};`),
    "",
    `export type PlanResource = ${Object.keys(PLAN_RESOURCES).map(literal).join(" | ")};`,
    `export type ErrorCode = ${ERROR_CODES.map(literal).join(" | ")};`,
    "export type AppErrorData = ErrorFacts<ErrorCode>;",
    `export type AppRouter = RouterOf<{\n${router}\n}, ErrorCode>;`,
    "",
  ].join("\n");
};
