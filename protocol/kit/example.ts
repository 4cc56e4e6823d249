// An example of what a schema describes, made from its JSON Schema: from its own examples and constants where it has some.
import { z } from "zod";

interface Json {
  readonly [key: string]: unknown;
}

const FORMATS: ReadonlyMap<unknown, string> = new Map([
  ["date-time", "2026-11-20T10:00:00.000Z"],
  ["date", "2026-11-20"],
  ["email", "kim@example.com"],
  ["uri", "https://example.com/"],
  ["ipv4", "203.0.113.7"],
  ["uuid", "0192f3c4-7d1a-7c3e-9b1e-2f6d5a4b3c2d"],
]);

const textOf = (schema: Json, name: string): string => {
  const format = FORMATS.get(schema["format"]);
  if (format !== undefined) return format;
  return name.endsWith("Id") ? `${name.slice(0, 3)}_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R` : name === "" ? "text" : name;
};

const numberOf = (schema: Json): number => Math.max(Number(schema["minimum"] ?? 0), 1);

const objectOf = (schema: Json): Json => {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, Json>>;
  return Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, sampleOf(each, name)]));
};

const typed = (schema: Json, name: string): unknown => {
  switch (schema["type"]) {
    case "object":
      return objectOf(schema);
    case "array":
      return schema["items"] === undefined ? [] : [sampleOf(schema["items"] as Json, name)];
    case "integer":
    case "number":
      return numberOf(schema);
    case "boolean":
      return true;
    case "null":
      return null;
    case "string":
      return textOf(schema, name);
    default:
      return {};
  }
};

const sampleOf = (schema: Json, name: string): unknown => {
  const { examples, default: given, const: constant, enum: values, anyOf, oneOf } = schema as Record<string, readonly unknown[] | undefined>;
  const first = examples?.[0] ?? constant ?? given ?? values?.[0];
  if (first !== undefined) return first;
  const [choice] = anyOf ?? oneOf ?? [];
  return choice === undefined ? typed(schema, name) : sampleOf(choice as Json, name);
};

/** JSON Schema of a record as a client gets it. */
export const payloadSchemaOf = (schema: z.ZodType): Json => {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: "output", unrepresentable: "any" });
  return rest;
};

export const exampleOf = (schema: z.ZodType): Json => sampleOf(payloadSchemaOf(schema), "") as Json; // as: payloads of events are objects
