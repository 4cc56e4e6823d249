// The OpenAPI 3.1 document of one prefix, read off the contract: the same table that the doors serve.
import { ERRORS, type ErrorCode, type EventType, isRetryable, LIMITS, type Operation, type Rest } from "../../protocol/index.ts";
import type { Entry } from "./catalogue.ts";
import type { Prefix } from "./facts.ts";
import { jsonSchemaOf, takesBody } from "./rest-input.ts";

type Json = Record<string, unknown>;
interface ObjectSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
  readonly allOf?: readonly ObjectSchema[];
  readonly additionalProperties?: unknown;
}

const timestamp = { type: "string", format: "date-time" };
const meta = { type: "object", properties: { timestamp, requestId: { type: "string" } }, required: ["timestamp", "requestId"] };

const errorSchema = (prefix: Prefix): Json => ({
  type: "object",
  required: ["success", "error", "code", "message", "retryable", "timestamp", "requestId", "meta"],
  properties: {
    success: { const: false },
    code: { type: "string", enum: Object.keys(ERRORS) },
    message: { type: "string" },
    retryable: { type: "boolean" },
    timestamp,
    requestId: { type: "string" },
    retryAfter: { type: "number", description: "seconds" },
    details: { type: "object" },
    meta,
    error:
      prefix === "/v1"
        ? {
            type: "object",
            required: ["code", "message", "details"],
            properties: { code: { type: "string" }, message: { type: "string" }, details: { type: "object" } },
          }
        : { type: "string" },
  },
});

/** The codes any call of this operation may end with, by HTTP status. */
export const codesOf = (op: Operation): ReadonlyMap<number, readonly ErrorCode[]> => {
  const open = op.auth.includes("public");
  const codes: ErrorCode[] = [
    "VALIDATION_FAILED",
    "INTERNAL_ERROR",
    "SERVICE_UNAVAILABLE",
    "DATABASE_UNAVAILABLE",
    ...op.errors,
    ...(open ? [] : (["UNAUTHORIZED", "FORBIDDEN"] as const)),
    ...(op.auth.includes("agent") ? (["INVALID_SIGNATURE"] as const) : []),
    ...(LIMITS[op.limit].length > 0 || op.tenancy === "tenant" ? (["RATE_LIMIT_EXCEEDED"] as const) : []),
    ...(op.rest.some((rest) => takesBody(rest.split(" ")[0] ?? "")) ? (["MALFORMED_JSON", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"] as const) : []),
    ...(op.kind === "mutation" && op.tenancy === "tenant" && !open ? (["TENANT_SUSPENDED"] as const) : []),
    ...(op.idempotency !== "none" && !open ? (["IDEMPOTENCY_KEY_INVALID", "IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_IN_PROGRESS"] as const) : []),
  ];
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set(codes)) byStatus.set(ERRORS[code].status, [...(byStatus.get(ERRORS[code].status) ?? []), code]);
  return byStatus;
};

const fieldsOf = (schema: ObjectSchema): { properties: Record<string, Json>; required: ReadonlySet<string> } => {
  const parts = [schema, ...(schema.allOf ?? [])];
  return {
    properties: Object.assign({}, ...parts.map((part) => part.properties ?? {})) as Record<string, Json>,
    required: new Set(parts.flatMap((part) => part.required ?? [])),
  };
};

const successSchema = (op: Operation): Json => {
  const output = jsonSchemaOf(op.output, "output");
  if (op.list !== undefined) {
    const { items = {}, total: _, ...beside } = fieldsOf(output as ObjectSchema).properties;
    const pagination = {
      type: "object",
      properties: Object.fromEntries(
        ["page", "pageSize", "total", "totalPages", "limit", "offset"]
          .map((name) => [name, { type: "integer" }])
          .concat(["hasMore", "hasNext", "hasPrev"].map((name) => [name, { type: "boolean" }])),
      ),
    };
    return {
      type: "object",
      required: ["success", "data", ...Object.keys(beside), "meta"],
      properties: {
        success: { const: true },
        data: items,
        ...beside,
        meta: op.list === "plain" ? meta : { ...meta, properties: { ...meta.properties, pagination } },
      },
    };
  }
  const { properties, required } = fieldsOf(output as ObjectSchema);
  // What was created shows its id under that plain name too, within and beside `data`.
  const id = op.location === undefined ? {} : { id: { type: "string" } };
  const data = op.location === undefined ? output : { ...output, properties: { ...properties, ...id } };
  return {
    type: "object",
    required: ["success", "data", "meta", ...(op.flat ? required : [])],
    properties: { ...(op.flat ? properties : {}), success: { const: true }, data, meta, ...id },
  };
};

const SECURITY = { user: "bearerAuth", apiKey: "apiKey", agent: "agentHmac" } as const;
const securityOf = (op: Operation): readonly Json[] =>
  op.auth.flatMap((auth) => {
    if (auth === "public") return [];
    const extra = auth === "apiKey" ? { tenantId: [] } : auth === "agent" ? { tenantId: [], agentId: [], agentTimestamp: [] } : {};
    return [{ [SECURITY[auth]]: [], ...extra }];
  });

const parametersOf = (entry: Entry, method: string, path: string): { parameters: readonly Json[]; body: Json | null } => {
  const input = jsonSchemaOf(entry.op.input, "input") as ObjectSchema;
  const { properties, required } = fieldsOf(input);
  const inPath = new Set([...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? ""));
  const withBody = takesBody(method);
  const { headers } = entry.op;
  const elsewhere = Object.keys(properties).filter((name) => !inPath.has(name) && !(name in headers));
  const inQuery = elsewhere.filter((name) => !withBody || entry.op.query.includes(name));
  const inBody = elsewhere.filter((name) => !inQuery.includes(name));
  const parameters = [
    ...[...inPath].map((name) => ({ name, in: "path", required: true, schema: properties[name] ?? { type: "string" } })),
    ...inQuery.map((name) => ({ name, in: "query", required: required.has(name), schema: properties[name] })),
    ...Object.entries(headers).map(([field, name]) => ({ name, in: "header", required: required.has(field), schema: properties[field] })),
    ...(entry.op.idempotency === "none" || entry.op.auth.includes("public")
      ? []
      : [{ name: "Idempotency-Key", in: "header", required: false, schema: { type: "string", maxLength: 255 } }]),
  ];
  const body =
    withBody && inBody.length > 0
      ? {
          type: "object",
          properties: Object.fromEntries(inBody.map((name) => [name, properties[name]])),
          required: inBody.filter((name) => required.has(name)),
          additionalProperties: input.additionalProperties ?? true,
        }
      : null;
  return { parameters, body };
};

const operationOf = (entry: Entry, rest: Rest, canonical: boolean): Json => {
  const [method = "", path = ""] = rest.split(" ");
  const { op } = entry;
  const { parameters, body } = parametersOf(entry, method, path);
  const content = (schema: Json): Json => ({ content: { "application/json": { schema } } });
  const errors = [...codesOf(op)]
    .sort(([a], [b]) => a - b)
    .map(([status, codes]) => [
      String(status),
      {
        description: codes.join(", "),
        ...(isRetryable(codes[0] ?? "INTERNAL_ERROR") ? { headers: { "Retry-After": { schema: { type: "integer" }, description: "seconds" } } } : {}),
        ...content({ $ref: "#/components/schemas/Error" }),
      },
    ]);
  return {
    operationId: canonical ? entry.id : `${entry.id}~${path.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "")}`,
    tags: [entry.tag],
    summary: op.summary,
    ...(op.description === undefined ? {} : { description: op.description }),
    ...(op.deprecated === undefined ? {} : { deprecated: true }),
    security: securityOf(op),
    parameters,
    ...(body === null ? {} : { requestBody: { required: ((body["required"] as readonly string[] | undefined)?.length ?? 0) > 0, ...content(body) } }),
    responses: {
      [String(op.status)]: op.status === 204 ? { description: "No content" } : { description: "Success", ...content(successSchema(op)) },
      ...Object.fromEntries(errors),
    },
    "x-permission": op.permission,
    "x-rate-limit": op.limit,
  };
};

/** Two operations of one place (an agent polls where a portal lists) become one, told apart by the credential. */
const joined = (first: Json, second: Json): Json => {
  const params = [first, second].flatMap((each) => each["parameters"] as readonly Json[]);
  const responses = { ...(second["responses"] as Json), ...(first["responses"] as Json) };
  const schemas = [first, second]
    .map((each) => ((each["responses"] as Json)["200"] as { content?: Record<string, { schema?: Json }> } | undefined)?.content?.["application/json"]?.schema)
    .filter((schema) => schema !== undefined);
  return {
    ...first,
    summary: `${String(first["summary"])} · ${String(second["summary"])}`,
    description: "The credential decides which of the two is meant.",
    security: [...(first["security"] as readonly Json[]), ...(second["security"] as readonly Json[])],
    parameters: params
      .filter((param, index) => params.findIndex((other) => other["name"] === param["name"] && other["in"] === param["in"]) === index)
      .map((param) => (param["in"] === "query" ? { ...param, required: false } : param)),
    responses: {
      ...responses,
      ...(schemas.length === 2 ? { "200": { description: "Success", content: { "application/json": { schema: { anyOf: schemas } } } } } : {}),
    },
  };
};

const pathsOf = (entries: readonly Entry[]): Json => {
  const paths: Record<string, Record<string, Json>> = {};
  for (const entry of entries)
    entry.op.rest.forEach((rest, index) => {
      const [method = "", path = ""] = rest.split(" ");
      const at = paths[path] ?? {};
      paths[path] = at;
      const there = at[method.toLowerCase()];
      const operation = operationOf(entry, rest, index === 0);
      at[method.toLowerCase()] = there === undefined ? operation : joined(there, operation);
    });
  return paths;
};

const webhooksOf = (events: readonly EventType[]): Json =>
  Object.fromEntries(
    events
      .filter(({ durable }) => durable)
      .map(({ type, summary, schema }) => [
        type,
        {
          post: {
            summary,
            requestBody: {
              content: {
                "application/json": {
                  schema: {
                    type: "object",
                    required: ["id", "type", "timestamp", "data"],
                    properties: { id: { type: "string" }, type: { const: type }, timestamp, data: jsonSchemaOf(schema, "output") },
                  },
                },
              },
            },
            responses: { "2XX": { description: "Taken" } },
          },
        },
      ]),
  );

export interface OpenApiFacts {
  readonly version: string;
  readonly baseUrl: string;
  readonly events: readonly EventType[];
}

export const createOpenApi = (entries: readonly Entry[], prefix: Prefix, facts: OpenApiFacts): Json => {
  const header = (name: string, description: string): Json => ({ type: "apiKey", in: "header", name, description });
  return {
    openapi: "3.1.0",
    info: {
      title: "Mooring",
      version: facts.version,
      description: "Multi-tenant control plane for self-hosted software. Errors follow one shape; `retryable` says whether trying again makes sense.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: `${facts.baseUrl}${prefix}` }],
    tags: [...new Set(entries.map(({ tag }) => tag))].map((name) => ({ name })),
    paths: pathsOf(entries),
    webhooks: webhooksOf(facts.events),
    components: {
      schemas: { Error: errorSchema(prefix) },
      securitySchemes: {
        bearerAuth: { type: "http", scheme: "bearer", bearerFormat: "JWT" },
        apiKey: header("X-API-Key", "API key; send x-svc-tenant-id too"),
        tenantId: header("x-svc-tenant-id", "tenant id"),
        agentId: header("x-svc-agent-id", "agent id"),
        agentTimestamp: header("x-svc-timestamp", "ISO 8601 time of signing"),
        agentHmac: header("x-svc-signature", "lowercase hex HMAC-SHA256(shared secret, body + timestamp)"),
      },
    },
  };
};
