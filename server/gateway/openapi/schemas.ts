// JSON Schemas of the contract's types. Named records become components with references; all other schemas are inline.
import { z } from "zod";
import { metadata } from "../../../protocol/schemas.ts";

export type Json = Record<string, unknown>;
export type Io = "input" | "output";

/** For these formats the pattern adds nothing. */
const WITHOUT_PATTERN: ReadonlySet<unknown> = new Set(["date-time", "email", "uri"]);

/** Formats that only zod knows; their pattern is enough. */
const ZOD_ONLY: ReadonlySet<unknown> = new Set(["cidrv4", "cidrv6"]);

const tidy = (schema: Json, io: Io): void => {
  if (WITHOUT_PATTERN.has(schema["format"])) delete schema["pattern"];
  if (ZOD_ONLY.has(schema["format"])) delete schema["format"];
  // zod writes the limits of JavaScript's integers.
  if (schema["maximum"] === Number.MAX_SAFE_INTEGER) delete schema["maximum"];
  if (schema["minimum"] === Number.MIN_SAFE_INTEGER) delete schema["minimum"];
  if (JSON.stringify(schema["propertyNames"]) === '{"type":"string"}') delete schema["propertyNames"];
  // Answers may gain fields: a client that refuses unknown ones would break with the next release.
  if (io === "output" && schema["additionalProperties"] === false) delete schema["additionalProperties"];
};

const ref = (name: string): string => `#/components/schemas/${name}`;
const inComponents = (schema: unknown): Json =>
  JSON.parse(JSON.stringify(schema, (key, value: unknown) => (key === "$ref" && typeof value === "string" ? ref(value.replace("#/$defs/", "")) : value)));

export interface Schemas {
  /** The schema of a contract type; collects every named record in it. */
  of(schema: z.ZodType, io: Io): Json;
  /** Adds a named schema that the contract does not declare. */
  add(name: string, schema: Json): Json;
  /** Follows a reference that `of` or `add` returned; returns any other schema as it is. */
  resolve(schema: Json): Json;
  components(): Json;
}

export const createSchemas = (): Schemas => {
  const collected = new Map<string, Json>();
  // Operations share schemas, and aliases share operations.
  const cache: Readonly<Record<Io, Map<z.ZodType, Json>>> = { input: new Map(), output: new Map() };

  const add = (name: string, schema: Json): Json => {
    const known = collected.get(name);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema))
      throw new Error(`the schema ${name} has one form as input and another as output: give one of them a name of its own in protocol/schemas.ts`);
    collected.set(name, schema);
    return { $ref: ref(name) };
  };

  const make = (schema: z.ZodType, io: Io): Json => {
    const override = ({ jsonSchema }: { readonly jsonSchema: object }): void => tidy(jsonSchema as Json, io);
    const { $schema: _schema, $defs: defs = {}, ...rest } = z.toJSONSchema(schema, { io, metadata, unrepresentable: "any", override }) as Json;
    for (const [name, each] of Object.entries(defs as Record<string, Json>)) {
      const { id: _id, ...plain } = each;
      add(name, inComponents(plain));
    }
    return inComponents(rest);
  };

  return {
    add,
    of: (schema, io) => {
      const done = cache[io].get(schema) ?? make(schema, io);
      cache[io].set(schema, done);
      return done;
    },
    resolve: (schema) => {
      const to = schema["$ref"];
      return (typeof to === "string" ? collected.get(to.slice(ref("").length)) : undefined) ?? schema;
    },
    components: () => Object.fromEntries([...collected].sort(([a], [b]) => a.localeCompare(b))),
  };
};
