// The catalogue of applications: every entry is valid by our rules and by others' validators, and each rule refuses what breaks it.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { type AppConfig, AppSpec } from "../../../protocol/index.ts";
import { type CatalogueEntry, completeSecrets, loadAppCatalogue } from "../../../server/features/apps/index.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const FOLDER = join(ROOT, "server/catalogue");
const catalogue = loadAppCatalogue(FOLDER);
const entry = (id: string): CatalogueEntry => catalogue.find(id) ?? expect.fail(`there is no ${id}`);

const jsonSchema = new Ajv2020({ allErrors: true });
formats.default(jsonSchema);
const { $schema: _, ...composeSchema } = JSON.parse(readFileSync(join(ROOT, "test/features/apps/catalogue/compose-spec.json"), "utf8"));
const composeAjv = new Ajv({ strict: false });
formats.default(composeAjv);
const fitsCompose = composeAjv.compile(composeSchema);

describe("the catalogue", () => {
  test("has at least thirty applications in containers, and five that need none", () => {
    const ids = (kind: string) => catalogue.entries.filter(({ template }) => template.kind === kind).map(({ template }) => template.id);
    expect(ids("compose").length).toBeGreaterThanOrEqual(30);
    expect(ids("process")).toEqual(["feed-reader", "key-value", "paste-bin", "static-site", "status-page"]);
  });

  test("is sorted by id, and finds each entry by it", () => {
    const ids = catalogue.entries.map(({ template }) => template.id);
    expect(ids).toEqual([...ids].sort());
    for (const id of ids) expect(entry(id).template.id).toBe(id);
    expect(catalogue.find("unknown")).toBeUndefined();
  });

  test("gives each port that an application publishes a default of its own", () => {
    const ports = catalogue.entries.flatMap(({ template }) => [...new Map(template.ports.map(({ config, default: port }) => [config, port])).values()]);
    expect(ports.length).toBeGreaterThan(60);
    expect(new Set(ports).size).toBe(ports.length);
  });
});

/** What another validator says of this configuration. */
const agrees = ({ template }: CatalogueEntry, config: AppConfig): boolean => jsonSchema.compile(template.configSchema)(config);
/** A value for each required setting. */
const required = (found: CatalogueEntry): AppConfig =>
  Object.fromEntries(found.template.configSchema.required.map((name) => [name, name === "email" ? "ada@example.com" : "example.org"]));

describe.each(catalogue.entries.map((found) => [found.template.id, found] as const))("%s", (id, found) => {
  test("has a runtime spec that agents accept", () => {
    expect(AppSpec.safeParse(found.spec).error?.issues).toBeUndefined();
  });

  test("has a configuration schema that is JSON Schema, and defaults that fit it", () => {
    expect(jsonSchema.validateSchema(found.template.configSchema), JSON.stringify(jsonSchema.errors)).toBe(true);
    const { config, faults } = found.checkConfig(required(found));
    expect(faults).toEqual([]);
    expect(Object.keys(config).sort()).toEqual(Object.keys(found.template.configSchema.properties).sort());
    expect(agrees(found, config)).toBe(true);
  });

  test("has a Compose file that fits the Compose Specification, with pinned images and nothing of the host", () => {
    if (found.spec.kind === "process") return expect(found.template.images).toEqual([]);
    const compose = parse(found.spec.compose);
    expect(fitsCompose(compose), JSON.stringify(fitsCompose.errors)).toBe(true);
    expect(found.template.images).not.toEqual([]);
    for (const image of found.template.images) expect(image).toMatch(/:[^@]*\d/);
    expect(found.spec.compose).not.toMatch(/privileged|network_mode|docker\.sock|\.\.|:latest|^\s+- [./~][^:]*:/m);
    expect(readFileSync(join(FOLDER, id, "compose.yaml"), "utf8")).toBe(found.spec.compose);
  });
});

const scratch = mkdtempSync(join(tmpdir(), "catalogue-"));
afterAll(() => rmSync(scratch, { recursive: true }));
let made = 0;

interface Files {
  // biome-ignore lint/suspicious/noExplicitAny: breaks files on purpose
  readonly app: any;
  // biome-ignore lint/suspicious/noExplicitAny: breaks files on purpose
  readonly compose: any;
}
/** The faults of a catalogue with this one application, broken. */
const faultsOf = (id: string, breakIt: (files: Files) => unknown, folderName = id): string => {
  const folder = join(scratch, `${++made}`);
  const target = join(folder, folderName);
  cpSync(join(FOLDER, id), target, { recursive: true });
  const app = JSON.parse(readFileSync(join(target, "app.json"), "utf8"));
  const compose = app.spec.kind === "compose" ? parse(readFileSync(join(target, "compose.yaml"), "utf8")) : undefined;
  breakIt({ app, compose });
  writeFileSync(join(target, "app.json"), JSON.stringify(app));
  if (compose !== undefined) writeFileSync(join(target, "compose.yaml"), stringify(compose));
  try {
    loadAppCatalogue(folder);
    return "";
  } catch (error) {
    return String(error);
  }
};
const variable = (name: string): string => `$\{${name}}`;
const service = ({ compose }: Files) => compose.services.miniflux;

describe("the validator", () => {
  test("accepts what it is given before it is broken", () => {
    expect(faultsOf("miniflux", () => undefined)).toBe("");
    expect(faultsOf("key-value", () => undefined)).toBe("");
  });

  test.each<[rule: string, fault: string, breakIt: (files: Files) => unknown]>([
    ["a field that it does not know", 'miniflux/app.json: Unrecognized key: "extra"', ({ app }) => (app.extra = 1)],
    ["a missing field", "miniflux/app.json: license: ", ({ app }) => delete app.license],
    ["an unknown category", "miniflux/app.json: categories.0: ", ({ app }) => (app.categories = ["games"])],
    ["an unknown plan", "miniflux/app.json: minPlan: ", ({ app }) => (app.minPlan = "gold")],
    ["an image without a tag", "miniflux/app.json: images.0: must be an image with a tag", ({ app }) => (app.images[0] = "miniflux/miniflux")],
    ["a tag that moves", "miniflux/app.json: images.0: must have a tag that names a version", ({ app }) => (app.images[0] = "miniflux/miniflux:latest")],
    ["a digest that is none", "miniflux/app.json: images.0: ", ({ app }) => (app.images[0] += "@sha256:abc")],
    [
      "a default beyond its maximum",
      "miniflux/app.json: configSchema.properties.port.default: ",
      ({ app }) => (app.configSchema.properties.port.default = 70_000),
    ],
    ["a pattern that is none", "miniflux/app.json: ", ({ app }) => (app.configSchema.properties.adminName.pattern = "(")],
    ["a nested configuration", "miniflux/app.json: configSchema.properties.deep.type: ", ({ app }) => (app.configSchema.properties.deep = { type: "object" })],
    ["a property without a title", "miniflux/app.json: configSchema.properties.port.title: ", ({ app }) => delete app.configSchema.properties.port.title],
    [
      "a property without default",
      "configSchema.properties.adminName: must have a default or be required",
      ({ app }) => delete app.configSchema.properties.adminName.default,
    ],
    ["a required property that is none", "configSchema.properties.ghost: is required but is no property", ({ app }) => (app.configSchema.required = ["ghost"])],
    ["properties beyond the schema", "miniflux/app.json: configSchema.additionalProperties: ", ({ app }) => (app.configSchema.additionalProperties = true)],
    ["a property that nothing uses", "configSchema.properties.adminName: is used by no variable", ({ app }) => delete app.spec.environment.ADMIN_USERNAME],
    [
      "a variable from a property that is none",
      "spec.environment.HTTP_PORT: ghost is no property",
      ({ app }) => (app.spec.environment.HTTP_PORT.config = "ghost"),
    ],
    [
      "a variable from a secret that is none",
      "spec.environment.DB_PASSWORD: GHOST is no secret",
      ({ app }) => (app.spec.environment.DB_PASSWORD.secret = "GHOST"),
    ],
    ["a secret that nothing uses", "secrets.2: GHOST is used by no variable", ({ app }) => app.secrets.push({ name: "GHOST", title: "Ghost" })],
    ["two secrets of one name", "secrets: two secrets have the name DB_PASSWORD", ({ app }) => app.secrets.push(app.secrets[1])],
    ["a port that is no number", "spec.ports.0.config: adminName must be an integer property", ({ app }) => (app.spec.ports[0].config = "adminName")],
    ["a port of a container without a target", "spec.ports.0.target: is missing", ({ app }) => delete app.spec.ports[0].target],
    ["a health check of a port that is none", "spec.health.http.port: ghost is no TCP port", ({ app }) => (app.spec.health.http.port = "ghost")],
    ["two ports of one name", "spec.ports: two ports have the name http", ({ app }) => app.spec.ports.push(app.spec.ports[0])],
    ["an image that compose.yaml does not have", "miniflux/compose.yaml: services: redis:7.4.6 of images", ({ app }) => app.images.push("redis:7.4.6")],
    ["an image that app.json does not have", "services: redis:7.4.6 is not in images", (files) => (service(files).image = "redis:7.4.6")],
    [
      "a variable that the spec does not set",
      "services.miniflux.environment.X: takes GHOST, which is no variable of the app",
      (files) => (service(files).environment.X = variable("GHOST")),
    ],
    [
      "a variable that compose.yaml does not use",
      "ADMIN_USERNAME of spec.environment of app.json is missing",
      (files) => delete service(files).environment.ADMIN_USERNAME,
    ],
    ["a variable with a default of its own", "has a $ that is neither", (files) => (service(files).environment.X = variable("HOME:-/root"))],
    ["a variable without braces", "has a $ that is neither", (files) => (service(files).environment.X = "$HOME")],
    ["a variable in the text of a shell", "services.miniflux.command: must not put", (files) => (service(files).command = ["sh", "-c", variable("HTTP_PORT")])],
    ["a command that is a text", "services.miniflux.command: ", (files) => (service(files).command = "sh -c true")],
    ["a privileged container", "services.miniflux.privileged: is not allowed (COMPOSE_REFUSED)", (files) => (service(files).privileged = true)],
    ["the network of the host", "services.miniflux.network_mode: is not allowed (COMPOSE_REFUSED)", (files) => (service(files).network_mode = "host")],
    [
      "devices and capabilities",
      "services.miniflux.cap_add: is not allowed (COMPOSE_REFUSED)\n  miniflux/compose.yaml: services.miniflux.devices: is not allowed (COMPOSE_REFUSED)",
      (files) => Object.assign(service(files), { cap_add: ["SYS_ADMIN"], devices: ["/dev/kmsg"] }),
    ],
    ["the socket of Docker", "services.miniflux.volumes.0: ", (files) => (service(files).volumes = ["/var/run/docker.sock:/var/run/docker.sock"])],
    [
      "a socket of Docker in a volume",
      "must contain neither .. nor the socket of Docker",
      (files) => (service(files).volumes = ["database:/var/run/docker.sock"]),
    ],
    ["a path of the host", "services.miniflux.volumes.0: must mount a named volume", (files) => (service(files).volumes = ["/etc:/etc"])],
    ["a path relative to the folder", "services.miniflux.volumes.0: must mount a named volume", (files) => (service(files).volumes = ["./data:/data"])],
    ["a path upwards", "services.miniflux.volumes.0: must contain neither ..", (files) => (service(files).volumes = ["database:/data/../../etc"])],
    [
      "a volume of the host by its long form",
      "services.miniflux.volumes.0: ",
      (files) => (service(files).volumes = [{ type: "bind", source: "/", target: "/host" }]),
    ],
    ["a volume with a driver", "volumes.database.driver_opts: is not allowed", ({ compose }) => (compose.volumes.database = { driver_opts: { device: "/" } })],
    ["a volume that is none", "services.miniflux.volumes.0: there is no volume ghost", (files) => (service(files).volumes = ["ghost:/data"])],
    ["a volume that app.json does not have", "volumes: ghost is not in spec.volumes", ({ compose }) => (compose.volumes.ghost = {})],
    ["a fixed port", "services.miniflux.ports.0: ", (files) => (service(files).ports = ["8080:8080"])],
    [
      "a port of another number",
      `services: ${variable("HTTP_PORT")}:8081/tcp is not in spec.ports`,
      (files) => (service(files).ports = [`${variable("HTTP_PORT")}:8081`]),
    ],
    ["an image that is built", "services.miniflux.build: is not allowed (COMPOSE_REFUSED)", (files) => (service(files).build = ".")],
    ["files of the host", "compose.yaml: configs: is not allowed", ({ compose }) => (compose.configs = { passwd: { file: "/etc/passwd" } })],
    ["an included file", "compose.yaml: include: is not allowed", ({ compose }) => (compose.include = ["other.yaml"])],
    [
      "a dependency that is none",
      "depends_on.ghost: there is no such service",
      (files) => (service(files).depends_on.ghost = { condition: "service_started" }),
    ],
    ["a health that nothing checks", "depends_on.database: the service has no health check", ({ compose }) => delete compose.services.database.healthcheck],
    ["no services", "miniflux/compose.yaml: services: must have a service", ({ compose }) => (compose.services = {})],
  ])("refuses %s", (_rule, fault, breakIt) => {
    expect(faultsOf("miniflux", breakIt)).toContain(fault);
  });

  test("every process of the catalogue is a program that comes with the agent", () => {
    const programs = catalogue.entries.flatMap(({ spec }) => (spec.kind === "process" ? [spec.program] : []));
    expect(programs.length).toBeGreaterThanOrEqual(5);
    expect(programs.filter((program) => !existsSync(join(ROOT, "agent-sim/programs", program, "main.mjs")))).toEqual([]);
  });

  test.each<[rule: string, fault: string, breakIt: (files: Files) => unknown]>([
    ["images", "key-value/app.json: images: a process has none", ({ app }) => (app.images = ["redis:7.4.6"])],
    ["a target of a port", "spec.ports.0.target: is for containers only", ({ app }) => (app.spec.ports[0].target = 80)],
    ["a variable that is set twice", "spec.environment: PORT is set twice", ({ app }) => (app.spec.environment.PORT = { config: "port" })],
    ["a program with a path", "key-value/app.json: spec.program: ", ({ app }) => (app.spec.program = "../key-value")],
    ["a Compose file in the spec", "key-value/app.json: spec", ({ app }) => (app.spec.compose = "services: {}")],
  ])("refuses a process with %s", (_rule, fault, breakIt) => {
    expect(faultsOf("key-value", breakIt)).toContain(fault);
  });

  test("refuses a folder that is no id, a missing file, text that is no YAML or JSON and a port that two applications have, and names all of them", () => {
    expect(faultsOf("key-value", () => undefined, "Key_Value")).toContain("Key_Value: ");
    const folder = join(scratch, "several");
    for (const [file, text] of [
      ["absent/.keep", ""],
      ["broken/app.json", readFileSync(join(FOLDER, "miniflux/app.json"), "utf8")],
      ["broken/compose.yaml", "services: [\n"],
      ["no-json/app.json", "{"],
      ["one/app.json", readFileSync(join(FOLDER, "key-value/app.json"), "utf8")],
      ["two/app.json", readFileSync(join(FOLDER, "key-value/app.json"), "utf8")],
    ] as const) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), text);
    }
    expect(() => loadAppCatalogue(folder)).toThrow(
      expect.objectContaining({
        faults: [
          expect.stringMatching(/^absent\/app\.json: ENOENT/),
          expect.stringMatching(/^broken\/compose\.yaml: Flow sequence/),
          expect.stringMatching(/^no-json\/app\.json: .*JSON/),
          "two/app.json: configSchema.properties.port.default: 8701 is the default of one/app.json already",
        ],
      }),
    );
  });

  test("others' validators refuse what is no JSON Schema and no Compose file", () => {
    expect(jsonSchema.validateSchema({ type: "object", properties: { port: { type: "number", minimum: "1" } } })).toBe(false);
    expect(fitsCompose({ services: { web: { image: 5 } } })).toBe(false);
    expect(fitsCompose({ services: { web: { imago: "x" } } })).toBe(false);
  });
});

describe("a configuration", () => {
  test("gets the defaults of the settings that it does not name", () => {
    expect(entry("miniflux").checkConfig({ pollMinutes: 5 })).toEqual({ config: { port: 8_484, adminName: "admin", pollMinutes: 5 }, faults: [] });
  });

  test("has a fault for each setting that does not fit, with its path", () => {
    const { faults } = entry("matrix-conduit").checkConfig({ port: 70_000, federation: "yes", ghost: 1 });
    expect(faults.map(({ path, code }) => [path, code]).sort()).toEqual([
      ["federation", "invalid_type"],
      ["ghost", "unrecognized_keys"],
      ["port", "too_big"],
      ["serverName", "invalid_type"],
    ]);
    expect(entry("minio").checkConfig({ port: 9_001 }).faults).toEqual([{ path: "consolePort", code: "port_taken", message: "is the number of port already" }]);
  });

  test("is accepted exactly when another validator of JSON Schema accepts it", () => {
    const value = fc.oneof(
      fc.integer({ min: -5, max: 70_000 }),
      fc.double(),
      fc.boolean(),
      fc.constantFrom("", "a", "example.org", "http://localhost", "info", "15d"),
      fc.constant(null),
    );
    const candidates = catalogue.entries.filter(({ template }) => new Set(template.ports.map(({ config }) => config)).size === 1);
    const settings = fc
      .constantFrom(...candidates)
      .chain((found) =>
        fc.tuple(fc.constant(found), fc.dictionary(fc.constantFrom("ghost", ...Object.keys(found.template.configSchema.properties)), value, { maxKeys: 3 })),
      );
    fc.assert(
      fc.property(settings, ([found, given]) => {
        const config = { ...required(found), ...given } as AppConfig;
        expect([found.template.id, config, found.checkConfig(config).faults.length === 0]).toEqual([found.template.id, config, agrees(found, config)]);
      }),
    );
  });

  test("is not changed by the check", () => {
    const given = Object.freeze({ pollMinutes: 5 });
    expect(entry("miniflux").checkConfig(given).config).not.toBe(given);
  });
});

describe("secrets", () => {
  const { template } = entry("bookstack");

  test("are made when the template allows it, missing when it does not, and kept when given", () => {
    const { values, faults } = completeSecrets(template, new Map());
    expect([...values.keys()]).toEqual(["DB_PASSWORD"]);
    expect(values.get("DB_PASSWORD")).toMatch(/^[\w-]{43}$/);
    expect(faults).toEqual([{ path: "APP_KEY", code: "required", message: "is required" }]);
    const given = new Map([
      ["APP_KEY", "key"],
      ["DB_PASSWORD", "own"],
    ]);
    expect(completeSecrets(template, given)).toEqual({ values: given, faults: [] });
  });

  test("that the application does not have are refused", () => {
    const { faults } = completeSecrets(template, new Map([["GHOST", "x"]]));
    expect(faults).toContainEqual({ path: "GHOST", code: "unknown", message: "is no secret of this application" });
  });
});
