// What a Compose project may contain: the one list that the gateway applies to its templates and the agent to what it is told to run. Whatever the list
// does not name is refused, so no project reaches out of its containers: nothing privileged, no network, path, device or variable of the host, no socket of
// the engine, no image that is built there, no volume or network of another project.
//
// A project is checked twice: as it is written, because `include`, `extends` and `env_file` are gone once Compose has resolved them, and as
// `docker compose config --format json` resolves it, because only Compose knows what it reads out of a text.
import { parse } from "yaml";
import { z } from "zod";
import { AppSlug } from "../records/apps/app-spec.ts";

export const COMPOSE_REFUSED = "COMPOSE_REFUSED";

export interface ComposeFault {
  readonly code: typeof COMPOSE_REFUSED;
  /** The path of the refused property: `services.web.privileged`; empty for the text as a whole. */
  readonly path: string;
  readonly message: string;
}

/** What `docker` itself reads from its environment: a project can neither set nor read it. */
export const DOCKER_VARIABLES: readonly string[] = [
  "PATH",
  "HOME",
  "DOCKER_HOST",
  "DOCKER_CONTEXT",
  "DOCKER_CONFIG",
  "DOCKER_CERT_PATH",
  "DOCKER_TLS",
  "DOCKER_TLS_VERIFY",
  "DOCKER_API_VERSION",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "http_proxy",
  "https_proxy",
  "no_proxy",
];
const OF_DOCKER = new Set(DOCKER_VARIABLES);
/** Docker and Compose take each of these for a setting of their own. */
export const isDockerVariable = (name: string): boolean => OF_DOCKER.has(name) || /^(?:DOCKER|COMPOSE|BUILDKIT)_/.test(name);

const TARGET = String.raw`/[\w./-]+`;
const isHarmless = (target: string): boolean => !target.split("/").includes("..") && !target.includes("docker.sock");
const HARMLESS = "must contain neither .. nor the socket of Docker";
const PORT = String.raw`\d{1,5}`;

const WrittenPort = z
  .string()
  .regex(new RegExp(String.raw`^\$\{[A-Z_][A-Z0-9_]*\}:${PORT}(?:/(?:tcp|udp))?$`), "must be a variable in braces and a number, perhaps with /tcp or /udp");
const ResolvedPort = z.strictObject({
  mode: z.literal("ingress").optional(),
  target: z.int().min(1).max(65_535),
  published: z.string().regex(new RegExp(`^${PORT}$`), "must be one number"),
  protocol: z.enum(["tcp", "udp"]),
});
const WrittenMount = z
  .string()
  .regex(new RegExp(`^[a-z0-9]+(?:-[a-z0-9]+)*:${TARGET}(?::ro)?$`), "must mount a named volume as name:/path/in/the/container")
  .refine((mount) => isHarmless(mount.split(":")[1] ?? ""), HARMLESS);
const ResolvedMount = z.strictObject({
  type: z.literal("volume"),
  source: AppSlug,
  target: z
    .string()
    .regex(new RegExp(`^${TARGET}$`))
    .refine(isHarmless, HARMLESS),
  read_only: z.boolean().optional(),
  volume: z.strictObject({}).optional(),
});
const WrittenDuration = z.string().regex(/^\d+(?:s|m)$/, "must be a duration such as 30s");
const ResolvedDuration = z.string().regex(/^(?:\d+[hms])+$/);

const healthcheckWith = (duration: z.ZodString) =>
  z.strictObject({ test: z.tuple([z.literal("CMD")], z.string()), interval: duration, timeout: duration, retries: z.int().min(1).max(50) }).optional();
const dependencyWith = <S extends z.core.$ZodLooseShape>(more: S) =>
  z.record(AppSlug, z.strictObject({ condition: z.enum(["service_started", "service_healthy"]), ...more })).default({});

/** The properties of a service that are the same in both forms. */
const SAME = {
  image: z.string().regex(/^[a-zA-Z0-9][\w./:@-]{0,254}$/, "must be the name of an image"),
  restart: z.literal("unless-stopped"),
  environment: z.record(z.string(), z.string()).default({}),
  user: z
    .string()
    .regex(/^\d+(?::\d+)?$/, "must be a number, perhaps with the number of a group")
    .optional(),
};
const WrittenService = z.strictObject({
  ...SAME,
  command: z.array(z.string()).optional(),
  depends_on: dependencyWith({}),
  healthcheck: healthcheckWith(WrittenDuration),
  ports: z.array(WrittenPort).default([]),
  shm_size: z
    .string()
    .regex(/^\d+[mg]b$/, "must be a size such as 256mb")
    .optional(),
  volumes: z.array(WrittenMount).default([]),
});
const ResolvedService = z.strictObject({
  ...SAME,
  command: z.array(z.string()).nullish(),
  depends_on: dependencyWith({ required: z.literal(true).optional() }),
  healthcheck: healthcheckWith(ResolvedDuration),
  ports: z.array(ResolvedPort).default([]),
  shm_size: z.string().regex(/^\d+$/).optional(),
  volumes: z.array(ResolvedMount).default([]),
  // Compose adds them.
  entrypoint: z.null().optional(),
  networks: z.strictObject({ default: z.null() }).optional(),
});

const WrittenProject = z.strictObject({
  services: z.record(AppSlug, WrittenService).refine((services) => Object.keys(services).length > 0, "must have a service"),
  volumes: z.record(AppSlug, z.strictObject({})).default({}),
});
export type ComposeProject = z.output<typeof WrittenProject>;

/** Its volumes and its network belong to it alone: Compose would use another project's by their names. */
const resolvedProject = (name: string) =>
  z.strictObject({
    name: z.literal(name).optional(),
    services: z.record(AppSlug, ResolvedService),
    networks: z.strictObject({ default: z.strictObject({ name: z.literal(`${name}_default`), ipam: z.strictObject({}).optional() }) }).optional(),
    volumes: z
      .record(AppSlug, z.strictObject({ name: z.string() }))
      .default({})
      .superRefine((volumes, context) => {
        for (const [volume, { name: given }] of Object.entries(volumes))
          if (given !== `${name}_${volume}`) context.addIssue({ code: "custom", path: [volume, "name"], message: "is not a volume of this project" });
      }),
  });

const TOP = new Set<PropertyKey>(Object.keys(WrittenProject.shape));
const OF_SERVICE = new Set<PropertyKey>(Object.keys(WrittenService.shape));
/** Both forms of a project name the same place: the property that is not allowed, or the element of a list. */
const placeOf = (path: readonly PropertyKey[]): string => {
  const [top = "", , property = ""] = path;
  const element = path.findIndex((part) => typeof part === "number");
  const length = !TOP.has(top) ? 1 : top === "services" && path.length > 2 && !OF_SERVICE.has(property) ? 3 : element < 0 ? path.length : element + 1;
  return path.slice(0, length).map(String).join(".");
};

const refusedAt = (path: readonly PropertyKey[], message: string): ComposeFault => ({ code: COMPOSE_REFUSED, path: placeOf(path), message });
const faultsOf = (issue: z.core.$ZodIssue): readonly ComposeFault[] =>
  issue.code === "unrecognized_keys" ? issue.keys.map((key) => refusedAt([...issue.path, key], "is not allowed")) : [refusedAt(issue.path, issue.message)];
const inOrder = (faults: readonly ComposeFault[]): readonly ComposeFault[] =>
  [...new Map(faults.map((fault) => [fault.path, fault] as const).reverse()).values()].sort((one, other) => (one.path < other.path ? -1 : 1));

const VARIABLE = /\$\{([A-Z_][A-Z0-9_]*)\}/g;
/** The variables that the text takes from the environment of the app. */
export const variablesOf = (text: string): ReadonlySet<string> => new Set([...text.replaceAll("$$", "").matchAll(VARIABLE)].map(([, name = ""]) => name));
/** A `$` that is neither `${NAME}` nor escaped: Compose would take it for a form with a default, or for a variable of the host. */
const hasOtherVariables = (text: string): boolean => text.replaceAll("$$", "").replaceAll(VARIABLE, "").includes("$");

type Place = readonly [path: readonly PropertyKey[], value: unknown];
const placesIn = (path: readonly PropertyKey[], value: unknown): readonly Place[] => [
  [path, value],
  ...(typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, each]) => placesIn([...path, Array.isArray(value) ? Number(key) : key], each))
    : []),
];
/** A record of zod leaves this key out without a word. */
const prototypeFaults = (project: unknown): readonly ComposeFault[] =>
  placesIn([], project).flatMap(([path]) => (path.at(-1) === "__proto__" ? [refusedAt(path, "is not allowed")] : []));
const variableFaults = (project: unknown, declared: ReadonlySet<string>): readonly ComposeFault[] =>
  placesIn([], project).flatMap(([path, value]) => {
    if (typeof value !== "string") return [];
    if (hasOtherVariables(value)) return [refusedAt(path, "has a $ that is neither doubled nor followed by a name in braces")];
    return [...variablesOf(value)].filter((name) => !declared.has(name)).map((name) => refusedAt(path, `takes ${name}, which is no variable of the app`));
  });

export interface CheckedProject {
  /** Null if the text has faults. What runs is this and not the text, which another parser may read in another way. */
  readonly project: ComposeProject | null;
  /** Each with its path, in the order of the paths; empty if the project is allowed. */
  readonly faults: readonly ComposeFault[];
}

const refused = (faults: readonly ComposeFault[]): CheckedProject => ({ project: null, faults: inOrder(faults) });

/** Checks a project as it is written. `variables` are those that the app declares; a project takes no others. */
export const checkWrittenProject = (text: string, variables: Iterable<string>): CheckedProject => {
  let written: unknown;
  try {
    written = parse(text, { maxAliasCount: 0, logLevel: "error" });
  } catch (error) {
    return refused([refusedAt([], error instanceof Error ? error.message : String(error))]);
  }
  const { data, error } = WrittenProject.safeParse(written);
  const declared = new Set([...variables].filter((name) => !isDockerVariable(name)));
  const faults = [...(error?.issues.flatMap(faultsOf) ?? []), ...prototypeFaults(written), ...variableFaults(written, declared)];
  return data === undefined || faults.length > 0 ? refused(faults) : { project: data, faults };
};

/** The faults of a project as `docker compose config --format json` resolves it under this name. */
export const resolvedProjectFaults = (resolved: unknown, name: string): readonly ComposeFault[] => {
  const { error } = resolvedProject(name).safeParse(resolved);
  return inOrder([...(error?.issues.flatMap(faultsOf) ?? []), ...prototypeFaults(resolved)]);
};
