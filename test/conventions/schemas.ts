// JSON Schemas of everything an agent sends and receives, derived from the contract: `npm run docs:schemas` writes them to protocol/schemas.
// The schemas of an agent's messages are the gateway's own. Those of the gateway's messages are tolerant: enumerations are open, ids are opaque,
// seconds may be fractions, and only the fields that an agent cannot do without are required. A client generated from them works with later gateways.
import { z } from "zod";
import { AgentFrame, contract, type Group, type Operation, ServerFrame } from "../../protocol/index.ts";
import { fieldsDocument } from "./protocol-fields.ts";

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** Fields of the gateway's messages that an agent cannot do without. */
const NEEDED: ReadonlySet<string> = new Set(
  "op id data success nonce commandId type action command device_id agent_id tenant_id shared_secret pairing_code secrets DEVICE_TOKEN".split(" "),
);
const IS_TIME = /(Sec|Seconds|Ms|Pct)$/;

const openWord = (schema: Json): Json => {
  const { enum: words, type: _, ...others } = schema;
  return Array.isArray(words) ? { ...others, anyOf: [{ enum: words }, { type: "string" }] } : schema;
};
const opaque = ({ pattern: _pattern, additionalProperties, ...schema }: Json): Json =>
  isObject(additionalProperties) ? { ...schema, additionalProperties } : schema;
const unbounded = ({ minimum, maximum, ...schema }: Json, isTime: boolean): Json => {
  if (schema["type"] !== "integer") return { ...schema, ...(minimum === undefined ? {} : { minimum }), ...(maximum === undefined ? {} : { maximum }) };
  return isTime ? { ...schema, type: "number" } : schema;
};

/** Loosens a schema so that it also accepts the messages of later gateways. */
const tolerant = (schema: unknown, name = "", isNeeded = (key: string): boolean => NEEDED.has(key)): unknown => {
  if (Array.isArray(schema)) return schema.map((each) => tolerant(each, name, isNeeded));
  if (!isObject(schema)) return schema;
  const { required, properties, ...rest } = schema;
  const open: Json = {};
  for (const [key, value] of Object.entries(rest)) open[key] = key === "examples" || key === "enum" ? value : tolerant(value, name, isNeeded);
  const told = unbounded(opaque(openWord(open)), IS_TIME.test(name));
  if (!isObject(properties)) return told;
  const kept = Array.isArray(required) ? required.filter((key) => isNeeded(String(key))) : [];
  return {
    ...told,
    properties: Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, tolerant(value, key, isNeeded)])),
    ...(kept.length === 0 ? {} : { required: kept }),
  };
};

const toJson = (schema: z.ZodType): Json => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return rest;
};
const DIALECT = "https://json-schema.org/draft/2020-12/schema";

/** Bytes that are no JSON. */
const bytesOf = (type: string, told: Json = {}): Json => ({ type: "string", contentMediaType: type, ...told });

/** One call: its path, headers, query and body, and its answer. */
const callOf = (title: string, operation: Operation): Json => {
  const { rest, summary, input, output, list, query } = operation;
  const headers: Readonly<Record<string, string>> = ("headers" in operation && (operation.headers as Record<string, string>)) || {};
  const route = rest[0] ?? "";
  const { properties = {}, required = [], ...others } = toJson(input) as { properties?: Json; required?: string[] } & Json;
  const inPath = new Set([...route.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? ""));
  const placeOf = (name: string): "path" | "headers" | "query" | "body" => {
    if (inPath.has(name)) return "path";
    if (headers[name] !== undefined) return "headers";
    return route.startsWith("GET ") || query.includes(name) ? "query" : "body";
  };
  const part = (place: ReturnType<typeof placeOf>): Json | null => {
    const names = Object.keys(properties).filter((name) => placeOf(name) === place);
    if (names.length === 0) return null;
    const { rawBody, rawType = "application/octet-stream" } = operation;
    if (place === "body" && rawBody !== undefined) return bytesOf(rawType, { description: (properties[rawBody] as Json)["description"] });
    const needed = required.filter((name) => names.includes(name));
    const fields = Object.fromEntries(names.map((name) => [headers[name] ?? name, properties[name]]));
    return { ...others, type: "object", properties: fields, ...(needed.length === 0 ? {} : { required: needed }) };
  };
  const whole = toJson(output);
  const items = isObject(whole["properties"]) ? whole["properties"]["items"] : undefined;
  const data = list === "plain" && items !== undefined ? items : whole;
  const beside =
    list === "plain" && isObject(whole["properties"]) ? Object.fromEntries(Object.entries(whole["properties"]).filter(([name]) => name !== "items")) : {};
  const envelope = tolerant({
    type: "object",
    properties: {
      success: { const: true },
      data,
      ...beside,
      meta: { type: "object", properties: { timestamp: { type: "string" }, requestId: { type: "string" } } },
    },
    required: ["success", "data"],
  });
  const answer = operation.plain === undefined ? envelope : bytesOf(operation.plain.type);
  const parts = Object.entries({ path: part("path"), headers: part("headers"), query: part("query"), body: part("body") }).filter(
    ([, value]) => value !== null,
  );
  return {
    $schema: DIALECT,
    title,
    description: `${summary}: ${rest.map((each) => each.replace(" /", " /v1/")).join(", ")}`,
    $defs: { ...Object.fromEntries(parts), answer },
  };
};

const frameFiles = (folder: string, options: typeof ServerFrame.options | typeof AgentFrame.options, read: (schema: unknown) => unknown): [string, Json][] =>
  options.map((option) => {
    const op = option.shape.op.value;
    return [`${folder}/${op}.json`, { $schema: DIALECT, title: `${op} (${folder.replace("-", " the ")})`, ...(read(toJson(option)) as Json) }];
  });

/** Agents make these calls without a signature. All their other operations accept the credential `agent`. */
const PAIRING = ["initiate", "activate", "autoActivate", "collect", "status", "updateProgress"];
const calls = (): [string, Json][] =>
  Object.entries(contract).flatMap(([group, { operations }]) =>
    Object.entries<Operation>(operations)
      .filter(([name, { auth }]) => auth.includes("agent") || (group === "pairing" && PAIRING.includes(name)))
      .map(([name, operation]): [string, Json] => [`rest/${group}.${name}.json`, callOf(`${group}.${name}`, operation)]),
  );

/** The declared command types: the payload that the agent receives and the output that it returns. */
const commandTypes = (): [string, Json][] =>
  Object.values<Group>(contract)
    .flatMap(({ commands }) => Object.values(commands))
    .map(({ type, summary, payload, output }) => [
      `commands/${type}.json`,
      { $schema: DIALECT, title: type, description: summary, $defs: { payload: tolerant(toJson(payload), "", () => true), output: toJson(output) } },
    ]);

const allSchemas = (): ReadonlyMap<string, Json> =>
  new Map([
    ...frameFiles("from-gateway", ServerFrame.options, (schema) => tolerant(schema)),
    ...frameFiles("from-agent", AgentFrame.options, (schema) => schema),
    ...calls(),
    ...commandTypes(),
  ]);

/** The text of each file, by its path in protocol/schemas. */
export const schemaFiles = (): ReadonlyMap<string, string> =>
  new Map([...allSchemas()].map(([name, schema]) => [name, `${JSON.stringify(schema, null, 2)}\n`]));

export const fieldsText = (): string => fieldsDocument(allSchemas());
