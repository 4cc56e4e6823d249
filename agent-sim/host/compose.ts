// The host that runs apps as Compose projects with the `docker compose` of this machine. Records, changes and supervision are those of the process host.
import { join } from "node:path";
import { z } from "zod";
import {
  COMPOSE_REFUSED,
  type ComposeFault,
  type ComposeProject,
  checkWrittenProject,
  DOCKER_VARIABLES,
  isDockerVariable,
  resolvedProjectFaults,
} from "../../protocol/kit/compose-project.ts";
import { createMasker } from "../../protocol/kit/masking.ts";
import type { DesiredApp } from "../../protocol/records/apps/app-spec.ts";
import { followProgram, runProgram } from "../children/index.ts";
import { createEngineFigures, type EngineFigures } from "./compose/figures.ts";
import { appLines, followContainers } from "./compose/log-lines.ts";
import { createEngineVolumes, placesOfVolumes, type RunDocker, unnamedMounts } from "./compose/volumes.ts";
import { type DataHost, environmentOf, HostClosed, HostFailure, refuse, type Secrets } from "./host.ts";
import type { AppFolder } from "./processes/app-folder.ts";
import { fetchSecrets, refusePortsOfOthers } from "./processes/app-process.ts";
import { hookFailure } from "./processes/data-words.ts";
import { readText, replaceFile } from "./processes/disk.ts";
import { untilHealthy } from "./processes/health.ts";
import { checkPorts } from "./processes/ports.ts";
import { openProcessHost } from "./processes/process-host.ts";
import type { AppContext, AppProcess, ProcessHostOptions } from "./processes/settings.ts";

const FILE = "compose.yaml";
const VARIABLES = "variables.env";
const LOOK_MS = 5_000;
const START_LOOK_MS = 500;
const ENDED = "its containers have ended";
/** The engine may start a container anew by itself. */
const STARTED_EVERY_MS = 60_000;
const REPORT_LINES = 20;
/** Beyond the time that the app itself has. */
const GRACE_SECONDS = 120;

export interface ComposeHostOptions extends Omit<ProcessHostOptions, "programs" | "createProcess"> {
  /** The program; default `docker`. */
  readonly docker?: string;
}

/** `docker compose ps --format json`: one object a line, or a list in older versions. */
const Container = z.object({ ID: z.string().catch(""), State: z.string(), Health: z.string().catch("") });
const Line = z.union([z.array(Container), Container.transform((one) => [one])]);

/** Another version of docker may answer in another form. */
const understand = <S extends z.ZodType>(schema: S, text: string, what: string): z.output<S> => {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new HostFailure({ stage: "running", reason: "COMPOSE_FAILED", message: `docker compose ${what} answered in an unknown form` });
  }
};
const isUp = ({ State }: z.output<typeof Container>): boolean => State === "running" || State === "restarting";
const containersIn = (text: string): readonly z.output<typeof Container>[] =>
  text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .flatMap((line) => understand(Line, line, "ps"));

const refuseFaults = ([fault, ...others]: readonly ComposeFault[]): void => {
  if (fault === undefined) return;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  refuse(fault.code, [fault.path, `${fault.message}${more}`].filter((part) => part !== "").join(": "));
};

/** The project of the app as it is written, if a project may contain what it does. */
const allowedProject = ({ spec }: DesiredApp): ComposeProject => {
  if (spec.kind !== "compose") return refuse("KIND_REFUSED", "this device runs containers only");
  const reserved = Object.keys(spec.environment).find(isDockerVariable);
  if (reserved !== undefined) refuse("VARIABLE_RESERVED", `${reserved} is not a variable of an app`);
  const { project, faults } = checkWrittenProject(spec.compose, Object.keys(spec.environment));
  refuseFaults(faults);
  return project ?? refuse(COMPOSE_REFUSED, "the project cannot be read");
};

const textOf = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    // In single quotes nothing is replaced.
    .map(([name, value]) => `${name}='${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'\n`)
    .join("");

interface Run {
  readonly stage: HostFailure["stage"];
  readonly seconds: number;
  /** The variables of the app, for what reads their values. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly secrets?: Secrets;
}

/** The client finds its engine and its plugins by these; of the agent's other variables it gets none. */
export const dockerEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(DOCKER_VARIABLES.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));

const runDocker = async (command: string, words: readonly string[], { time, closing }: Pick<AppContext, "time" | "closing">): Promise<string> => {
  const { outcome, code, output, errors, error } = await runProgram({
    command,
    words,
    env: dockerEnvironment(),
    time,
    signals: [closing],
    withinMs: GRACE_SECONDS * 1_000,
  });
  if (outcome === "stopped") throw new HostClosed();
  if (outcome === "ended" && code === 0) return output;
  const reason = error?.code === "ENOENT" ? "NO_DOCKER" : "COMPOSE_FAILED";
  throw new HostFailure({ stage: "running", reason, message: `docker ${words.slice(0, 2).join(" ")}: ${errors.trim() || outcome}` });
};

const LOGS = ["logs", "--no-color", "--no-log-prefix", "--timestamps"];

interface Docker {
  readonly program: string;
  readonly figures: EngineFigures;
}

const createComposeProcess = ({ program: docker, figures }: Docker, context: AppContext, folder: AppFolder): AppProcess => {
  const project = folder.path.slice(folder.path.lastIndexOf("/") + 1).toLowerCase();
  const hasFile = (): boolean => readText(join(folder.path, FILE)) !== null;
  const argumentsOf = (...rest: readonly string[]): string[] => {
    const files = ["--file", join(folder.path, FILE), "--env-file", join(folder.path, VARIABLES)];
    return ["compose", "--project-name", project, ...files, "--project-directory", folder.path, ...rest];
  };
  const programOf = (rest: readonly string[], variables: NonNullable<Run["variables"]> = {}) => ({
    command: docker,
    words: argumentsOf(...rest),
    cwd: folder.path,
    env: { ...dockerEnvironment(), ...variables },
    time: context.time,
  });
  /** The end of its output, if that is too long. */
  const run = async (rest: readonly string[], { stage, seconds, variables = {}, secrets = {} }: Run): Promise<string> => {
    const program = { ...programOf(rest, variables), signals: [context.closing] };
    const { outcome, code, signal, error, output, errors, isCut } = await runProgram({ ...program, withinMs: seconds * 1_000 });
    if (outcome === "stopped") throw new HostClosed();
    // The first line has lost its beginning.
    if (outcome === "ended" && code === 0) return isCut ? output.slice(output.indexOf("\n") + 1) : output;
    const reason = error?.code === "ENOENT" ? "NO_DOCKER" : /no space left on device/i.test(errors) ? "DISK_FULL" : "COMPOSE_FAILED";
    const why = outcome === "late" ? `it did not end within ${seconds} s` : errors.trim() || (error?.message ?? `it ended with ${signal ?? code}`);
    const message = createMasker(Object.values(secrets)).mask(`docker compose ${rest[0]}: ${why}`);
    throw new HostFailure({ stage, reason, message, lines: message.split("\n") });
  };
  let started: { readonly of: string; readonly atMs: number; readonly at: Date | null } | null = null;
  /** The last start among its containers, asked for when there are other ones, and once a minute. */
  const learnStart = async (ids: readonly string[]): Promise<void> => {
    const [of, atMs] = [ids.join(), context.time.elapsedMs()];
    if (ids.includes("") || (started?.of === of && atMs - started.atMs < STARTED_EVERY_MS)) return;
    const words = ["inspect", "--format", "{{.State.StartedAt}}", ...ids];
    const inspected = { command: docker, words, env: dockerEnvironment(), time: context.time, signals: [context.closing], withinMs: GRACE_SECONDS * 1_000 };
    const { outcome, code, output } = await runProgram(inspected);
    const starts = outcome === "ended" && code === 0 ? output.trim().split("\n").map(Date.parse) : [Number.NaN];
    started = { of, atMs, at: starts.some(Number.isNaN) ? null : new Date(Math.max(...starts)) };
  };
  const containers = async (): Promise<readonly z.output<typeof Container>[]> =>
    hasFile() ? containersIn(await run(["ps", "--all", "--format", "json"], { stage: "running", seconds: GRACE_SECONDS })) : [];
  const plainDocker: RunDocker = (words) => runDocker(docker, words, context);
  const secretsOfCurrent = async (): Promise<Secrets> => {
    const { current } = folder.readRecord() ?? { current: null };
    return current === null ? {} : fetchSecrets(context, folder.readRevision(current));
  };
  const logs = async (count: number): Promise<readonly string[]> => {
    if (!hasFile() || count < 1) return [];
    const { mask } = createMasker(Object.values(await secretsOfCurrent()));
    const out = await run([...LOGS, "--tail", String(count)], { stage: "running", seconds: GRACE_SECONDS });
    return appLines(out).map(mask).slice(-count);
  };
  // A failure is worth reporting without them.
  const lastLines = (): Promise<readonly string[]> => logs(REPORT_LINES).catch(() => []);
  const ended = async (): Promise<string | null> => ((await containers()).every(isUp) ? null : ENDED);
  const up = async (app: DesiredApp, written: ComposeProject, secrets: Secrets): Promise<void> => {
    const { startSeconds } = app.spec.health;
    const declared = environmentOf(app, secrets);
    const given = { variables: declared, secrets };
    const isSecret = (name: string): boolean => "secret" in (app.spec.environment[name] ?? {});
    // A secret is in the file by name only: the environment goes before the file, and commands that start nothing need no value.
    const shown = Object.fromEntries(Object.entries(declared).map(([name, value]) => [name, isSecret(name) ? "hidden" : value]));
    await checkPorts(app, new Set());
    // What has been checked, not the text: Compose may read a text in another way. JSON is YAML.
    replaceFile(context.disk, join(folder.path, FILE), JSON.stringify(written, null, 2));
    replaceFile(context.disk, join(folder.path, VARIABLES), textOf(shown));
    const resolved = await run(["config", "--format", "json"], { stage: "preparing", seconds: GRACE_SECONDS, ...given });
    refuseFaults(resolvedProjectFaults(understand(z.unknown(), resolved, "config"), project));
    await run(["pull", "--quiet", "--policy", "missing"], { stage: "fetching", seconds: 15 * 60, ...given });
    const wait = ["--wait", "--wait-timeout", String(startSeconds)];
    await run(["up", "--detach", "--remove-orphans", ...wait], { stage: "starting", seconds: startSeconds + GRACE_SECONDS, ...given });
  };
  return {
    isAlive: async () => {
      const all = await containers();
      if (all.length > 0) {
        figures.refresh(context.closing);
        await learnStart(all.map(({ ID }) => ID));
      }
      return all.length > 0 && all.every(isUp);
    },
    prepare: async (app, ownPorts) => {
      const written = allowedProject(app);
      refusePortsOfOthers(context, app);
      const secrets = await fetchSecrets(context, app);
      environmentOf(app, secrets);
      await checkPorts(app, ownPorts);
      return () => up(app, written, secrets);
    },
    // `up --wait` has waited for what the file calls healthy. What the template calls healthy comes on top: its page, as the device's own people see it.
    untilHealthy: (app) => untilHealthy(app, { context, lookMs: START_LOOK_MS, settleMs: 0, ended, lastLines }),
    stop: async (app) => {
      figures.forget(project);
      started = null;
      const seconds = app?.spec.stopSeconds ?? 10;
      if (hasFile()) await run(["down", "--remove-orphans", "--timeout", String(seconds)], { stage: "stopping", seconds: seconds + GRACE_SECONDS });
    },
    removeVolumes: async () => {
      if (hasFile()) await run(["down", "--volumes", "--remove-orphans"], { stage: "removing", seconds: GRACE_SECONDS });
      folder.removeVolumes();
    },
    volumes: async (app) => placesOfVolumes(plainDocker, project, Object.keys(allowedProject(app).volumes)),
    outside: async () =>
      unnamedMounts(
        plainDocker,
        (await containers()).map(({ ID }) => ID),
      ),
    rest: async (app, mode) => {
      const { stopSeconds } = app.spec;
      const words = mode === "pause" ? ["pause"] : ["stop", "--timeout", String(stopSeconds)];
      await run(words, { stage: "stopping", seconds: stopSeconds + GRACE_SECONDS });
    },
    wake: async (app, mode) => {
      const states = new Set((await containers()).map(({ State }) => State));
      if (states.has("paused")) await run(["unpause"], { stage: "starting", seconds: GRACE_SECONDS });
      if (mode === "pause" && states.size > 0 && !states.has("exited")) return;
      const secrets = await fetchSecrets(context, app);
      // After a swap there are none.
      if (states.size === 0) return up(app, allowedProject(app), secrets);
      const { startSeconds } = app.spec.health;
      const words = ["up", "--detach", "--no-recreate", "--wait", "--wait-timeout", String(startSeconds)];
      await run(words, { stage: "starting", seconds: startSeconds + GRACE_SECONDS, variables: environmentOf(app, secrets), secrets });
    },
    hook: async (app, step) => {
      const service = step.service ?? Object.keys(allowedProject(app).services)[0] ?? refuse("COMPOSE_FAILED", "the project has no service");
      try {
        await run(["exec", "-T", service, ...step.command], { stage: "running", seconds: step.timeoutSeconds, secrets: await fetchSecrets(context, app) });
      } catch (error) {
        throw error instanceof HostFailure ? hookFailure(step, error.message, error.lines) : error;
      }
    },
    ending: () => ENDED,
    lastLines,
    tail: logs,
    follow: async function* (signal, isOver) {
      const secrets = Object.values(await secretsOfCurrent());
      const { mask } = createMasker(secrets);
      const signals = [signal, context.closing];
      const open = (since: string | null) => {
        const from = since === null ? ["--tail", "0"] : ["--since", since];
        return followProgram({ ...programOf([...LOGS, ...from, "--follow"]), secrets, signals });
      };
      // A terminal code within a secret hides it from the first mask.
      for await (const line of followContainers({ open, time: context.time, signal: AbortSignal.any(signals), isOver })) yield mask(line);
    },
    figures: () => figures.of(project),
    startedAt: () => started?.at ?? null,
  };
};

export const createComposeHost = ({ docker: program = "docker", supervision, ...options }: ComposeHostOptions): DataHost => {
  const figures = createEngineFigures({ docker: program, time: options.time, environment: dockerEnvironment });
  const never = new AbortController().signal;
  return openProcessHost({
    ...options,
    createVolumes: (apps) => createEngineVolumes((words) => runDocker(program, words, { time: options.time, closing: never }), apps),
    supervision: { lookMs: LOOK_MS, ...supervision },
    createProcess: (context, folder) => createComposeProcess({ program, figures }, context, folder),
  });
};
