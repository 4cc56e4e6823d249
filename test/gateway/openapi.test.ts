// The documents: valid OpenAPI 3.1 for each prefix, true to what the doors answer, and shown by a page that needs nobody else.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { callerFor, openStock, REST_CASES, type Stock, sample, send, toRequest } from "../contract/samples.ts";
import { nobody, startWorld, type World } from "../kit/world.ts";

// biome-ignore lint/suspicious/noExplicitAny: a document is read as it comes
type Json = any;

let world: World;
let stock: Stock;
let documents: Readonly<Record<"/v1" | "/api/v1", Json>>;
beforeAll(async () => {
  world = await startWorld({
    RATE_LIMIT_ANONYMOUS: "off",
    RATE_LIMIT_PAIRING: "off",
    RATE_LIMIT_AGENT: "off",
    RATE_LIMIT_HEARTBEAT: "off",
    TENANTS_PER_USER: "100",
  });
  stock = await openStock(world);
  const read = async (prefix: string) => (await world.call(nobody, "GET", `${prefix}/openapi.json`)).body;
  documents = { "/v1": await read("/v1"), "/api/v1": await read("/api/v1") };
});
afterAll(() => world.close());

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
const operationsOf = (document: Json): { path: string; method: string; operation: Json }[] =>
  Object.entries<Json>(document.paths).flatMap(([path, item]) => Object.entries<Json>(item).map(([method, operation]) => ({ path, method, operation })));
/** Every object inside, however deep. */
const walk = function* (value: Json): Generator<Json> {
  if (typeof value !== "object" || value === null) return;
  yield value;
  for (const part of Object.values(value)) yield* walk(part);
};

describe.each(["/v1", "/api/v1"] as const)("the document of %s", (prefix) => {
  test("has what OpenAPI 3.1 demands of its top", () => {
    const document = documents[prefix];
    expect(document.openapi).toMatch(/^3\.1\.\d$/);
    expect([typeof document.info.title, typeof document.info.version]).toEqual(["string", "string"]);
    expect(document.servers).toEqual([{ url: `${world.url}${prefix}` }]);
    expect(new Set(document.tags.map(({ name }: Json) => name)).size).toBe(document.tags.length);
    const known = ["openapi", "info", "jsonSchemaDialect", "servers", "paths", "webhooks", "components", "security", "tags", "externalDocs"];
    expect(Object.keys(document).filter((key) => !known.includes(key))).toEqual([]);
  });

  test("names each operation once, declares each field of its path, and answers something", () => {
    const operations = operationsOf(documents[prefix]);
    expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length);
    for (const { path, method, operation } of operations) {
      expect(METHODS).toContain(method);
      expect(path).toMatch(/^\/(?:[A-Za-z0-9_-]+|\{\w+\})?(?:\/(?:[A-Za-z0-9_-]+|\{\w+\}))*$/);
      const fields = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = operation.parameters.filter((each: Json) => each.in === "path");
      expect([path, declared.map(({ name }: Json) => name).sort()]).toEqual([path, [...fields].sort()]);
      for (const parameter of operation.parameters) {
        expect(["path", "query", "header", "cookie"]).toContain(parameter.in);
        expect(typeof parameter.schema).toBe("object");
        if (parameter.in === "path") expect(parameter.required).toBe(true);
      }
      const places = operation.parameters.map(({ name, in: at }: Json) => `${at} ${name}`);
      expect(new Set(places).size).toBe(places.length);
      if (method === "get" || method === "delete") expect(operation.requestBody).toBeUndefined();
      expect(Object.keys(operation.responses).length).toBeGreaterThan(1);
      for (const [status, response] of Object.entries<Json>(operation.responses)) {
        expect(status).toMatch(/^[2-5]\d\d$/);
        expect(typeof response.description).toBe("string");
        if (status !== "204") expect(response.content["application/json"].schema).toBeTypeOf("object");
      }
    }
  });

  test("refers only to what it has, and its schemas are JSON Schema", () => {
    const document = documents[prefix];
    const types = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);
    for (const part of walk(document)) {
      if (typeof part.$ref === "string")
        expect([
          part.$ref,
          part.$ref
            .slice(2)
            .split("/")
            .reduce((at: Json, key: string) => at?.[key], document) !== undefined,
        ]).toEqual([part.$ref, true]);
      if (Array.isArray(part.required) && part.properties !== undefined)
        for (const name of part.required) expect([name, Object.keys(part.properties)]).toEqual([name, expect.arrayContaining([name])]);
      if (typeof part.type === "string" && (part.properties !== undefined || part.items !== undefined || part.format !== undefined))
        expect(types).toContain(part.type);
    }
    for (const { operation } of operationsOf(document))
      for (const security of operation.security)
        for (const name of Object.keys(security)) expect(Object.keys(document.components.securitySchemes)).toContain(name);
  });

  test("describes every route of the contract and no other", () => {
    const declared = operationsOf(documents[prefix])
      .map(({ path, method }) => `${method.toUpperCase()} ${path}`)
      .sort();
    expect(declared).toEqual([...new Set(REST_CASES.flatMap(({ op }) => op.rest))].sort());
  });

  test("shows the shape of errors that this prefix answers with", async () => {
    const schema = z.fromJSONSchema(documents[prefix].components.schemas.Error);
    for (const [method, path] of [
      ["GET", "/nowhere"],
      ["GET", "/devices"],
      ["PUT", "/devices"],
      ["GET", "/info?x=1"],
    ] as const)
      expect(schema.safeParse((await world.call(nobody, method, `${prefix}${path}`)).body).error?.issues ?? []).toEqual([]);
  });

  test.each(REST_CASES.map((each) => [each.id, each] as const))("%s answers what it declares there", async (_, each) => {
    const rest = each.op.rest[0] ?? "GET /";
    const [method = "", path = ""] = rest.split(" ");
    const declared = documents[prefix].paths[path][method.toLowerCase()];
    const answer = await send(stock, callerFor(each, stock), prefix, toRequest(each.op, await sample(each, stock), rest));
    const response = declared.responses[String(answer.status)];
    expect([answer.status, response !== undefined]).toEqual([each.op.status, true]);
    if (answer.status === 204) return;
    expect(z.fromJSONSchema(response.content["application/json"].schema).safeParse(answer.body).error?.issues ?? []).toEqual([]);
  });
});

test("events are described as webhooks", () => {
  expect(Object.keys(documents["/v1"].webhooks)).toEqual(expect.arrayContaining(["device.online", "device.offline", "command.completed"]));
});

describe("the pages", () => {
  const read = (path: string) => world.call(nobody, "GET", path);

  test.each(["/v1", "/api/v1"])("%s/docs and all that it loads come from here", async (prefix) => {
    const page = await read(`${prefix}/docs`);
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(page.body).not.toMatch(/https?:\/\/|src="\/\/|href="\/\//);
    const assets = [...String(page.body).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => `${prefix}/${path}`);
    expect(assets).toHaveLength(4);
    for (const path of assets) expect([path, (await read(path)).status]).toEqual([path, 200]);
    expect((await read(`${prefix}/docs/start.js`)).body).not.toMatch(/https?:\/\//);
    expect((await read(`${prefix}/docs/swagger-ui.css`)).body).not.toMatch(/url\((?!"?data:)|@import/);
    expect(page.headers.get("content-security-policy")).toMatch(/default-src 'none'.*connect-src 'self'/);
    expect((await read(`${prefix}/docs/`)).headers.get("location")).toBe(`${prefix}/docs`);
  });

  test("no other file can be had through them", async () => {
    for (const name of ["package.json", "../package.json", "..%2f..%2fpackage.json", "%2e%2e/package.json", "index.html", "constructor", "__proto__"])
      expect([name, (await read(`/v1/docs/${name}`)).status]).toEqual([name, 404]);
  });
});
