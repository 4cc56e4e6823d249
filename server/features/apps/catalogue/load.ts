// Reads the catalogue of applications: one folder each, with app.json and, if it consists of containers, compose.yaml. One fault anywhere refuses all,
// so a node serves the whole catalogue or does not start.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { AppSlug, type AppSpec, type AppTemplate, type ConfigSchema } from "../../../../protocol/index.ts";
import { checkWrittenProject } from "../../../../protocol/kit/compose-project.ts";
import { type CheckConfig, createCheckConfig } from "./check-config.ts";
import { composeFaults, type Fault, templateFaults } from "./fit.ts";
import { TemplateFile } from "./template-file.ts";

/** A template without what depends on the tenant. */
export type TemplateFacts = Omit<AppTemplate, "available" | "requiredPlan" | "fits" | "installed" | "installedCount">;

export interface CatalogueEntry {
  readonly template: TemplateFacts;
  readonly spec: AppSpec;
  readonly checkConfig: CheckConfig;
}

export interface AppCatalogue {
  /** By id. */
  readonly entries: readonly CatalogueEntry[];
  find(templateId: string): CatalogueEntry | undefined;
}

export class CatalogueError extends Error {
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    super(`the catalogue of applications is not valid:\n${faults.map((fault) => `  ${fault}`).join("\n")}`);
    this.faults = faults;
  }
}

const faultsOf = (error: unknown): readonly Fault[] => {
  if (error instanceof z.ZodError) return error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
  return [{ path: "", message: error instanceof Error ? error.message : String(error) }];
};

const invalid = (file: string, faults: readonly Fault[]): CatalogueError =>
  new CatalogueError(
    faults.map(({ code, path, message }) => [file, path, code === undefined ? message : `${message} (${code})`].filter((part) => part !== "").join(": ")),
  );

const refuse = (file: string, faults: readonly Fault[]): void => {
  if (faults.length > 0) throw invalid(file, faults);
};

const within = <T>(file: string, make: () => T): T => {
  try {
    return make();
  } catch (error) {
    throw invalid(file, faultsOf(error));
  }
};

const readCompose = (folder: string, id: string, file: TemplateFile): string => {
  const name = `${id}/compose.yaml`;
  const text = within(name, () => readFileSync(join(folder, name), "utf8"));
  const { project, faults } = checkWrittenProject(text, Object.keys(file.spec.environment));
  refuse(name, project === null ? faults : composeFaults(project, file));
  return text;
};

const specOf = (folder: string, id: string, file: TemplateFile): AppSpec =>
  file.spec.kind === "compose" ? { ...file.spec, compose: readCompose(folder, id, file) } : file.spec;

const portsOf = ({ spec, configSchema }: TemplateFile): TemplateFacts["ports"] =>
  spec.ports.map(({ name, protocol, config }) => ({ name, protocol, config, default: Number(configSchema.properties[config]?.default) }));

/** A default that does not fit its own property. */
const defaultFaults = ({ configSchema }: TemplateFile, check: (schema: ConfigSchema) => CheckConfig): readonly Fault[] => {
  const standard = Object.entries(configSchema.properties).flatMap(([name, property]) => (property.default === undefined ? [] : [[name, property.default]]));
  const { faults } = check({ ...configSchema, required: [] })(Object.fromEntries(standard));
  return faults.map(({ path, message }) => ({ path: `configSchema.properties.${path}.default`, message }));
};

const readEntry = (folder: string, id: string): CatalogueEntry => {
  const name = `${id}/app.json`;
  within(id, () => AppSlug.parse(id));
  const file = within(name, () => TemplateFile.parse(JSON.parse(readFileSync(join(folder, name), "utf8"))));
  refuse(name, templateFaults(file));
  const { spec, ...facts } = file;
  const settings = spec.ports.map(({ config }) => config);
  const check = (schema: ConfigSchema): CheckConfig => createCheckConfig(schema, settings);
  const checkConfig = within(name, () => check(file.configSchema));
  refuse(name, defaultFaults(file, check));
  return {
    template: {
      ...facts,
      id,
      kind: spec.kind,
      ports: portsOf(file),
      volumes: spec.volumes.map((volume) => volume.name),
      healthPath: spec.health.http?.path ?? null,
    },
    spec: specOf(folder, id, file),
    checkConfig,
  };
};

/** Two applications can run on one device as they are, so no default port occurs twice. */
const sharedPorts = (entries: readonly CatalogueEntry[]): readonly string[] => {
  const owners = new Map<number, string>();
  return entries.flatMap(({ template }) => {
    const numbers = new Map(template.ports.map(({ config, default: number }) => [config, number]));
    return [...numbers].flatMap(([config, number]) => {
      const owner = owners.get(number);
      owners.set(number, `${template.id}/app.json`);
      return owner === undefined ? [] : [`${template.id}/app.json: configSchema.properties.${config}.default: ${number} is the default of ${owner} already`];
    });
  });
};

export const createAppCatalogue = (entries: readonly CatalogueEntry[]): AppCatalogue => {
  const byId = new Map(entries.map((entry) => [entry.template.id, entry]));
  return { entries: [...byId.keys()].sort().flatMap((id) => byId.get(id) ?? []), find: (templateId) => byId.get(templateId) };
};

/** Throws CatalogueError with every fault that it finds. */
export const loadAppCatalogue = (folder: string): AppCatalogue => {
  const faults: string[] = [];
  const entries = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => {
      try {
        return [readEntry(folder, name)];
      } catch (error) {
        if (!(error instanceof CatalogueError)) throw error;
        faults.push(...error.faults);
        return [];
      }
    });
  faults.push(...sharedPorts(entries));
  if (faults.length > 0) throw new CatalogueError(faults);
  return createAppCatalogue(entries);
};
