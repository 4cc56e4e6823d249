// Checks every REST answer of the suite against the gateway's OpenAPI document: its status, its headers, its body.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";

// biome-ignore lint/suspicious/noExplicitAny: a document is read as it comes
type Json = any;
type Prefix = "/v1" | "/api/v1";

export interface CheckedAnswer {
  readonly method: string;
  /** Includes the query. */
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/** Headers of HTTP, its connections and browsers: any answer may carry them, and the document does not list them. */
const TRANSPORT =
  /^(?:access-control-.*|allow|cache-control|connection|content-(?:length|type|encoding|security-policy)|date|keep-alive|server|transfer-encoding|upgrade|uwebsockets|vary|x-content-type-options|strict-transport-security)$/;
/** Paths that the gateway serves beside the operations. */
const BESIDE = /^(?:\/(?:api\/)?v1\/(?:openapi\.json|docs(?:\/.*)?|agent\/connect)|\/trpc\/.*|\/\.well-known\/.*)$/;

const isObject = (value: Json): boolean => typeof value === "object" && value !== null && !Array.isArray(value);

/** The document leaves answers open, so that they may gain fields. The tests accept no field that it does not name. */
const closed = (schema: Json, document: Json): Json => {
  if (Array.isArray(schema)) return schema.map((each) => closed(each, document));
  if (!isObject(schema)) return schema;
  if (Array.isArray(schema.allOf)) {
    const parts = schema.allOf.map((part: Json) => (part.$ref === undefined ? part : at(document, part.$ref)));
    return closed(
      {
        type: "object",
        properties: Object.assign({}, ...parts.map(({ properties }: Json) => properties)),
        required: parts.flatMap(({ required }: Json) => required ?? []),
      },
      document,
    );
  }
  const inner = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, name === "enum" || name === "const" ? value : closed(value, document)]),
  );
  return schema.properties !== undefined && schema.additionalProperties === undefined && isObject(schema.properties)
    ? { ...inner, additionalProperties: false }
    : inner;
};

const at = (document: Json, ref: string): Json =>
  ref
    .slice(2)
    .split("/")
    .reduce((value, key) => value[key.replaceAll("~1", "/").replaceAll("~0", "~")], document);

interface ReadDocument {
  readonly document: Json;
  readonly ajv: Ajv2020;
  readonly routes: readonly { readonly matches: RegExp; readonly path: string }[];
  /** By the text of the schema, so that the one of errors, which hundreds of operations share, is compiled once. */
  readonly validators: Map<string, ValidateFunction>;
  readonly known: WeakMap<object, ValidateFunction>;
}

const read = (document: Json): ReadDocument => {
  // Compiling costs more than checking: what schemas share is compiled once and called, instead of copied into each.
  const ajv = new Ajv2020({ strict: false, allErrors: true, inlineRefs: false, validateSchema: false, code: { optimize: false } });
  formats.default(ajv);
  const schemas = Object.fromEntries(Object.entries(document.components.schemas).map(([name, schema]) => [name, closed(schema, document)]));
  ajv.addSchema({ $id: "openapi", components: { schemas } });
  const routes = Object.keys(document.paths).map((path) => ({ path, matches: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`) }));
  // Match as the gateway does: a literal segment wins over a parameter.
  const order = (path: string): string => path.replaceAll(/\{\w+\}/g, "~");
  return { document, ajv, routes: routes.sort((a, b) => (order(a.path) < order(b.path) ? -1 : 1)), validators: new Map(), known: new WeakMap() };
};

/** Compiled for the first answer of a kind, then reused. */
const validatorFor = (described: ReadDocument, schema: Json): ValidateFunction => {
  const known = described.known.get(schema);
  if (known !== undefined) return known;
  const text = JSON.stringify(closed(schema, described.document)).replaceAll('"#/components', '"openapi#/components');
  const made = described.validators.get(text) ?? described.ajv.compile(JSON.parse(text));
  described.validators.set(text, made);
  described.known.set(schema, made);
  return made;
};
const ANY_ERROR = { $ref: "#/components/schemas/Error" };

const complain = (validate: ValidateFunction, value: unknown): readonly string[] =>
  validate(value)
    ? []
    : (validate.errors ?? []).map(({ instancePath, message, params }) => `${instancePath || "/"} ${message} ${JSON.stringify(params)}`).slice(0, 10);

const checkHeaders = (described: ReadDocument, declared: Json, headers: Headers): readonly string[] => {
  const known = new Map(
    Object.entries<Json>(declared ?? {}).map(([name, header]) => [
      name.toLowerCase(),
      header.$ref === undefined ? header : at(described.document, header.$ref),
    ]),
  );
  const undeclared = [...headers.keys()].filter((name) => !TRANSPORT.test(name) && !known.has(name)).map((name) => `header ${name} is not declared`);
  const missing = [...known].filter(([name, { required }]) => required === true && !headers.has(name)).map(([name]) => `header ${name} is missing`);
  const misshapen = [...known].flatMap(([name, { schema }]) => {
    const text = headers.get(name);
    if (text === null) return [];
    const value = schema.type === "integer" && /^-?\d+$/.test(text) ? Number(text) : text;
    return complain(validatorFor(described, schema), value).map((problem) => `header ${name}: ${text}: ${problem}`);
  });
  return [...undeclared, ...missing, ...misshapen];
};

const documents = new Map<Prefix, Promise<ReadDocument>>();

/** Fetches a document of the gateway under test. */
export type GetDocument = (prefix: Prefix) => Promise<unknown>;

/** Reads a document once per process, since all gateways have the same. Call it in advance, so that no test waits for it. */
export const readDocument = (prefix: Prefix, get: GetDocument): Promise<ReadDocument> => {
  const known = documents.get(prefix) ?? get(prefix).then(read);
  documents.set(prefix, known);
  return known;
};

/** Throws with everything about this answer that the document does not declare. */
export const checkOpenApiAnswer = async (exchange: CheckedAnswer, get: GetDocument): Promise<void> => {
  const { method, status, headers, body } = exchange;
  const [path = ""] = exchange.path.split("?", 1);
  const prefix = /^\/(?:api\/)?v1(?=\/|$)/.exec(path)?.[0] as Prefix | undefined;
  if (prefix === undefined || method === "OPTIONS" || BESIDE.test(path)) return;
  // A caller may ask for the error shape of the other prefix.
  const shape = status >= 400 ? headers.get("x-svc-error-shape") : null;
  const described = await readDocument(shape === "a" ? "/api/v1" : shape === "b" ? "/v1" : prefix, get);
  const rest = path.slice(prefix.length).replace(/(?<=.)\/$/, "") || "/";
  const found = described.routes.find(({ matches }) => matches.test(rest));
  const route = found !== undefined && has(described, found.path, method) ? found : undefined;
  const problems = route === undefined ? checkUndeclared(described, exchange) : checkDeclared(described, route.path, exchange);
  if (problems.length === 0) return;
  const where = route === undefined ? "no operation" : `${method} ${route.path}`;
  throw new Error(
    `${method} ${exchange.path} answered ${status}, and the OpenAPI document (${where}) does not say so:\n${problems.map((line) => `  ${line}`).join("\n")}\n${JSON.stringify(body)?.slice(0, 1_000)}`,
  );
};

const has = ({ document }: ReadDocument, path: string, method: string): boolean =>
  document.paths[path][(method === "HEAD" ? "GET" : method).toLowerCase()] !== undefined;

/** A path without an operation must be refused, in the shape of all errors. */
const checkUndeclared = (described: ReadDocument, { status, body }: CheckedAnswer): readonly string[] => {
  if (status < 400) return ["there is no such operation"];
  return body === null ? [] : complain(validatorFor(described, ANY_ERROR), body);
};

const checkDeclared = (described: ReadDocument, path: string, { method, status, headers, body }: CheckedAnswer): readonly string[] => {
  const operation = described.document.paths[path][(method === "HEAD" ? "GET" : method).toLowerCase()];
  const declared = operation.responses[String(status)];
  if (declared === undefined) {
    const code = (body as { code?: string } | null)?.code;
    return [
      `status ${status}${code === undefined ? "" : ` (${code})`} is not declared; name the code in the operation's errors, or in server/gateway/openapi/errors.ts if any call may end so`,
    ];
  }
  const response = declared.$ref === undefined ? declared : at(described.document, declared.$ref);
  const problems = checkHeaders(described, response.headers, headers);
  if (method === "HEAD") return problems;
  const [type = ""] = (headers.get("content-type") ?? "").split(";", 1);
  // A text without an envelope.
  if (type !== "" && type !== "application/json")
    return response.content?.[type]?.schema.type === typeof (body ?? "") ? problems : [...problems, `a body of type ${type}, which is not declared`];
  const schema = response.content?.["application/json"]?.schema;
  if (schema === undefined) return body === null ? problems : [...problems, "a body where none is declared"];
  const codes = Object.keys(response.content["application/json"].examples ?? {});
  const code = (body as { success?: boolean; code?: string } | null)?.success === false ? (body as { code?: string }).code : undefined;
  const strange = code !== undefined && !codes.includes(code) ? [`code ${code} is not among ${codes.join(", ")}`] : [];
  return [...problems, ...strange, ...complain(validatorFor(described, schema), body)];
};
