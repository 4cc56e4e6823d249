// Checks a payload while somebody types it, as far as that is cheap: the gateway checks all of it.

export type JsonSchema = Readonly<Record<string, unknown>>;
export type Payload = Readonly<Record<string, unknown>>;

export interface Checked {
  /** Null while the text is no JSON object. */
  readonly payload: Payload | null;
  /** Such as `lines: must be an integer`. */
  readonly issues: readonly string[];
}

const isObject = (value: unknown): value is Payload => typeof value === "object" && value !== null && !Array.isArray(value);
const ofObject = (value: unknown): Payload => (isObject(value) ? value : {});

export const propertiesOf = (schema: JsonSchema): Readonly<Record<string, JsonSchema>> => ofObject(schema["properties"]) as Record<string, JsonSchema>;
const requiredOf = (schema: JsonSchema): readonly string[] => (Array.isArray(schema["required"]) ? schema["required"].map(String) : []);

const IS: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  array: Array.isArray,
  object: isObject,
  null: (value) => value === null,
};
const ARTICLES: Readonly<Record<string, string>> = { integer: "an integer", array: "an array", object: "an object", boolean: "true or false", null: "null" };

const boundIssue = (value: unknown, schema: JsonSchema): string | null => {
  const bound = (name: string): number | null => (typeof schema[name] === "number" ? schema[name] : null);
  const [min, max, least, most] = [bound("minimum"), bound("maximum"), bound("minLength"), bound("maxLength")];
  if (typeof value === "number" && min !== null && value < min) return `must be at least ${min}`;
  if (typeof value === "number" && max !== null && value > max) return `must be at most ${max}`;
  if (typeof value === "string" && least !== null && value.length < least) return least === 1 ? "must not be empty" : `needs ${least} characters`;
  if (typeof value === "string" && most !== null && value.length > most) return `must have at most ${most} characters`;
  return null;
};

const valueIssue = (value: unknown, schema: JsonSchema): string | null => {
  const { type, enum: allowed } = schema;
  if (Array.isArray(allowed) && !allowed.includes(value)) return `must be one of ${allowed.map((each) => JSON.stringify(each)).join(", ")}`;
  const fits = typeof type === "string" ? IS[type] : undefined;
  if (typeof type === "string" && fits !== undefined && !fits(value)) return `must be ${ARTICLES[type] ?? `a ${type}`}`;
  return boundIssue(value, schema);
};

export const checkPayload = (typed: string, schema: JsonSchema | null): Checked => {
  let payload: unknown;
  try {
    payload = JSON.parse(typed.trim() === "" ? "{}" : typed);
  } catch (error) {
    return { payload: null, issues: [error instanceof Error ? error.message : "is not JSON"] };
  }
  if (!isObject(payload)) return { payload: null, issues: ["The payload must be an object, such as {}."] };
  if (schema === null) return { payload, issues: [] };
  const properties = propertiesOf(schema);
  const missing = requiredOf(schema).filter((name) => !Object.hasOwn(payload, name));
  const issues = Object.entries(payload).flatMap(([name, value]) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const issue = known === undefined ? (schema["additionalProperties"] === false ? "is not a property of this type" : null) : valueIssue(value, known);
    return issue === null ? [] : [`${name}: ${issue}`];
  });
  return { payload, issues: [...missing.map((name) => `${name}: is required`), ...issues] };
};

export interface SimpleField {
  readonly name: string;
  readonly type: "string" | "number" | "integer" | "boolean";
  readonly required: boolean;
  readonly options: readonly string[] | null;
}
/** The properties that a form can show, in the schema's order. */
export const simpleFields = (schema: JsonSchema): readonly SimpleField[] =>
  Object.entries(propertiesOf(schema)).flatMap(([name, { type, enum: options }]) =>
    type === "string" || type === "number" || type === "integer" || type === "boolean"
      ? [{ name, type, required: requiredOf(schema).includes(name), options: Array.isArray(options) && type === "string" ? options.map(String) : null }]
      : [],
  );

/** The payload with another value of a field; an empty field is left out. */
export const withField = (payload: Payload, { name, type }: SimpleField, typed: string): Payload => {
  const { [name]: _, ...rest } = payload;
  if (typed === "") return rest;
  const number = Number(typed);
  return { ...rest, [name]: type === "string" ? typed : type === "boolean" ? typed === "true" : Number.isNaN(number) ? typed : number };
};
