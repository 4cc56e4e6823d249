// protocol/fields.md: every field of the frames, of the commands' payloads and outputs, and of an agent's calls, from the JSON Schemas. `npm run docs:schemas`.
type Json = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);
const at = (schema: Json, key: string): Json => (isObject(schema[key]) ? schema[key] : {});
/** A date's form has a pattern of its own, which tells nobody anything. */
const MAX_PATTERN = 60;
/** Beyond JSON's exact integers nothing is sent, so these are no bounds. */
const EXACT = Number.MAX_SAFE_INTEGER;
const DEPTH = 4;

const alternativesOf = (schema: Json): readonly Json[] => {
  const parts = ["anyOf", "oneOf"].flatMap((key) => (Array.isArray(schema[key]) ? schema[key].filter(isObject) : []));
  return parts.length === 0 ? [schema] : parts.flatMap(alternativesOf);
};
const code = (value: unknown): string => `\`${String(value).replaceAll("|", "\\|")}\``;

const typeOf = (schema: Json): string => {
  if ("const" in schema) return code(JSON.stringify(schema["const"]));
  if (Array.isArray(schema["enum"])) return schema["enum"].map(code).join(", ");
  const { type } = schema;
  if (type === "array") return `array of ${[...new Set(alternativesOf(at(schema, "items")).map(typeOf))].join(" or ")}`;
  if (type === "object" && !isObject(schema["properties"]) && isObject(schema["additionalProperties"])) return "object, by name";
  if (schema["format"] === "date-time") return "time";
  return typeof type === "string" ? type : "any";
};
const range = (least: unknown, most: unknown, unit: string): readonly string[] => {
  const [low, high] = [least, most].map((value) => (typeof value === "number" && Math.abs(value) < EXACT ? value : null));
  if (low === null && high === null) return [];
  if (low === null) return [`at most ${high}${unit}`];
  return [high === null ? `at least ${low}${unit}` : low === high ? `${low}${unit}` : `${low} to ${high}${unit}`];
};
const boundsOf = (schema: Json): readonly string[] => {
  const pattern = schema["pattern"];
  return [
    ...range(schema["minimum"], schema["maximum"], ""),
    ...range(schema["minLength"], schema["maxLength"], " characters"),
    ...range(schema["minItems"], schema["maxItems"], " entries"),
    ...(typeof pattern === "string" && pattern.length <= MAX_PATTERN ? [code(pattern)] : []),
    ...(schema["type"] === "array" ? boundsOf(at(schema, "items")).map((each) => `each ${each}`) : []),
  ];
};
const unique = (words: readonly string[]): string => [...new Set(words)].join(" or ");

/** The rows of an object's fields, and below each one those of its own fields. */
const rowsOf = (schema: Json, path = "", depth = 0): readonly string[] => {
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  return Object.entries(at(schema, "properties")).flatMap(([name, value]) => {
    if (!isObject(value)) return [];
    const forms = alternativesOf(value);
    const bounds = unique(forms.map((form) => boundsOf(form).join(", ")).filter((each) => each !== ""));
    const row = `| ${code(`${path}${name}`)} | ${unique(forms.map(typeOf))} | ${bounds} | ${required.has(name) ? "yes" : ""} |`;
    if (depth === DEPTH) return [row];
    const inner = forms.flatMap((form) =>
      form["type"] === "array"
        ? alternativesOf(at(form, "items")).flatMap((item) => rowsOf(item, `${path}${name}[].`, depth + 1))
        : rowsOf(form, `${path}${name}.`, depth + 1),
    );
    return [row, ...new Set(inner)];
  });
};
const table = (rows: readonly string[]): readonly string[] =>
  rows.length === 0 ? ["No fields.", ""] : ["| Field | Type | Bounds | Required |", "|---|---|---|---|", ...rows, ""];

/** What every frame has, and what says which frame it is, stands in level 1. */
const ofFrame = (schema: Json): readonly string[] => rowsOf(at(at(schema, "properties"), "data"));
const section = (title: string, about: string, parts: readonly (readonly [name: string, text: readonly string[]])[]): readonly string[] => [
  `## ${title}`,
  "",
  about,
  "",
  ...parts.flatMap(([name, text]) => [`### ${name}`, "", ...text]),
];

export const fieldsDocument = (schemas: ReadonlyMap<string, Json>): string => {
  const of = (folder: string) =>
    [...schemas].flatMap(([path, schema]) => (path.startsWith(`${folder}/`) ? [[path.slice(folder.length + 1, -".json".length), schema] as const] : []));
  const definition = (schema: Json, name: string): readonly string[] => rowsOf(at(at(schema, "$defs"), name));
  return `${[
    "# Fields of the agent protocol",
    "",
    "Generated from [`schemas/`](schemas) by `npm run docs:schemas`; [the protocol](README.md) says what they mean. A field is there since version 1 of the protocol unless [the list of changes](reference.md#changes-of-this-protocol) names it.",
    "",
    "**Required** means, in what the agent sends: the gateway refuses the message without it. In what the gateway sends: the agent cannot do without it, and gateways will always send it. Bounds count characters as UTF-16 code units. `[]` stands for each entry of an array.",
    "",
    ...section(
      "Frames from the agent",
      "The fields of `data`.",
      of("from-agent").map(([op, schema]) => [op, table(ofFrame(schema))] as const),
    ),
    ...section(
      "Frames from the gateway",
      "The fields of `data`. Lists of words may grow.",
      of("from-gateway").map(([op, schema]) => [op, table(ofFrame(schema))] as const),
    ),
    ...section(
      "Commands",
      "`payload` as the agent receives it, and `output` as it returns it when the command has succeeded.",
      of("commands").map(([type, schema]) => {
        const rows = (name: string) => definition(schema, name).map((row) => row.replace("| `", `| \`${name}.`));
        return [type, [`${String(schema["description"])}.`, "", ...table([...rows("payload"), ...rows("output")])]] as const;
      }),
    ),
    ...section(
      "Calls over REST",
      "The body that the agent sends, and `data` of the answer.",
      of("rest").map(([call, schema]) => {
        const body = definition(schema, "body").map((row) => row.replace("| `", "| `body."));
        const answer = rowsOf(at(at(at(at(schema, "$defs"), "answer"), "properties"), "data")).map((row) => row.replace("| `", "| `data."));
        return [call, [`${String(schema["description"])}.`, "", ...table([...body, ...answer])]] as const;
      }),
    ),
  ]
    .join("\n")
    .trimEnd()}\n`;
};
