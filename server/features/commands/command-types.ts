// The built-in command types: payload, time to live, execution time, and the lane in which commands run one after another.
// Any other type is a custom one: it gets the generic settings, and an agent rejects it if it does not support it. The list offers the types whose payload
// and output are known; what the others mean is a matter of the tenant and the agent's author.
import { z } from "zod";
import { type CommandTypeRecord, contract, type CommandType as DeclaredType, type Group, type Permission } from "../../../protocol/index.ts";

export interface CommandType {
  readonly payload: z.ZodType;
  readonly ttlSeconds: number;
  readonly executionTimeoutSeconds: number;
  /** Running it twice does no harm. */
  readonly redeliverSafe: boolean;
  /** `app`: one at a time per app; `host`: one at a time on the machine; `none`: beside anything. */
  readonly lane: "app" | "host" | "none";
  readonly permission: Permission | null;
  readonly risk: CommandTypeRecord["risk"];
}
/** What people and authors of agents are told of a type that the list offers. */
interface ListedType extends CommandType {
  readonly summary: string;
  /** In an ack that says `succeeded`. Agents may say more. */
  readonly output: z.ZodType;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const AppId = z.string().min(1).max(128);
const anything = z.looseObject({ appId: AppId.optional() });
const generic: CommandType = {
  payload: anything,
  ttlSeconds: DAY,
  executionTimeoutSeconds: 15 * MINUTE,
  redeliverSafe: true,
  lane: "none",
  permission: null,
  risk: "change",
};

const type = (differences: Partial<CommandType> = {}): CommandType => ({ ...generic, ...differences });
const onApp = (differences: Partial<CommandType> = {}): CommandType => type({ lane: "app", ...differences });
const slow = { ttlSeconds: 7 * DAY, executionTimeoutSeconds: HOUR } as const;

const AppOutput = z.looseObject({ appId: AppId, state: z.string().max(64), restarts: z.int().min(0) });
const listed = (summary: string, output: z.ZodType) => ({ summary, output });

const LISTED: Readonly<Record<string, ListedType>> = {
  ping: {
    ...type({ risk: "none", ttlSeconds: HOUR, executionTimeoutSeconds: MINUTE }),
    ...listed("Asks the agent whether it answers.", z.looseObject({ pong: z.literal(true) })),
  },
  echo: {
    ...type({ risk: "none", ttlSeconds: HOUR, executionTimeoutSeconds: MINUTE }),
    ...listed("Gives back the payload.", z.looseObject({}).describe("The payload as it came.")),
  },
  diagnostics: {
    ...type({ risk: "none", executionTimeoutSeconds: 5 * MINUTE }),
    ...listed("Tells how the machine is.", z.looseObject({ host: z.looseObject({}), memory: z.looseObject({}), disk: z.looseObject({}) })),
  },
  // After an hour nobody expects a restart any more.
  "restart-app": { ...onApp({ ttlSeconds: HOUR }), ...listed("Restarts an app that the agent runs by its own means.", AppOutput) },
  "start-app": { ...onApp({ ttlSeconds: HOUR }), ...listed("Starts an app that the agent runs by its own means.", AppOutput) },
  "stop-app": { ...onApp({ ttlSeconds: HOUR }), ...listed("Stops an app that the agent runs by its own means.", AppOutput) },
  "logs-fetch": {
    ...type({
      risk: "none",
      payload: anything.extend({ lines: z.int().min(1).max(100_000).optional(), since: z.string().max(40).optional() }),
      ttlSeconds: HOUR,
    }),
    ...listed("Gives the last lines of a log that the agent keeps by its own means.", z.looseObject({ lines: z.array(z.string()) })),
  },
  reboot: {
    ...type({
      risk: "danger",
      ttlSeconds: HOUR,
      lane: "host",
      redeliverSafe: false,
      payload: anything.extend({ delaySeconds: z.int().min(0).max(3_600).optional() }),
    }),
    ...listed("Reboots the machine.", z.looseObject({})),
  },
  shell: {
    ...type({
      risk: "danger",
      ttlSeconds: HOUR,
      redeliverSafe: false,
      permission: "device:shell",
      payload: anything.extend({ command: z.string().min(1).max(32_768) }),
    }),
    ...listed("Runs a command line on the machine, where the agent allows it.", z.looseObject({ exitCode: z.int(), stdout: z.string(), stderr: z.string() })),
  },
  "agent-update": {
    ...type({ ...slow, lane: "host" }),
    ...listed("Updates the agent to the newest release of its channel.", z.looseObject({ version: z.string().max(64) })),
  },
};

/** They have rules of their own, and the list does not offer them. */
const UNLISTED: Readonly<Record<string, CommandType>> = {
  deploy: onApp(slow),
  undeploy: onApp({ ...slow, risk: "danger" }),
  "update-app": onApp(slow),
  "rollback-app": onApp(slow),
  "secrets-rotate": type({ ttlSeconds: 7 * DAY }),
  "agent-config": type({ ttlSeconds: 7 * DAY }),
};

/** Types that the gateway itself sends. They carry no secret: the agent fetches it by a signed call. */
const SYSTEM_TYPES: Readonly<Record<string, ListedType>> = {
  "svc.rotate-secret": {
    ...type({ payload: z.strictObject({}), ttlSeconds: 30 * DAY, executionTimeoutSeconds: 15 * MINUTE }),
    ...listed("Tells the agent to fetch and use a new secret.", z.looseObject({ rotated: z.boolean() })),
  },
};

const TYPES: Readonly<Record<string, CommandType>> = { ...LISTED, ...UNLISTED };

const RESERVED = /^svc\./i;

const systemType = (name: string): CommandType | null => (Object.hasOwn(SYSTEM_TYPES, name) ? (SYSTEM_TYPES[name] ?? null) : null);

/** Types that groups of the contract declare. Only their features order them. */
const DECLARED: ReadonlyMap<string, DeclaredType> = new Map(
  Object.values<Group>(contract).flatMap(({ commands }) => Object.values(commands).map((declared) => [declared.type, declared] as const)),
);

const declaredType = (name: string): CommandType | null => {
  const declared = DECLARED.get(name);
  return declared === undefined ? null : { ...declared, permission: null };
};

/** Null for a name that no caller may use. */
export const commandType = (name: string): CommandType | null => {
  if (RESERVED.test(name) || DECLARED.has(name)) return null;
  return Object.hasOwn(TYPES, name) ? (TYPES[name] ?? generic) : generic;
};

/** Every type, whoever may order it. Null for a name of the gateway's own that it does not have. */
export const anyCommandType = (name: string): (CommandType & { readonly isOwn: boolean }) | null => {
  const own = systemType(name);
  const known = own ?? declaredType(name) ?? commandType(name);
  return known === null ? null : { ...known, isOwn: own !== null };
};

const jsonSchema = (schema: z.ZodType, io: "input" | "output"): Record<string, unknown> => {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
};

type ToldType = Omit<ListedType, "permission"> & { readonly permission?: Permission | null };
const recordOf = (
  type: string,
  orderedBy: CommandTypeRecord["orderedBy"],
  { summary, output, payload, permission, ...known }: ToldType,
): CommandTypeRecord => ({
  ...known,
  type,
  summary,
  payload: jsonSchema(payload, "input"),
  output: jsonSchema(output, "output"),
  permission: permission ?? "device:command",
  orderedBy,
});

/** Every type whose payload and output are known, for forms and for authors of agents. */
export const COMMAND_TYPES: readonly CommandTypeRecord[] = [
  ...Object.entries(LISTED).map(([name, known]) => recordOf(name, "caller", known)),
  ...Object.entries(SYSTEM_TYPES).map(([name, known]) => recordOf(name, "gateway", known)),
  ...[...DECLARED.values()].map(({ type, ...known }) => recordOf(type, "gateway", known)),
];

/** A command that names an app shares that app's lane, whatever its type. */
export const laneOf = (commandId: string, payload: Readonly<Record<string, unknown>>, known: CommandType): string => {
  if (known.lane === "host") return "host";
  const { app } = payload as { readonly app?: { readonly appId?: unknown } | null };
  const appId = payload["appId"] ?? app?.appId;
  return typeof appId === "string" && appId !== "" ? `app:${appId}` : `cmd:${commandId}`;
};
