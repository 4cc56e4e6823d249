// The responses of an operation: its record in the envelope, and every error that it may return.
import { AT, guideOf, IDS } from "../../../protocol/guide/index.ts";
import { type ErrorCode, type Operation, Pagination, type Plain } from "../../../protocol/index.ts";
import type { Entry } from "../call/operation-table.ts";
import { EVENT_STREAM } from "../http/event-stream.ts";
import { successText } from "../rest/envelope.ts";
import { PROTOBUF } from "../rest/otlp.ts";
import type { Versions } from "../rest/versions.ts";
import { codesOf } from "./errors.ts";
import { errorHeaders, successHeaders } from "./headers.ts";
import type { Json, Schemas } from "./schemas.ts";

interface ObjectSchema extends Json {
  readonly properties?: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
}

interface Content {
  readonly "application/json": { readonly schema: Json; readonly examples?: Json };
}

const META = {
  type: "object",
  required: ["timestamp", "requestId"],
  properties: { timestamp: { type: "string", format: "date-time" }, requestId: { type: "string" } },
};
const meta = (schemas: Schemas): Json => schemas.add("Meta", META);
const listMeta = (schemas: Schemas): Json =>
  schemas.add("ListMeta", {
    ...META,
    required: [...META.required, "pagination"],
    properties: { ...META.properties, pagination: schemas.of(Pagination, "output") },
  });

const envelope = (data: Json, about: Json, beside: { readonly properties?: Json; readonly required?: readonly string[] } = {}): Json => ({
  type: "object",
  required: ["success", "data", "meta", ...(beside.required ?? []).filter((name) => name !== "success")],
  properties: { ...beside.properties, success: { type: "boolean", const: true }, data, meta: about },
});

/** Fields of a created record that envelope.ts repeats beside `data`, where quick-starts read them. */
const HOISTED = ["status", "url"];

interface Parts {
  readonly schemas: Schemas;
  readonly versions: Versions;
}

const successSchema = (schemas: Schemas, op: Operation): Json => {
  const output = schemas.of(op.output, "output");
  const record: ObjectSchema = schemas.resolve(output);
  if (op.list !== undefined) {
    const { items = {}, total: _, nextCursor: __, ...beside } = record.properties ?? {};
    return envelope(items as Json, op.list === "plain" ? meta(schemas) : listMeta(schemas), { properties: beside, required: Object.keys(beside) });
  }
  if (op.flat) return envelope(output, meta(schemas), record);
  if (op.status !== 201) return envelope(output, meta(schemas));
  const hoisted = Object.entries(record.properties ?? {}).filter(([name]) => HOISTED.includes(name));
  const id = op.location === undefined ? {} : { id: { type: "string", description: "The id of the created record; every creation has this field." } };
  // A record that has the field by itself needs no second one.
  const data =
    op.location === undefined || record.properties?.["id"] !== undefined ? output : { allOf: [output, { type: "object", required: ["id"], properties: id }] };
  return envelope(data, meta(schemas), { properties: { ...Object.fromEntries(hoisted), ...id }, required: Object.keys(id) });
};

/** OpenAPI names media types without their parameters. */
const bareType = ({ type }: Plain): string => type.split(";", 1)[0] ?? type;

const success = ({ schemas, versions }: Parts, { id, op }: Pick<Entry, "id" | "op">): Json => {
  const { input, output } = guideOf(id);
  const headers = successHeaders(op, versions.isVersioned(op));
  if (op.status === 204) return { description: "Done. The answer has no body.", headers };
  if (op.status === 303) return { description: "The browser goes on to `Location`. The answer has no body.", headers };
  const parsed = op.input.safeParse(input ?? {});
  if (op.otlp === true) {
    const json = { schema: schemas.of(op.output, "output"), examples: { [id]: { value: output } } };
    const protobuf = { schema: { type: "string", format: "binary" }, examples: { protobuf: { value: "The encoded ExportTraceServiceResponse." } } };
    return { description: "Success.", headers, content: { "application/json": json, [PROTOBUF]: protobuf } };
  }
  if (op.kind === "subscription") {
    const item = schemas.of(op.output, "output");
    const events = output === undefined ? "" : `data: ${JSON.stringify(output)}\n\n`;
    return {
      description: "Server-sent events until the caller leaves.",
      headers,
      content: {
        [EVENT_STREAM]: { schema: { type: "string", contentMediaType: "application/json", contentSchema: item }, examples: { [id]: { value: events } } },
      },
    };
  }
  if (op.plain !== undefined)
    return { description: "Success.", headers, content: { [bareType(op.plain)]: { schema: { type: "string" }, examples: { [id]: { value: output } } } } };
  const text = output === undefined ? null : successText(op, parsed.data, output, { requestId: IDS.requestId, timestamp: AT });
  const examples = text === null ? {} : { examples: { [id]: { value: JSON.parse(text) as unknown } } };
  const description = op.status === 201 ? "Created." : "Success.";
  return { description, headers, content: { "application/json": { schema: successSchema(schemas, op), ...examples } } };
};

const UNCHANGED = "The answer that `If-None-Match` names is still the same.";

const failure = (status: number, codes: readonly string[]): Json => ({
  description: codes.map((code) => `\`${code}\``).join(", "),
  headers: errorHeaders(status),
  content: {
    "application/json": {
      schema: { $ref: "#/components/schemas/Error" },
      examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
    },
  },
});

/** A failed health check answers with its record, or with an error. */
const unwell = (answer: Json, error: Json): Json => {
  const [record, refusal] = [answer, error].map((each) => (each["content"] as Content)["application/json"]);
  return {
    ...error,
    description: `The record of the failed check; or ${String(error["description"])}`,
    content: { "application/json": { schema: { anyOf: [record?.schema, refusal?.schema] }, examples: refusal?.examples } },
  };
};

/** Merges the answers of two operations with the same method and path. */
const joined = (first: Json, second: Json): Json => {
  const [a, b] = [first, second].map((each) => (each["content"] as Content)["application/json"]);
  return {
    ...first,
    headers: { ...(first["headers"] as Json), ...(second["headers"] as Json) },
    content: { "application/json": { schema: { anyOf: [a?.schema, b?.schema] }, examples: { ...a?.examples, ...b?.examples } } },
  };
};

export interface Responses {
  /** The responses of the operations with one method and path. */
  of(entries: readonly Pick<Entry, "id" | "op">[]): Json;
  /** Error responses, shared between operations and named after their codes. */
  components(): Json;
}

export const createResponses = (schemas: Schemas, versions: Versions): Responses => {
  const shared = new Map<string, Json>();
  const refuse = (status: number, codes: readonly ErrorCode[]): Json => {
    const name = codes.toSorted().join("-");
    shared.set(name, shared.get(name) ?? failure(status, codes));
    return { $ref: `#/components/responses/${name}` };
  };
  const errorsOf = (ops: readonly Operation[], answer: Json): readonly (readonly [string, Json])[] => {
    const codes = new Map<number, readonly ErrorCode[]>();
    for (const op of ops)
      for (const [status, each] of codesOf(op, versions.changedBy(op) !== null)) codes.set(status, [...new Set([...(codes.get(status) ?? []), ...each])]);
    return [...codes].map(([status, each]) => [
      String(status),
      ops.some(({ unwellStatus }) => unwellStatus === status) ? unwell(answer, failure(status, each)) : refuse(status, each),
    ]);
  };
  return {
    components: () => Object.fromEntries([...shared].sort(([a], [b]) => a.localeCompare(b))),
    of: (entries) => {
      const answer = entries.map((entry) => success({ schemas, versions }, entry)).reduce(joined);
      const [status = 200] = entries.map(({ op }) => op.status);
      return {
        [String(status)]: answer,
        ...(entries.some(({ op }) => op.kind === "query" && versions.isVersioned(op)) ? { 304: { description: UNCHANGED, headers: answer["headers"] } } : {}),
        ...Object.fromEntries(
          errorsOf(
            entries.map(({ op }) => op),
            answer,
          ),
        ),
      };
    },
  };
};
