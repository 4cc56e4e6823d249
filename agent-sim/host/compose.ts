// The host that runs apps as Compose projects with the `docker compose` of this machine. It has been tested with a recorded double of that
// program only and has not been run against a real engine. Records, changes and supervision are those of the process host.
import { execFile, spawn } from "node:child_process";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { masking } from "../../protocol/kit/log-text.ts";
import type { DesiredApp } from "../../protocol/records/app-spec.ts";
import { environmentOf, type Host, HostFailure, refuse, type Secrets } from "./host.ts";
import type { AppFolder } from "./processes/app-folder.ts";
import { type AppProcess, fetchSecrets, refusePortsOfOthers } from "./processes/app-process.ts";
import { readText, replaceFile } from "./processes/disk.ts";
import { checkPorts } from "./processes/ports.ts";
import { openProcessHost } from "./processes/process-host.ts";
import type { AppContext, ProcessHostOptions } from "./processes/settings.ts";

const FILE = "compose.yaml";
const VARIABLES = "variables.env";
const LOOK_MS = 5_000;
const REPORT_LINES = 20;
const MAX_OUTPUT_BYTES = 16_777_216;
/** Beyond the time that the app itself has. */
const GRACE_SECONDS = 120;

export interface ComposeHostOptions extends Omit<ProcessHostOptions, "programs" | "createProcess"> {
  /** The program; default `docker`. */
  readonly docker?: string;
}

/** `docker compose ps --format json`: one object a line, or a list in older versions. */
const Container = z.object({ State: z.string(), Health: z.string().catch("") });
const Line = z.union([z.array(Container), Container.transform((one) => [one])]);

/** Another version of docker may answer in another form. */
const understand = <S extends z.ZodType>(schema: S, text: string, what: string): z.output<S> => {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new HostFailure({ stage: "running", reason: "COMPOSE_FAILED", message: `docker compose ${what} answered in an unknown form` });
  }
};
const containersIn = (text: string): readonly z.output<typeof Container>[] =>
  text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .flatMap((line) => understand(Line, line, "ps"));

/** What matters of `docker compose config --format json`: paths are absolute there, and every volume is in its long form. */
const Resolved = z.object({
  services: z.record(
    z.string(),
    z.object({
      privileged: z.boolean().default(false),
      network_mode: z.string().default(""),
      pid: z.string().default(""),
      volumes: z.array(z.object({ type: z.string(), source: z.string().default("") })).default([]),
      env_file: z.array(z.object({ path: z.string() })).default([]),
      devices: z.array(z.unknown()).default([]),
      cap_add: z.array(z.string()).default([]),
    }),
  ),
  volumes: z.record(z.string(), z.object({ driver_opts: z.object({ device: z.string().optional() }).default({}) })).default({}),
  secrets: z.record(z.string(), z.object({ file: z.string().optional() })).default({}),
  configs: z.record(z.string(), z.object({ file: z.string().optional() })).default({}),
});

/** A project gets nothing of the machine but its own folder and the ports that it publishes. */
const checkProject = (text: string, folder: string): void => {
  const { services, volumes, secrets, configs } = understand(Resolved, text, "config");
  for (const [name, { privileged, network_mode: network, pid, devices, cap_add: capabilities }] of Object.entries(services))
    if (privileged || network === "host" || pid === "host" || devices.length > 0 || capabilities.length > 0)
      refuse("PRIVILEGE_REFUSED", `the service ${name} asks for the machine itself`);
  const paths = [
    ...Object.values(services).flatMap((service) => service.volumes.filter(({ type }) => type === "bind").map(({ source }) => source)),
    ...Object.values(services).flatMap((service) => service.env_file.map(({ path }) => path)),
    ...Object.values(volumes).flatMap(({ driver_opts: { device } }) => device ?? []),
    ...[...Object.values(secrets), ...Object.values(configs)].flatMap(({ file }) => file ?? []),
  ];
  const outside = paths.find((path) => relative(folder, path).startsWith(".."));
  if (outside !== undefined) refuse("PATH_REFUSED", `the project asks for ${outside}, which is not in the app's folder`);
};

const textOf = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    // In single quotes nothing is replaced.
    .map(([name, value]) => `${name}='${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'\n`)
    .join("");

interface Run {
  readonly stage: HostFailure["stage"];
  readonly seconds: number;
  readonly secrets?: Secrets;
}

const createComposeProcess = (docker: string, context: AppContext, folder: AppFolder): AppProcess => {
  const project = folder.path.slice(folder.path.lastIndexOf("/") + 1).toLowerCase();
  const hasFile = (): boolean => readText(join(folder.path, FILE)) !== null;
  const argumentsOf = (...rest: readonly string[]): string[] => {
    const files = ["--file", join(folder.path, FILE), "--env-file", join(folder.path, VARIABLES)];
    return ["compose", "--project-name", project, ...files, "--project-directory", folder.path, ...rest];
  };
  /** The client finds its engine and its plugins by these; of the agent's other variables it gets none. */
  const environment = (secrets: Secrets): NodeJS.ProcessEnv => ({
    ...Object.fromEntries(["PATH", "HOME", "DOCKER_HOST", "DOCKER_CONTEXT"].flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []))),
    ...secrets,
  });
  const run = (rest: readonly string[], { stage, seconds, secrets = {} }: Run): Promise<string> =>
    new Promise((resolve, reject) => {
      const limits = { timeout: seconds * 1_000, maxBuffer: MAX_OUTPUT_BYTES, cwd: folder.path };
      execFile(docker, argumentsOf(...rest), { ...limits, env: environment(secrets) }, (error, out, errors) => {
        if (error === null) return resolve(out);
        const reason = error.code === "ENOENT" ? "NO_DOCKER" : /no space left on device/i.test(errors) ? "DISK_FULL" : "COMPOSE_FAILED";
        const message = masking(Object.values(secrets))(`docker compose ${rest[0]}: ${errors.trim() || error.message}`);
        reject(new HostFailure({ stage, reason, message, lines: message.split("\n") }));
      });
    });
  const containers = async (): Promise<readonly z.output<typeof Container>[]> =>
    hasFile() ? containersIn(await run(["ps", "--all", "--format", "json"], { stage: "running", seconds: GRACE_SECONDS })) : [];
  const secretsOfCurrent = async (): Promise<Secrets> => {
    const { current } = folder.readRecord() ?? { current: null };
    return current === null ? {} : fetchSecrets(context, folder.readRevision(current));
  };
  const logs = async (count: number): Promise<readonly string[]> => {
    if (!hasFile() || count < 1) return [];
    const mask = masking(Object.values(await secretsOfCurrent()));
    const out = await run(["logs", "--no-color", "--timestamps", "--tail", String(count)], { stage: "running", seconds: GRACE_SECONDS });
    return out
      .split("\n")
      .filter((line) => line !== "")
      .map(mask)
      .slice(-count);
  };
  const up = async (app: DesiredApp, secrets: Secrets): Promise<void> => {
    if (app.spec.kind !== "compose") return refuse("KIND_REFUSED", "this device runs containers only");
    const { startSeconds } = app.spec.health;
    const declared = environmentOf(app, secrets);
    const isSecret = (name: string): boolean => "secret" in (app.spec.environment[name] ?? {});
    const hidden = Object.fromEntries(Object.entries(declared).filter(([name]) => isSecret(name)));
    // A secret is in the file by name only: the environment of `up` goes before it, and the other commands need no value.
    const shown = Object.fromEntries(Object.entries(declared).map(([name, value]) => [name, isSecret(name) ? "hidden" : value]));
    await checkPorts(app, new Set());
    replaceFile(context.disk, join(folder.path, FILE), app.spec.compose);
    replaceFile(context.disk, join(folder.path, VARIABLES), textOf(shown));
    checkProject(await run(["config", "--format", "json"], { stage: "preparing", seconds: GRACE_SECONDS }), folder.path);
    await run(["pull", "--quiet", "--policy", "missing"], { stage: "fetching", seconds: 15 * 60, secrets: hidden });
    const wait = ["--wait", "--wait-timeout", String(startSeconds)];
    await run(["up", "--detach", "--remove-orphans", ...wait], { stage: "starting", seconds: startSeconds + GRACE_SECONDS, secrets: hidden });
  };
  return {
    isAlive: async () => {
      const all = await containers();
      return all.length > 0 && all.every(({ State }) => State === "running" || State === "restarting");
    },
    prepare: async (app, ownPorts) => {
      if (app.spec.kind !== "compose") return refuse("KIND_REFUSED", "this device runs containers only");
      refusePortsOfOthers(context, app);
      const secrets = await fetchSecrets(context, app);
      environmentOf(app, secrets);
      await checkPorts(app, ownPorts);
      return () => up(app, secrets);
    },
    // `up --wait` has waited for what the file calls healthy.
    untilHealthy: async () => undefined,
    stop: async (app) => {
      const seconds = app?.spec.stopSeconds ?? 10;
      if (hasFile()) await run(["down", "--remove-orphans", "--timeout", String(seconds)], { stage: "stopping", seconds: seconds + GRACE_SECONDS });
    },
    removeVolumes: async () => {
      if (hasFile()) await run(["down", "--volumes", "--remove-orphans"], { stage: "removing", seconds: GRACE_SECONDS });
      folder.removeVolumes();
    },
    ending: () => "its containers have ended",
    // A failure is worth reporting without them.
    lastLines: () => logs(REPORT_LINES).catch(() => []),
    tail: logs,
    follow: async function* (signal) {
      const mask = masking(Object.values(await secretsOfCurrent()));
      const rest = argumentsOf("logs", "--no-color", "--timestamps", "--tail", "0", "--follow");
      const child = spawn(docker, rest, { cwd: folder.path, env: environment({}), stdio: ["ignore", "pipe", "ignore"], signal });
      child.on("error", () => child.stdout.destroy());
      try {
        for await (const line of createInterface({ input: child.stdout })) yield mask(line);
      } finally {
        child.kill();
      }
    },
    figures: () => ({ cpuPercent: null, memoryBytes: null }),
  };
};

export const createComposeHost = ({ docker = "docker", supervision, ...options }: ComposeHostOptions): Host =>
  openProcessHost({
    ...options,
    supervision: { lookMs: LOOK_MS, ...supervision },
    createProcess: (context, folder) => createComposeProcess(docker, context, folder),
  });
