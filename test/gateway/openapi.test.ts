// The OpenAPI documents have what generators and people need, with examples that hold; the docs page shows them without any other host.
// Every call of the suite checks its answer against them: see test/kit/checks/openapi-answers.ts.
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { guideOf, TAGS } from "../../protocol/guide/index.ts";
import { ERROR_CODES } from "../../protocol/index.ts";
import { callerFor, openStock, REST_CASES, type Stock, toRequest } from "../contract/samples.ts";
import { anonymous, startWorld, type World } from "../kit/gateway/world.ts";

// biome-ignore lint/suspicious/noExplicitAny: a document is read as it comes
type Json = any;

let world: World;
let stock: Stock;
let documents: Readonly<Record<"/v1" | "/api/v1", Json>>;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_ANONYMOUS: "off", RATE_LIMIT_PAIRING: "off", RATE_LIMIT_AGENT: "off", TENANTS_PER_USER: "100" }, { inProcess: true });
  stock = await openStock(world);
  const read = async (prefix: string) => (await world.call(anonymous, "GET", `${prefix}/openapi.json`)).body;
  documents = { "/v1": await read("/v1"), "/api/v1": await read("/api/v1") };
});
afterAll(() => world.close());

const METHODS = ["get", "put", "post", "delete", "patch"];
interface Described {
  readonly path: string;
  readonly method: string;
  readonly operation: Json;
}
const operationsOf = (document: Json): readonly Described[] =>
  Object.entries<Json>(document.paths).flatMap(([path, item]) => Object.entries<Json>(item).map(([method, operation]) => ({ path, method, operation })));
/** Yields every nested object. */
const walk = function* (value: Json): Generator<Json> {
  if (typeof value !== "object" || value === null) return;
  yield value;
  for (const part of Object.values(value)) yield* walk(part);
};
const lookUp = (document: Json, ref: string): Json =>
  ref
    .slice(2)
    .split("/")
    .reduce((at: Json, key: string) => at?.[key], document);
const resolved = (document: Json, value: Json): Json => (value?.$ref === undefined ? value : lookUp(document, value.$ref));
/** The operations where a check fails, each as `GET /devices: problem`. */
const offenders = (document: Json, check: (each: Described) => readonly unknown[]): readonly string[] =>
  operationsOf(document).flatMap((each) => check(each).map((problem) => `${each.method.toUpperCase()} ${each.path}: ${String(problem)}`));

describe.each(["/v1", "/api/v1"] as const)("document of %s", (prefix) => {
  test("the document has the top level that OpenAPI 3.1 demands, and this gateway as its server", () => {
    const document = documents[prefix];
    expect(document.openapi).toBe("3.1.0");
    expect(Object.keys(document)).toEqual(["openapi", "info", "servers", "tags", "paths", "webhooks", "components"]);
    expect(document.servers).toMatchObject([{ url: `${world.url}${prefix}` }]);
    expect(document.tags.map(({ name }: Json) => name)).toEqual(Object.keys(TAGS));
    expect(document.tags.filter(({ description }: Json) => !description)).toEqual([]);
  });

  test("the document describes exactly the routes of the contract, each under a unique readable id", () => {
    const operations = operationsOf(documents[prefix]);
    const declared = operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`);
    expect(declared.toSorted()).toEqual([...new Set(REST_CASES.flatMap(({ op }) => op.rest))].sort());
    expect(operations.filter(({ method }) => !METHODS.includes(method))).toEqual([]);
    const ids = operations.map(({ operation }) => operation.operationId as string);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    expect(ids.filter((id) => !/^[a-z][A-Za-z]*\.[a-z][A-Za-z]*$/.test(id))).toEqual([]);
    expect(ids).toEqual(expect.arrayContaining(["devices.get", "devices.getViaHosts", "pairing.updateProgressViaPut"]));
  });

  test("the document describes every operation and every parameter", () => {
    const missing = offenders(documents[prefix], ({ operation }) => [
      ...(operation.summary?.length > 5 ? [] : ["has no summary"]),
      ...(operation.description?.length > 20 ? [] : ["has no description: give it one in protocol/guide"]),
      ...operation.parameters
        .filter(({ description }: Json) => !description)
        .map(({ name }: Json) => `parameter ${name} has no description: .describe() its field`),
    ]);
    expect(missing).toEqual([]);
  });

  test("the document declares each path field, and no parameter twice", () => {
    const wrong = offenders(documents[prefix], ({ path, operation }) => {
      const fields = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
      const declared = operation.parameters.filter((each: Json) => each.in === "path" && each.required).map(({ name }: Json) => name);
      const places = operation.parameters.map(({ name, in: at }: Json) => `${at} ${name}`);
      return [
        ...(JSON.stringify(fields) === JSON.stringify(declared.sort()) ? [] : [`has ${fields}, declares ${declared}`]),
        ...places.filter((place: string, index: number) => places.indexOf(place) !== index),
      ];
    });
    expect(wrong).toEqual([]);
  });

  test("the document names the record of every answer, so that generated clients get named types", () => {
    const document = documents[prefix];
    const isNamed = (data: Json): boolean =>
      data.$ref !== undefined || (data.type === "array" && data.items.$ref !== undefined) || (data.allOf?.[0].$ref ?? undefined) !== undefined;
    const unnamed = offenders(document, ({ operation }) =>
      Object.entries<Json>(operation.responses)
        .filter(([status]) => status.startsWith("2"))
        .flatMap(([, { content = {} }]) => (content["application/json"] === undefined ? [] : [content["application/json"].schema]))
        .flatMap((schema: Json) => schema.anyOf ?? [schema])
        .filter((schema: Json) => !isNamed(schema.properties?.data ?? schema))
        .map(() => "answers a record without a name: give it one in protocol/schemas.ts"),
    );
    expect(unnamed).toEqual([]);
    expect(Object.keys(document.components.schemas)).toEqual(expect.arrayContaining(["Device", "Command", "Tenant", "ApiKey", "Error", "CommandStatus"]));
    expect(JSON.stringify(document)).not.toMatch(/__schema|"\$defs"/);
  });

  test("every reference and security scheme of the document exists, and every component is used", () => {
    const document = documents[prefix];
    const refs = new Set([...walk(document)].map(({ $ref }) => $ref).filter((ref) => typeof ref === "string"));
    expect([...refs].filter((ref) => lookUp(document, ref) === undefined)).toEqual([]);
    const parts = Object.entries<Json>(document.components).flatMap(([kind, all]) =>
      kind === "securitySchemes" ? [] : Object.keys(all).map((name) => `#/components/${kind}/${name}`),
    );
    expect(parts.filter((ref) => !refs.has(ref))).toEqual([]);
    const schemes = Object.keys(document.components.securitySchemes);
    expect(offenders(document, ({ operation }) => operation.security.flatMap(Object.keys).filter((name: string) => !schemes.includes(name)))).toEqual([]);
  });

  test("the document shows an example for every operation, and every example fits its schema", () => {
    const document = documents[prefix];
    // As in test/kit/checks/openapi-answers.ts: compiling costs more than checking.
    const ajv = new Ajv2020({ strict: false, allErrors: true, inlineRefs: false, code: { optimize: false } });
    formats.default(ajv);
    ajv.addSchema({ $id: "openapi", components: { schemas: document.components.schemas } });
    const validators = new Map<string, ReturnType<typeof ajv.compile>>();
    const misfit = (schema: Json, value: Json): readonly string[] => {
      const text = JSON.stringify(schema).replaceAll('"#/components', '"openapi#/components');
      const validate = validators.get(text) ?? ajv.compile(JSON.parse(text));
      validators.set(text, validate);
      return validate(value) ? [] : [`${JSON.stringify(value)?.slice(0, 80)}: ${ajv.errorsText(validate.errors)}`];
    };
    const wrong = offenders(document, ({ operation }) => {
      const media: Json[] = [operation.requestBody, ...Object.values<Json>(operation.responses).map((each) => resolved(document, each))].flatMap((each) =>
        Object.values<Json>(each?.content ?? {}),
      );
      return [
        ...media.flatMap(({ schema, examples = {} }) => {
          const shown = Object.values<Json>(examples);
          if (shown.length === 0) return ["has no example: give it one in protocol/guide"];
          return shown.flatMap((example) => misfit(schema, resolved(document, example).value));
        }),
        ...operation.parameters.flatMap(({ schema, example }: Json) => (example === undefined ? [] : misfit(schema, example))),
      ];
    });
    expect(wrong).toEqual([]);
    expect(ERROR_CODES).toEqual(expect.arrayContaining(Object.keys(document.components.examples)));
  });
});

test("the guide's examples fit the contract and have no unknown field", () => {
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
  const wrong = REST_CASES.flatMap(({ id, op }) => {
    const { input = {}, output } = guideOf(id);
    const [asked, answered] = [op.input.safeParse(input), op.output.safeParse(output ?? null)];
    return [
      ...(asked.success ? [] : [`${id}: its input: ${asked.error.message}`]),
      ...(op.status === 204 || (answered.success && JSON.stringify(plain(answered.data)) === JSON.stringify(plain(sorted(output, answered.data))))
        ? []
        : [`${id}: its output: ${answered.success ? "has a field that the contract does not know" : answered.error.message}`]),
    ];
  });
  expect(wrong).toEqual([]);
});
/** The value with its fields in the other's order. */
const sorted = (value: Json, like: Json): Json => {
  if (Array.isArray(value)) return value.map((each, index) => sorted(each, like?.[index]));
  if (typeof value !== "object" || value === null) return value;
  const names = [...Object.keys(like ?? {}).filter((name) => name in value), ...Object.keys(value).filter((name) => !(name in (like ?? {})))];
  return Object.fromEntries(names.map((name) => [name, sorted(value[name], like?.[name])]));
};

/** Codes that speak of other records than that of the path, which do not exist here either. */
const OF_RECORDS: ReadonlySet<string> = new Set(["BULK_NO_TARGETS", "DOMAIN_TARGET_INVALID", "TARGET_EMPTY", "UPDATE_VERSION_UNKNOWN"]);

describe("try it out", () => {
  test.each(REST_CASES.map((each) => [each.id, each] as const))("%s accepts the request that the docs page prefills", async (_, each) => {
    const { input = {} } = guideOf(each.id);
    const { method, path, ...sent } = toRequest(each.op, input);
    const answer = await world.call(callerFor(each, stock), method, `/v1${path === "/" ? "" : path}`, sent);
    // The example ids do not exist here. The request itself must not be refused.
    expect([answer.status, answer.body?.code ?? null]).not.toEqual([400, "VALIDATION_FAILED"]);
    if (!OF_RECORDS.has(answer.body?.code)) expect([415, 422, 500], answer.body?.code).not.toContain(answer.status);
  });
});

describe("docs page", () => {
  const read = (path: string) => world.callOverHttp(anonymous, "GET", path);

  test.each(["/v1", "/api/v1"])("%s/docs loads everything from this gateway", async (prefix) => {
    const page = await read(`${prefix}/docs`);
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(page.body).not.toMatch(/https?:\/\/|src="\/\/|href="\/\//);
    const assets = [...String(page.body).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => `${prefix}/${path}`);
    expect(assets).toHaveLength(5);
    for (const path of assets) expect([path, (await read(path)).status]).toEqual([path, 200]);
    expect((await read(`${prefix}/docs/start.js`)).body).not.toMatch(/https?:\/\//);
    expect((await read(`${prefix}/docs/swagger-ui.css`)).body).not.toMatch(/url\((?!"?data:)|@import/);
    expect(page.headers.get("content-security-policy")).toMatch(/default-src 'none'.*connect-src 'self'/);
    expect((await read(`${prefix}/docs/`)).headers.get("location")).toBe(`${prefix}/docs`);
  });

  test("the docs routes serve no other file", async () => {
    for (const name of ["package.json", "../package.json", "..%2f..%2fpackage.json", "%2e%2e/package.json", "index.html", "constructor", "__proto__"])
      expect([name, (await read(`/v1/docs/${name}`)).status]).toEqual([name, 404]);
  });
});
