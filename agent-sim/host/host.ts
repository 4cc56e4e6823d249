// A host runs the apps of one device. What every implementation shares: its interface, its failures, and what a desired app must fulfil.
import { z } from "zod";
import { AppId } from "../../protocol/kit/ids.ts";
import { newestLines } from "../../protocol/kit/log-text.ts";
import { DesiredApp, type ReportedApp } from "../../protocol/records/apps/app-spec.ts";
import type { HostData } from "./app-data.ts";

export type ReportedFailure = NonNullable<ReportedApp["failure"]>;
export type Secrets = Readonly<Record<string, string>>;

export interface Host {
  /**
   * Brings an app to its desired revision, secrets and state: installs, updates, starts, stops or removes it. Does nothing if it is there already.
   * Changes of one app run one after another. Rejects with HostFailure; an update that fails has restored the previous revision by then.
   */
  apply(desired: DesiredApp): Promise<ReportedApp>;
  /** Like `apply`, but starts the processes of an app anew that is there already. */
  restart(desired: DesiredApp): Promise<ReportedApp>;
  /** The revision of an app that runs or ran last; null for an app that is not on the device. */
  revision(appId: string): DesiredApp | null;
  /** All apps that are on the device. */
  report(): readonly ReportedApp[];
  /** The last lines of an app's log, oldest first, with secrets masked. */
  tail(appId: string, lines: number): Promise<readonly string[]>;
  /** The lines that an app logs from now on, until the signal aborts or the app is removed. */
  follow(appId: string, signal: AbortSignal): AsyncIterable<string>;
  /** Ends the supervision and every wait within seconds, and leaves the apps running. What was under way rejects with HostClosed. */
  close(): Promise<void>;
}

/** A host whose apps have data of their own. */
export interface DataHost extends Host {
  readonly data: HostData;
}

export interface HostOptions {
  /** The current secrets of an app. Called before each start of an app that takes any. */
  readonly secretsOf: (appId: string) => Promise<Secrets>;
  /** The report on this app has changed, apart from its figures. */
  readonly onChange?: (app: ReportedApp) => void;
}

const MAX_LINE = 1_000;

/** An app is not as desired, in the words of the report on it. */
export class HostFailure extends Error {
  override readonly name = "HostFailure";
  readonly stage: ReportedFailure["stage"];
  readonly reason: string;
  readonly lines: readonly string[];

  constructor({ stage, reason, message, lines = [] }: Pick<ReportedFailure, "stage" | "reason" | "message"> & { readonly lines?: readonly string[] }) {
    super(message);
    this.stage = stage;
    this.reason = reason;
    this.lines = lines;
  }
}

/** The agent ends. The record says what was under way, and the next start carries it on. */
export class HostClosed extends Error {
  override readonly name = "HostClosed";

  constructor() {
    super("the agent ends");
  }
}

export const refuse = (reason: string, message: string): never => {
  throw new HostFailure({ stage: "refused", reason, message });
};

export const toAppFailure = ({ stage, reason, message, lines }: HostFailure, revision: number): ReportedFailure => ({
  stage,
  reason,
  message: message.slice(0, 1_000),
  revision,
  lines: newestLines(lines.map((line) => line.slice(0, MAX_LINE))),
});

const FULL: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT"]);

/** What the system refused, as a failure in this stage. Anything but an error of the system is a defect and passes unchanged. */
export const toHostFailure = (error: unknown, stage: ReportedFailure["stage"]): unknown => {
  if (error instanceof HostFailure || !(error instanceof Error && "code" in error && typeof error.code === "string")) return error;
  return new HostFailure({ stage, reason: FULL.has(error.code) ? "DISK_FULL" : `SYSTEM_${error.code}`.slice(0, 64), message: error.message });
};

/** It names a folder. */
export const checkAppId = (given: string): DesiredApp["appId"] => {
  const parsed = AppId.safeParse(given);
  return parsed.success ? parsed.data : refuse("SPEC_INVALID", "this is no id of an app");
};

/** Parsed again, although the gateway has checked it: the agent trusts nothing that it runs. */
export const checkDesired = (given: DesiredApp): DesiredApp => {
  const parsed = DesiredApp.safeParse(given);
  if (!parsed.success) return refuse("SPEC_INVALID", z.prettifyError(parsed.error));
  const { health, ports } = parsed.data.spec;
  const asked = health.http?.port;
  if (asked !== undefined && !ports.some(({ name, protocol }) => name === asked && protocol === "tcp"))
    return refuse("SPEC_INVALID", `the health check asks ${asked}, which is no TCP port of the app`);
  return parsed.data;
};

/** They would make the runtime load other code, or find other programs. */
const RESERVED = /^(NODE_.*|LD_.*|PATH|DOCKER_.*|COMPOSE_.*|MOORING_APP)$/;

const checkVariables = ({ spec }: DesiredApp): void => {
  const ofPorts = spec.ports.flatMap(({ variable }) => variable ?? []);
  const ofVolumes = spec.volumes.flatMap(({ variable }) => variable ?? []);
  const names = [...Object.keys(spec.environment), ...ofPorts, ...ofVolumes];
  for (const [at, name] of names.entries()) {
    if (RESERVED.test(name)) refuse("VARIABLE_RESERVED", `${name} is not a variable of an app`);
    if (names.indexOf(name) !== at) refuse("VARIABLE_TWICE", `${name} has two sources`);
  }
};

const ownOf = <T>(from: Readonly<Record<string, T>>, key: string): T | undefined => (Object.hasOwn(from, key) ? from[key] : undefined);

/** The number of each port on the device. */
export const portsOf = ({ spec, config }: DesiredApp): Readonly<Record<string, number>> =>
  Object.fromEntries(
    spec.ports.map(({ name, config: property }) => {
      const number = ownOf(config, property);
      if (typeof number === "number" && Number.isInteger(number) && number >= 1 && number <= 65_535) return [name, number];
      return refuse("CONFIG_INVALID", `${property} is not the number of a port`);
    }),
  );

export const takesSecrets = ({ spec }: DesiredApp): boolean => Object.values(spec.environment).some((source) => "secret" in source);

/** The variables that the spec declares and no others. A property without a value sets none. */
export const environmentOf = (desired: DesiredApp, secrets: Secrets): Readonly<Record<string, string>> => {
  checkVariables(desired);
  const { spec, config } = desired;
  const numbers = portsOf(desired);
  const declared = Object.entries(spec.environment).flatMap(([name, source]): readonly (readonly [string, string])[] => {
    if ("value" in source) return [[name, source.value]];
    if ("secret" in source) return [[name, ownOf(secrets, source.secret) ?? refuse("SECRET_MISSING", `the secret ${source.secret} has no value`)]];
    const value = ownOf(config, source.config);
    return value === undefined ? [] : [[name, String(value)]];
  });
  const ports = spec.ports.flatMap(({ name, variable }) => (variable === undefined ? [] : [[variable, String(numbers[name])] as const]));
  const environment = Object.fromEntries([...declared, ...ports]);
  for (const [name, value] of Object.entries(environment)) if (value.includes("\0")) refuse("CONFIG_INVALID", `${name} contains a NUL`);
  return environment;
};
