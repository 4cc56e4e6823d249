// JSON Schema of the contract's types. Named records become components, referred to by name; the rest is written out where it is used.
import { z } from "zod";
import { metadata } from "../../../protocol/schemas.ts";

export type Json = Record<string, unknown>;
export type Io = "input" | "output";

/** Formats that say what their pattern says, in fewer words. */
const SELF_EXPLAINING: ReadonlySet<unknown> = new Set(["date-time", "email", "uri"]);

/** zod's own, which no other tool knows; their pattern says it all. */
const HOME_MADE: ReadonlySet<unknown> = new Set(["cidrv4", "cidrv6"]);

const tidy = (schema: Json, io: Io): void => {
  if (SELF_EXPLAINING.has(schema["format"])) delete schema["pattern"];
  if (HOME_MADE.has(schema["format"])) delete schema["format"];
  // zod's bounds of an integer are those of the language.
  if (schema["maximum"] === Number.MAX_SAFE_INTEGER) delete schema["maximum"];
  if (schema["minimum"] === Number.MIN_SAFE_INTEGER) delete schema["minimum"];
  if (JSON.stringify(schema["propertyNames"]) === '{"type":"string"}') delete schema["propertyNames"];
  // Answers may gain fields; a client that refuses unknown ones breaks with the next release.
  if (io === "output" && schema["additionalProperties"] === false) delete schema["additionalProperties"];
};

const ref = (name: string): string => `#/components/schemas/${name}`;
const inComponents = (schema: unknown): Json =>
  JSON.parse(JSON.stringify(schema, (key, value: unknown) => (key === "$ref" && typeof value === "string" ? ref(value.replace("#/$defs/", "")) : value)));

export interface Schemas {
  /** A type of the contract; every named record in it is collected. */
  of(schema: z.ZodType, io: Io): Json;
  /** A schema that is not of the contract, under a name of its own. */
  add(name: string, schema: Json): Json;
  /** What a reference of `of` or `add` leads to; anything else is given back. */
  resolve(schema: Json): Json;
  components(): Json;
}

export const createSchemas = (): Schemas => {
  const collected = new Map<string, Json>();
  // Operations share schemas, and aliases share operations.
  const made: Readonly<Record<Io, Map<z.ZodType, Json>>> = { input: new Map(), output: new Map() };

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
      const done = made[io].get(schema) ?? make(schema, io);
      made[io].set(schema, done);
      return done;
    },
    resolve: (schema) => {
      const to = schema["$ref"];
      return (typeof to === "string" ? collected.get(to.slice(ref("").length)) : undefined) ?? schema;
    },
    components: () => Object.fromEntries([...collected].sort(([a], [b]) => a.localeCompare(b))),
  };
};
