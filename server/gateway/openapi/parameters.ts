// Places each field of an operation's input in path, query, header or body, and describes it there.
import type { OperationGuide } from "../../../protocol/guide/index.ts";
import type { Operation } from "../../../protocol/index.ts";
import { PROTOBUF } from "../rest/otlp.ts";
import { takesBody } from "../rest/rest-input.ts";
import type { Versions } from "../rest/versions.ts";
import { isKeyed } from "./headers.ts";
import type { Json, Schemas } from "./schemas.ts";

/** Method and path of a route such as `POST /devices/{deviceId}/commands`. */
export interface Place {
  readonly method: string;
  readonly path: string;
}

interface ObjectSchema extends Json {
  readonly properties?: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
}

export interface Parameter extends Json {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly schema: Json;
}

/** Swagger UI shows the description and the example of the parameter, not those of its schema. */
const parameter = (name: string, at: Parameter["in"], given: { readonly schema: Json; readonly required: boolean; readonly example: unknown }): Parameter => {
  const { description, ...schema } = given.schema;
  return {
    name,
    in: at,
    required: given.required,
    ...(description === undefined ? {} : { description }),
    schema,
    ...(given.example === undefined ? {} : { example: given.example }),
  };
};

const header = (name: string, description: string, schema: Json): Parameter => ({ name, in: "header", required: false, description, schema });

const headersOf = (op: Operation, fields: readonly string[], versions: Versions): readonly Parameter[] => [
  ...(isKeyed(op)
    ? [
        header(
          "Idempotency-Key",
          "Identifies this request. A retry with the same key and body gets the first answer again; the same key with another body gets 422.",
          {
            type: "string",
            minLength: 1,
            maxLength: 255,
          },
        ),
      ]
    : []),
  ...(fields.includes("version") || versions.changedBy(op) !== null
    ? [header("If-Match", "The version that you read, in quotes, or the ETag of that answer. Another version gets 409.", { type: "string" })]
    : []),
  ...(op.kind === "query" && versions.isVersioned(op)
    ? [header("If-None-Match", "The ETag of the answer that you have: 304 while it is still the same.", { type: "string" })]
    : []),
];

export interface Asked {
  readonly parameters: readonly Parameter[];
  readonly requestBody: Json | null;
}

/** OpenTelemetry publishes the message. */
const BINARY: Json = { type: "string", format: "binary" };

/** The gateway reads the text itself, because its signature covers every byte. */
const rawRequestBody = (field: Json = {}, example: unknown = "{}", type?: Operation["rawType"]): Json => ({
  required: true,
  ...(field["description"] === undefined ? {} : { description: field["description"] }),
  content:
    type === undefined
      ? { "application/json": { schema: { type: "object", additionalProperties: true }, examples: { request: { value: JSON.parse(String(example)) } } } }
      : { [type]: { schema: type === "application/gzip" ? BINARY : { type: "string" }, examples: { request: { value: example } } } },
});

export interface AskedParts {
  readonly schemas: Schemas;
  readonly versions: Versions;
}

export const askedOf = ({ schemas, versions }: AskedParts, op: Operation, { method, path }: Place, { input: example = {} }: OperationGuide): Asked => {
  const input = schemas.of(op.input, "input") as ObjectSchema;
  const { properties = {} } = input;
  const required = new Set(input.required);
  const names = Object.keys(properties);
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const withBody = takesBody(method);
  const elsewhere = names.filter((name) => !inPath.includes(name) && !(name in op.headers));
  const inQuery = elsewhere.filter((name) => !withBody || op.query.includes(name));
  const inBody = elsewhere.filter((name) => !inQuery.includes(name));
  const of = (field: string, at: Parameter["in"], name = field): Parameter =>
    parameter(name, at, { schema: properties[field] ?? { type: "string" }, required: at === "path" || required.has(field), example: example[field] });
  const parameters = [
    ...inPath.map((name) => of(name, "path")),
    ...inQuery.map((name) => of(name, "query")),
    ...Object.entries(op.headers).map(([field, name]) => of(field, "header", name)),
    ...headersOf(op, names, versions),
  ];
  if (!withBody || inBody.length === 0) return { parameters, requestBody: null };
  if (op.rawBody !== undefined) return { parameters, requestBody: rawRequestBody(properties[op.rawBody], example[op.rawBody], op.rawType) };
  const needed = inBody.filter((name) => required.has(name));
  const schema = {
    type: "object",
    properties: Object.fromEntries(inBody.map((name) => [name, properties[name]])),
    ...(needed.length === 0 ? {} : { required: needed }),
    ...(input.additionalProperties === undefined ? {} : { additionalProperties: input.additionalProperties }),
  };
  const value = Object.fromEntries(inBody.filter((name) => name in example).map((name) => [name, example[name]]));
  const content = {
    "application/json": { schema, examples: { request: { value } } },
    ...(op.otlp === true ? { [PROTOBUF]: { schema: BINARY, examples: { protobuf: { value: "The encoded ExportTraceServiceRequest." } } } } : {}),
  };
  return { parameters, requestBody: { required: needed.length > 0, content } };
};
