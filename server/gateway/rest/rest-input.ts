// Gathers an operation's input from the path, the query and the body. Query text becomes numbers and booleans where the schema wants them.
import { z } from "zod";
import type { Operation } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { HttpRequest } from "../http/http-message.ts";
import { contentOf, isProtobuf, OTLP_TYPES, readProtobuf } from "./otlp.ts";
import { invalid } from "./parse.ts";

type Json = Record<string, unknown>;
/** Stands for a part that the request does not have. */
export const NOTHING: Json = Object.freeze({});
interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
}

export type FieldTypes = ReadonlyMap<string, ReadonlySet<string>>;

/** Several parts of the gateway read the same schemas while it starts, and writing one takes a millisecond. */
const written = { input: new WeakMap<z.ZodType, Json>(), output: new WeakMap<z.ZodType, Json>() };

export const jsonSchemaOf = (schema: z.ZodType, io: "input" | "output"): Json => {
  const known = written[io].get(schema);
  if (known !== undefined) return known;
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;
  written[io].set(schema, rest);
  return rest;
};

const typesOf = (schema: JsonSchema): readonly string[] => [
  ...(typeof schema.type === "string" ? [schema.type] : (schema.type ?? [])),
  ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])].flatMap(typesOf),
];

/** The JSON types each field of an input may have, read off its schema once at start. */
export const fieldTypes = (op: Operation): FieldTypes => {
  const collect = (schema: JsonSchema): [string, ReadonlySet<string>][] => [
    ...Object.entries(schema.properties ?? {}).map(([name, field]): [string, ReadonlySet<string>] => [name, new Set(typesOf(field))]),
    ...[...(schema.allOf ?? []), ...(schema.anyOf ?? [])].flatMap(collect),
  ];
  return new Map(collect(jsonSchemaOf(op.input, "input") as JsonSchema));
};

const fromText = (text: string, types: ReadonlySet<string> | undefined): unknown => {
  if (types === undefined || types.has("string")) return text;
  if ((types.has("integer") || types.has("number")) && /^-?\d{1,15}(\.\d{1,15})?$/.test(text)) return Number(text);
  if (types.has("boolean") && (text === "true" || text === "false")) return text === "true";
  if (types.has("array")) return text === "" ? [] : text.split(",");
  if (types.has("null") && text === "null") return null;
  return text;
};

const decode = (text: string, path: string): string => {
  try {
    return decodeURIComponent(text.replaceAll("+", "%20"));
  } catch {
    throw invalid(path, "is not valid percent-encoding");
  }
};

export const readPath = (fields: readonly string[], values: readonly string[]): Json => {
  const input: Json = {};
  fields.forEach((field, index) => {
    try {
      input[field] = decodeURIComponent(values[index] ?? "");
    } catch {
      throw invalid(`path.${field}`, "is not valid percent-encoding");
    }
  });
  return input;
};

const MAX_PARAMETERS = 100;

export const readQuery = (query: string, types: FieldTypes): Json => {
  if (query === "") return NOTHING;
  const input: Json = {};
  const pairs = query.split("&").filter((pair) => pair !== "");
  if (pairs.length > MAX_PARAMETERS) throw invalid("query", `has more than ${MAX_PARAMETERS} parameters`);
  for (const pair of pairs) {
    const cut = pair.indexOf("=");
    const name = decode(cut < 0 ? pair : pair.slice(0, cut), "query");
    if (Object.hasOwn(input, name)) throw invalid(`query.${name}`, "is given twice");
    Object.defineProperty(input, name, {
      value: fromText(cut < 0 ? "" : decode(pair.slice(cut + 1), `query.${name}`), types.get(name)),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return input;
};

/** Reads fields that travel in headers; refuses them in the address. */
export const readHeaders = ({ headers: fields }: Operation, headers: Readonly<Record<string, string>>, query: Json): Json => {
  const found: Json = {};
  for (const [field, header] of Object.entries(fields)) {
    if (Object.hasOwn(query, field)) throw invalid(`query.${field}`, `belongs into the header ${header}`);
    const value = headers[header];
    if (value !== undefined) found[field] = value;
  }
  return found;
};

const utf8 = new TextDecoder("utf-8", { fatal: true });

const text = (body: Uint8Array): string => {
  try {
    return utf8.decode(body);
  } catch {
    throw invalid("body", "is not valid UTF-8");
  }
};

/** The body's fields, or the one field that takes the body as it came. */
export const readBodyInput = ({ rawBody, rawType, otlp, maxBodyBytes }: Operation, body: Uint8Array, request: Pick<HttpRequest, "headers">): Json => {
  if (rawBody !== undefined) return { [rawBody]: rawType === "application/gzip" ? Buffer.from(body).toString("base64") : text(body) };
  if (otlp !== true) return readBodyObject(body, request.headers["content-type"]);
  const content = contentOf(request, body, maxBodyBytes);
  return isProtobuf(request) ? readProtobuf(content) : readBodyObject(content, request.headers["content-type"], OTLP_TYPES);
};

const JSON_ONLY: readonly string[] = ["application/json"];

/** An object from JSON text; no body is an empty object. */
export const readBodyObject = (body: Uint8Array, contentType: string | undefined, accepted: readonly string[] = JSON_ONLY): Json => {
  if (body.byteLength === 0) return NOTHING;
  if (contentType?.split(";", 1)[0]?.trim().toLowerCase() !== "application/json") throw new AppError("UNSUPPORTED_MEDIA_TYPE", { details: { accepted } });
  const value = parseJson(body);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid("body", "must be a JSON object");
  return value as Json;
};

const parseJson = (body: Uint8Array): unknown => {
  try {
    return JSON.parse(utf8.decode(body)) as unknown;
  } catch (error) {
    const position = error instanceof SyntaxError ? /position (\d+)/.exec(error.message)?.[1] : undefined;
    throw new AppError("MALFORMED_JSON", { details: position === undefined ? {} : { position: Number(position) } });
  }
};

/** One object from all three; the path wins, and a body that says otherwise is refused. */
export const mergeInput = (path: Json, query: Json, body: Json): Json => {
  if (query === NOTHING && body === NOTHING) return path;
  const clash = Object.keys(path).find((name) => Object.hasOwn(body, name) && body[name] !== path[name]);
  if (clash !== undefined) throw invalid(`body.${clash}`, "differs from the path");
  const twice = Object.keys(query).find((name) => Object.hasOwn(path, name) || Object.hasOwn(body, name));
  if (twice !== undefined) throw invalid(`query.${twice}`, "is given twice");
  return { ...body, ...query, ...path };
};

const HAS_BODY: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);
export const takesBody = (method: string): boolean => HAS_BODY.has(method);

/** An operation with a body names its query fields; every other field belongs into the body and is refused in the address. */
export const checkQueryNames = (op: Operation, method: string, query: Json): void => {
  const stray = takesBody(method) ? Object.keys(query).find((name) => !op.query.includes(name)) : undefined;
  if (stray !== undefined) throw invalid(`query.${stray}`, "unknown query parameter");
};
