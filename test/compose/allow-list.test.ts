// The list of what a Compose project may contain: it names few properties, and refuses every other one of the Compose Specification in both forms.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { COMPOSE_REFUSED, checkWrittenProject, DOCKER_VARIABLES, resolvedProjectFaults } from "../../protocol/kit/compose-project.ts";
import { ESCAPES, type Escape, resolved, written } from "./escapes.ts";

const NAME = "app_01x";
const variable = (name: string): string => `$\{${name}}`;
const places = (faults: readonly { readonly code: string; readonly path: string }[]): readonly (readonly [string, string])[] =>
  faults.map(({ code, path }) => [code, path]);
const inResolved = (project: unknown): readonly string[] => resolvedProjectFaults(project, NAME).map(({ path }) => path);

test("accepts a project that stays within its containers, in both forms", () => {
  expect(checkWrittenProject(written({}), [])).toMatchObject({ project: { services: { web: { image: "busybox:1.35.0" } } }, faults: [] });
  expect(resolvedProjectFaults(resolved({}, NAME), NAME)).toEqual([]);
});
test.each(ESCAPES)("refuses $way at $path", (wayOut) => {
  expect(places(checkWrittenProject(written(wayOut), []).faults)).toContainEqual([COMPOSE_REFUSED, wayOut.path]);
});
test.each(ESCAPES.filter(({ resolvedAway }) => !resolvedAway))("refuses $way at $path once it is resolved", (wayOut) => {
  expect(places(resolvedProjectFaults(resolved(wayOut, NAME), NAME))).toContainEqual([COMPOSE_REFUSED, wayOut.path]);
});

const Schema = z.record(z.string(), z.unknown());
const Definition = z.object({ properties: Schema.optional(), patternProperties: Schema.optional() });
const spec = z
  .object({ properties: Schema, definitions: z.record(z.string(), Definition.catch({})) })
  .parse(JSON.parse(readFileSync("test/features/apps/catalogue/compose-spec.json", "utf8")));
const propertiesOf = (definition: string): readonly string[] => {
  const found = Object.keys(spec.definitions[definition]?.properties ?? {});
  return found.length > 0 ? found : expect.fail(`the specification has no ${definition}`);
};
/** A value of each type, as a property that is not allowed may have any. */
const VALUES = [null, true, 1, "text", [], ["text"], {}, { any: "thing" }];

describe("of the properties of the Compose Specification", () => {
  const top = (property: string, value: unknown) => ({ rest: { [property]: value } });
  const ofService = (property: string, value: unknown) => ({ service: { [property]: value } });
  const ofHealthcheck = (property: string, value: unknown) => ({
    service: { healthcheck: { test: ["CMD", "true"], interval: "5s", timeout: "5s", retries: 1, [property]: value } },
  });
  const ofVolume = (property: string, value: unknown) => ({ rest: { volumes: { data: { [property]: value } } } });
  interface Place {
    readonly where: string;
    readonly path: string;
    readonly listed: readonly string[];
    /** Of the resolved form only. */
    readonly only: readonly string[];
    readonly properties: readonly string[];
    readonly put: (property: string, value: unknown) => Partial<Escape>;
  }
  const cases: readonly Place[] = [
    { where: "a project", path: "", listed: ["services", "volumes"], only: ["name", "networks"], properties: Object.keys(spec.properties), put: top },
    {
      where: "a service",
      path: "services.web.",
      listed: ["command", "depends_on", "environment", "healthcheck", "image", "ports", "restart", "shm_size", "user", "volumes"],
      only: ["entrypoint", "networks"],
      properties: propertiesOf("service"),
      put: ofService,
    },
    {
      where: "a health check",
      path: "services.web.healthcheck.",
      listed: ["interval", "retries", "test", "timeout"],
      only: [],
      properties: propertiesOf("healthcheck"),
      put: ofHealthcheck,
    },
    { where: "a volume", path: "volumes.data.", listed: [], only: ["name"], properties: propertiesOf("volume"), put: ofVolume },
  ];
  test.each(cases)("$where has those of the list, and each other one is refused in both forms", ({ path, listed, only, properties, put }) => {
    const accepted = (check: (parts: Partial<Escape>) => readonly string[]): readonly string[] =>
      properties.filter((property) => VALUES.some((value) => !check(put(property, value)).includes(`${path}${property}`))).sort();
    expect(properties.length).toBeGreaterThan(listed.length);
    const text = accepted((parts) => checkWrittenProject(written(parts), []).faults.map((fault) => fault.path));
    const config = accepted((parts) => inResolved(resolved(parts, NAME)));
    // An invalid value is refused deeper down, so some property of the list may not be found accepted; no other one may be.
    expect(text.filter((property) => !listed.includes(property))).toEqual([]);
    expect(config.filter((property) => ![...listed, ...only].includes(property))).toEqual([]);
  });
  const inner = (property: string): readonly string[] => {
    const Forms = z.object({ items: z.object({ oneOf: z.array(Definition) }) }).or(z.object({ oneOf: z.array(Definition) }));
    const forms = Forms.parse(spec.definitions["service"]?.properties?.[property]);
    const [long] = ("items" in forms ? forms.items.oneOf : forms.oneOf).flatMap((form) => form.properties ?? Object.values(form.patternProperties ?? {}));
    return Object.keys(property === "depends_on" ? (Definition.parse(long).properties ?? {}) : (long ?? {}));
  };
  const ofWeb = (property: string, value: unknown) => resolved({ service: { [property]: value } }, NAME);
  test.each([
    [
      "port",
      inner("ports"),
      ["mode", "protocol", "published", "target"],
      (more: object) => ofWeb("ports", [{ target: 80, published: "8080", protocol: "tcp", ...more }]),
    ],
    [
      "mount",
      inner("volumes"),
      ["read_only", "source", "target", "type", "volume"],
      (more: object) => ofWeb("volumes", [{ type: "volume", source: "data", target: "/data", ...more }]),
    ],
    ["dependency", inner("depends_on"), ["condition", "required"], (more: object) => ofWeb("depends_on", { web: { condition: "service_started", ...more } })],
    [
      "network",
      propertiesOf("network"),
      ["ipam", "name"],
      (more: object) => resolved({ rest: { networks: { default: { name: `${NAME}_default`, ...more } } } }, NAME),
    ],
  ])("a %s as it is resolved has those of the list and no others", (_what, properties, listed, put) => {
    expect(inResolved(put({}))).toEqual([]);
    expect(properties).toEqual(expect.arrayContaining(listed));
    const accepted = properties.filter((property) => VALUES.some((value) => inResolved(put({ [property]: value })).length === 0));
    expect(accepted.filter((property) => !listed.includes(property))).toEqual([]);
  });
});

describe("the variables of a project", () => {
  const using = (text: string) => written({ service: { environment: { VALUE: text } } });
  const place = (text: string, variables: readonly string[]) => checkWrittenProject(using(text), variables).faults.map(({ path }) => path);

  test("are those that the app declares, in braces", () => {
    expect(place(`${variable("OWN")}-${variable("OWN")} and $$HOME`, ["OWN"])).toEqual([]);
    for (const text of [variable("OTHER"), "$OWN", variable("OWN:-x"), variable("OWN:?x"), "$" + "{OWN", `$$${variable("OTHER")}`, "$"])
      expect(place(text, ["OWN"])).toEqual(["services.web.environment.VALUE"]);
  });
  test("are never those that docker reads, not even if the app declares them", () => {
    for (const name of [...DOCKER_VARIABLES, "COMPOSE_FILE", "DOCKER_ANY", "BUILDKIT_HOST"].filter((each) => /^[A-Z]/.test(each)))
      expect(place(`$\{${name}}`, [name])).toEqual(["services.web.environment.VALUE"]);
  });
});

describe("a text", () => {
  test.each([
    ["that is no YAML", "services: [\n"],
    ["that is empty", ""],
    ["with an alias", "services: &a {}\nvolumes: *a\n"],
    ["of two documents", `${written({})}---\n${written({})}`],
    ["that is nested without end", "[".repeat(60_000)],
    ["with a property twice", `${written({})}services: {}\n`],
    ["with the name of the prototype", 'services: {__proto__: {image: "x", restart: unless-stopped, privileged: true}}'],
    ["that hides a part behind a merge", `x: &x {privileged: true}\nservices: {web: {<<: *x, image: "x", restart: unless-stopped}}`],
  ])("%s is refused", (_what, text) => {
    const { project, faults } = checkWrittenProject(text, []);
    expect(project).toBeNull();
    expect(faults.map(({ code }) => code)).toContain(COMPOSE_REFUSED);
  });

  test("of any kind gets an answer, and only what is allowed gets a project", () => {
    const part = fc.oneof(
      fc.string(),
      fc.constantFrom("services:", " web:", "  image: x", "\n", "{", "}", "[", "*a", "&a", "<<", "!!map", variable("A"), "privileged: true", "---"),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const { project, faults } = checkWrittenProject(parts.join(""), []);
        expect((project === null) === faults.length > 0).toBe(true);
      }),
    );
  });
  test("is given to Compose as what has been read, so that another parser reads the same", () => {
    const { project } = checkWrittenProject(written({ service: { environment: { A: "yes", B: "0x10", C: "a: b # c", D: "$$A" } } }), []);
    expect(checkWrittenProject(JSON.stringify(project), [])).toEqual({ project, faults: [] });
  });
});
