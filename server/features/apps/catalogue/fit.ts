// Checks that the parts of a template fit each other: what the spec and the Compose file refer to exists, and nothing is left over.
import { type ComposeProject, variablesOf } from "../../../../protocol/kit/compose-project.ts";
import type { SpecInFile, TemplateFile } from "./template-file.ts";

export interface Fault {
  readonly code?: string;
  readonly path: string;
  readonly message: string;
}

const fault = (path: string, message: string): Fault => ({ path, message });
const when = (isWrong: boolean, path: string, message: string): readonly Fault[] => (isWrong ? [fault(path, message)] : []);
const twice = (names: readonly string[]): readonly string[] => [...new Set(names.filter((name, at) => names.indexOf(name) !== at))];

/** The properties of the configuration and the secrets that the environment uses. */
const sourcesOf = ({ environment }: SpecInFile) => {
  const sources = Object.values(environment);
  return {
    configs: new Set(sources.flatMap((source) => ("config" in source ? [source.config] : []))),
    secrets: new Set(sources.flatMap((source) => ("secret" in source ? [source.secret] : []))),
  };
};

const environmentFaults = ({ spec, configSchema, secrets }: TemplateFile): readonly Fault[] => {
  const names = new Set(secrets.map(({ name }) => name));
  return Object.entries(spec.environment).flatMap(([variable, source]) => {
    const path = `spec.environment.${variable}`;
    if ("config" in source) return when(!Object.hasOwn(configSchema.properties, source.config), path, `${source.config} is no property of the configuration`);
    return "secret" in source ? when(!names.has(source.secret), path, `${source.secret} is no secret`) : [];
  });
};

const unusedFaults = ({ spec, configSchema, secrets }: TemplateFile): readonly Fault[] => {
  const used = sourcesOf(spec);
  const ports = new Set(spec.ports.map(({ config }) => config));
  return [
    ...Object.keys(configSchema.properties).flatMap((name) =>
      when(!used.configs.has(name) && !ports.has(name), `configSchema.properties.${name}`, "is used by no variable and no port"),
    ),
    ...secrets.flatMap(({ name }, at) => when(!used.secrets.has(name), `secrets.${at}`, `${name} is used by no variable`)),
  ];
};

const portFaults = ({ spec, configSchema }: TemplateFile): readonly Fault[] =>
  spec.ports.flatMap(({ config, target, variable }, at) => {
    const property = configSchema.properties[config];
    const isPort = property?.type === "integer" && property.default !== undefined && (property.minimum ?? 0) >= 1 && (property.maximum ?? 65_536) <= 65_535;
    return [
      ...when(!isPort, `spec.ports.${at}.config`, `${config} must be an integer property from 1 to 65535 with a default`),
      ...when(spec.kind === "compose" && target === undefined, `spec.ports.${at}.target`, "is missing"),
      ...when(spec.kind === "process" && target !== undefined, `spec.ports.${at}.target`, "is for containers only"),
      ...when(spec.kind === "compose" && variable !== undefined, `spec.ports.${at}.variable`, "is for processes only: the Compose file uses the environment"),
    ];
  });

const nameFaults = ({ spec, secrets }: TemplateFile): readonly Fault[] => {
  const port = spec.health.http?.port;
  const variables = [
    ...Object.keys(spec.environment),
    ...[...spec.ports, ...spec.volumes].flatMap(({ variable }) => (variable === undefined ? [] : [variable])),
  ];
  return [
    ...twice(variables).map((name) => fault("spec.environment", `${name} is set twice`)),
    ...twice(spec.ports.map(({ name }) => name)).map((name) => fault("spec.ports", `two ports have the name ${name}`)),
    ...twice(spec.volumes.map(({ name }) => name)).map((name) => fault("spec.volumes", `two volumes have the name ${name}`)),
    ...twice(secrets.map(({ name }) => name)).map((name) => fault("secrets", `two secrets have the name ${name}`)),
    ...when(
      port !== undefined && !spec.ports.some(({ name, protocol }) => name === port && protocol === "tcp"),
      "spec.health.http.port",
      `${port} is no TCP port of the app`,
    ),
  ];
};

export const templateFaults = (file: TemplateFile): readonly Fault[] => [
  ...environmentFaults(file),
  ...unusedFaults(file),
  ...portFaults(file),
  ...nameFaults(file),
  ...when(file.spec.kind === "process" && file.images.length > 0, "images", "a process has none"),
];

/** Both sides must name the same; the faults name what only one has. */
const sameNames = (path: string, found: Iterable<string>, expected: Iterable<string>, source: string): readonly Fault[] => {
  const [there, wanted] = [new Set(found), new Set(expected)];
  return [
    ...[...there].filter((name) => !wanted.has(name)).map((name) => fault(path, `${name} is not in ${source}`)),
    ...[...wanted].filter((name) => !there.has(name)).map((name) => fault(path, `${name} of ${source} is missing`)),
  ];
};

const serviceFaults = ({ services, volumes }: ComposeProject): readonly Fault[] =>
  Object.entries(services).flatMap(([name, { command = [], depends_on, volumes: mounts }]) => [
    ...when(command.includes("-c") && variablesOf(command.join(" ")).size > 0, `services.${name}.command`, "must not put a variable into the text of a shell"),
    ...Object.entries(depends_on).flatMap(([other, { condition }]) => {
      const path = `services.${name}.depends_on.${other}`;
      const service = services[other];
      if (service === undefined) return [fault(path, "there is no such service")];
      return when(condition === "service_healthy" && service.healthcheck === undefined, path, "the service has no health check");
    }),
    ...mounts.flatMap((mount, at) => {
      const [volume = ""] = mount.split(":");
      return when(!Object.hasOwn(volumes, volume), `services.${name}.volumes.${at}`, `there is no volume ${volume}`);
    }),
  ]);

const publishedPorts = ({ services }: ComposeProject): readonly string[] =>
  Object.values(services).flatMap(({ ports }) => ports.map((port) => (/\/(?:tcp|udp)$/.test(port) ? port : `${port}/tcp`)));

/** Every port as the Compose file publishes it, with the variable that holds its number. */
const declaredPorts = ({ environment, ports }: SpecInFile): readonly string[] =>
  ports.map(({ config, target, protocol }) => {
    const [variable = ""] = Object.entries(environment).find(([, source]) => "config" in source && source.config === config) ?? [];
    return `\${${variable}}:${target}/${protocol}`;
  });

/** Faults of a Compose file, which is allowed as such, against the app.json beside it. */
export const composeFaults = (compose: ComposeProject, { spec, images }: TemplateFile): readonly Fault[] => {
  const services = Object.values(compose.services);
  return [
    ...serviceFaults(compose),
    ...sameNames("services", new Set(services.map(({ image }) => image)), images, "images of app.json"),
    ...sameNames("services", publishedPorts(compose), declaredPorts(spec), "spec.ports of app.json"),
    ...sameNames(
      "volumes",
      Object.keys(compose.volumes),
      spec.volumes.map(({ name }) => name),
      "spec.volumes of app.json",
    ),
    ...sameNames("", variablesOf(JSON.stringify(compose)), Object.keys(spec.environment), "spec.environment of app.json"),
  ];
};
