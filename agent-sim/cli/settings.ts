// What the agent runs with, and where each value comes from: flags, then the environment, then the configuration file, then the defaults.
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { HOST_KINDS } from "../host/open.ts";
import { LOG_FORMATS } from "../log.ts";
import { BadOptions } from "../options.ts";

const Port = z.coerce.number().int().min(0).max(65_535);

/** By the name of the flag, which is the key in the file, too; `socks-port` is MOORING_AGENT_SOCKS_PORT in the environment. */
export const AGENT_FLAGS = {
  url: { schema: z.url({ protocol: /^https?$/ }).optional(), help: "URL: the gateway" },
  name: { schema: z.string().min(1).max(128).optional(), help: "NAME: how people see this device (default: the name of the machine)" },
  host: {
    schema: z.enum(HOST_KINDS),
    help: "KIND: what runs the apps: compose (containers), process (the small programs that come with the agent) or simulated",
  },
  data: { schema: z.string().min(1), help: "DIR: identity, apps and their data" },
  ca: { schema: z.string().min(1).optional(), help: "FILE: certificates (PEM) that are trusted beside the known ones" },
  "update-key": {
    schema: z
      .string()
      .regex(/^[\w-]{43}$/, "must be a public key of agent:release")
      .optional(),
    help: "KEY: take releases that are signed with this key",
  },
  channel: { schema: z.string().min(1).max(32), help: "NAME: the channel of these releases (default: stable)" },
  signature: { schema: z.enum(["1", "2"]), help: "2: sign the whole request (default), 1: body and time" },
  "log-format": { schema: z.enum(LOG_FORMATS), help: "text, or json: a JSON object a line" },
  "socks-port": { schema: Port, help: "N: where programs of this machine find the proxy to mesh routes (default: 1080; 0: a free port)" },
} as const;
export type SettingName = keyof typeof AGENT_FLAGS;
export type MachineSettings = { readonly [N in SettingName]: z.output<(typeof AGENT_FLAGS)[N]["schema"]> };
export const SETTING_NAMES = Object.keys(AGENT_FLAGS) as SettingName[];

export interface Invoker {
  /** Effective user id; null where the system has none. */
  readonly uid: number | null;
  readonly env: NodeJS.ProcessEnv;
}
const isRoot = ({ uid }: Invoker): boolean => uid === 0;
const folderOf = ({ env }: Invoker, variable: string, below: string): string => join(env[variable] || join(env["HOME"] || homedir(), below), "mooring-agent");

const SYSTEM_FILE = "/etc/mooring-agent/config.yaml";
/** A user without an agent of their own, such as the one of the service, means the machine's. */
export const configFile = (place: Invoker): string => {
  const own = join(folderOf(place, "XDG_CONFIG_HOME", ".config"), "config.yaml");
  const isSystem = isRoot(place) || (!existsSync(own) && existsSync(SYSTEM_FILE));
  return place.env["MOORING_AGENT_CONFIG"] ?? (isSystem ? SYSTEM_FILE : own);
};
const SYSTEM_DATA = "/var/lib/mooring-agent";

const variableOf = (name: SettingName): string => `MOORING_AGENT_${name.toUpperCase().replace("-", "_")}`;

const readConfig = (file: string): Readonly<Record<string, unknown>> => {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return {};
    throw new BadOptions(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  const known = z.strictObject(Object.fromEntries(SETTING_NAMES.map((name) => [name, z.union([z.string(), z.number()]).transform(String).optional()])));
  try {
    return known.parse(parseYaml(text, { maxAliasCount: 0 }) ?? {});
  } catch (error) {
    throw new BadOptions(`${file}: ${error instanceof z.ZodError ? z.prettifyError(error) : error instanceof Error ? error.message : String(error)}`);
  }
};

export interface Resolved {
  readonly settings: MachineSettings;
  /** Where each value comes from, in words. */
  readonly from: Readonly<Record<SettingName, string>>;
  readonly file: string;
}

/** A command as somebody gave it. */
export interface Invocation extends Invoker {
  readonly resolved: Resolved;
  /** What follows the command. */
  readonly words: readonly string[];
  readonly flags: Readonly<Record<string, string | boolean | undefined>>;
  readonly print: (line: string) => void;
}

export const resolveSettings = (flags: Readonly<Record<string, unknown>>, place: Invoker): Resolved => {
  const file = configFile(place);
  const config = readConfig(file);
  const defaults: Readonly<Record<string, string>> = {
    host: "process",
    data: isRoot(place) ? SYSTEM_DATA : folderOf(place, "XDG_DATA_HOME", ".local/share"),
    channel: "stable",
    signature: "2",
    "socks-port": "1080",
    "log-format": "text",
  };
  const layers = (name: SettingName): readonly (readonly [from: string, value: unknown])[] => [
    [`--${name}`, flags[name]],
    [variableOf(name), place.env[variableOf(name)] || undefined],
    [file, config[name]],
    ["default", defaults[name]],
  ];
  const chosen = SETTING_NAMES.map((name) => [name, layers(name).find(([, value]) => value !== undefined) ?? ["not set", undefined]] as const);
  const parsed = chosen.map(([name, [from, value]]) => {
    const { data, error } = AGENT_FLAGS[name].schema.safeParse(value);
    if (error !== undefined) throw new BadOptions(`${name} (${from}): ${error.issues[0]?.message ?? "is not valid"}`);
    return [name, data] as const;
  });
  const settings = Object.fromEntries(parsed) as MachineSettings; // as: each by its own schema
  return {
    settings: { ...settings, data: resolve(settings.data) },
    from: Object.fromEntries(chosen.map(([name, [from]]) => [name, from])) as Resolved["from"],
    file,
  };
};

export const settingsHelp = (): string => SETTING_NAMES.map((name) => `  --${name.padEnd(12)} ${AGENT_FLAGS[name].help}\n`).join("");
