// What the real `docker compose config` makes of projects: the catalogue stays allowed once it is resolved, and the ways out that Compose knows stay refused.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { environmentOf } from "../../agent-sim/host/host.ts";
import { AppId } from "../../protocol/index.ts";
import { COMPOSE_REFUSED, checkWrittenProject, resolvedProjectFaults } from "../../protocol/kit/compose-project.ts";
import { type CatalogueEntry, loadAppCatalogue } from "../../server/features/apps/index.ts";
import { ESCAPES, written } from "../compose/escapes.ts";
import { prepareDockerClient } from "../kit/docker/engine.ts";

const NAME = "app_01x";
const catalogue = loadAppCatalogue("server/catalogue");
let folder: string;
let client: Readonly<Record<string, string>>;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "compose-config-"));
  client = prepareDockerClient(folder);
  writeFileSync(join(folder, "variables"), "OF_A_FILE=1\n");
  writeFileSync(join(folder, "other.yaml"), "services: {other: {image: busybox, privileged: true}}\n");
});
afterAll(() => rmSync(folder, { recursive: true }));

const WORDS = ["compose", "--project-name", NAME, "--file", "-", "config", "--format", "json"];
const resolve = (input: string, variables: Readonly<Record<string, string>>): unknown =>
  JSON.parse(
    execFileSync("docker", ["compose", "--project-name", NAME, "--file", "-", "config", "--format", "json"], {
      cwd: folder,
      env: { ...client, ...variables },
      input,
      encoding: "utf8",
    }),
  );

/** The variables of an app as its defaults make them. */
const variablesOf = ({ template, spec, checkConfig }: CatalogueEntry): Readonly<Record<string, string>> => {
  const required = Object.fromEntries(template.configSchema.required.map((name) => [name, name === "email" ? "ada@example.com" : "example.org"]));
  const app = {
    appId: AppId.parse(`app_${"0".repeat(26)}`),
    deploymentId: null,
    name: "x",
    template: template.id,
    templateVersion: "1",
    revision: 1,
    state: "running",
    keepVolumes: false,
    secretsVersion: 1,
  } as const;
  const secrets = Object.fromEntries(template.secrets.map(({ name }) => [name, "a $ecret '\\"]));
  return environmentOf({ ...app, spec, config: checkConfig(required).config }, secrets);
};

const inContainers = catalogue.entries.flatMap((found) => (found.spec.kind === "compose" ? [[found.template.id, found.spec.compose, found] as const] : []));
test("the catalogue has what is resolved here", () => expect(inContainers.length).toBeGreaterThanOrEqual(56));
test.each(inContainers)("%s is allowed as Compose resolves it, with the values that it is given", (_id, text, found) => {
  const { project } = checkWrittenProject(text, Object.keys(found.spec.environment));
  const resolved = resolve(JSON.stringify(project), variablesOf(found));
  expect(resolvedProjectFaults(resolved, NAME)).toEqual([]);
  expect(Object.keys((resolved as { services: object }).services).sort()).toEqual(Object.keys(project?.services ?? {}).sort()); // as: it has just been checked
});

test("each way out that Compose leaves visible is refused at the same place, or by Compose itself", () => {
  const answers = ESCAPES.filter(({ resolvedAway }) => !resolvedAway).map((wayOut) => {
    const { status, stdout } = spawnSync("docker", WORDS, { cwd: folder, env: client, input: written(wayOut), encoding: "utf8" });
    const places = status === 0 ? resolvedProjectFaults(JSON.parse(stdout), NAME).map(({ code, path }) => `${code} ${path}`) : null;
    return { way: wayOut.way, isRefused: places?.includes(`${COMPOSE_REFUSED} ${wayOut.path}`) ?? null };
  });
  expect(answers.filter(({ isRefused }) => isRefused === false)).toEqual([]);
  // A version of Compose knows most of them.
  expect(answers.filter(({ isRefused }) => isRefused).length).toBeGreaterThan(35);
});
test("a value that would be another form of a port is refused once it is resolved", () => {
  const text = written({ service: { ports: [`$\{${"PORT"}}:80`] } });
  const { project } = checkWrittenProject(text, ["PORT"]);
  const places = (port: string) => resolvedProjectFaults(resolve(JSON.stringify(project), { PORT: port }), NAME).map(({ path }) => path);
  expect(places("8080")).toEqual([]);
  for (const port of ["127.0.0.1:8080", "8080-8090", "[::1]:8080"]) expect(places(port)).toEqual(["services.web.ports.0"]);
});
