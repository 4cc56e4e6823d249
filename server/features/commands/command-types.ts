// The built-in command types: payload, time to live, execution time, and the lane in which commands run one after another.
// Any other type is a custom one: it gets the generic settings, and an agent rejects it if it does not support it.
import { z } from "zod";
import { contract, type CommandType as DeclaredType, type Group, type Permission } from "../../../protocol/index.ts";

export interface CommandType {
  readonly payload: z.ZodType;
  readonly ttlSeconds: number;
  readonly executionTimeoutSeconds: number;
  /** Running it twice does no harm. */
  readonly redeliverSafe: boolean;
  /** `app`: one at a time per app; `host`: one at a time on the machine; `none`: beside anything. */
  readonly lane: "app" | "host" | "none";
  readonly permission: Permission | null;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const AppId = z.string().min(1).max(128);
const anything = z.looseObject({ appId: AppId.optional() });
const generic: CommandType = { payload: anything, ttlSeconds: DAY, executionTimeoutSeconds: 15 * MINUTE, redeliverSafe: true, lane: "none", permission: null };

const type = (differences: Partial<CommandType> = {}): CommandType => ({ ...generic, ...differences });
const onApp = (differences: Partial<CommandType> = {}): CommandType => type({ lane: "app", ...differences });
const slow = { ttlSeconds: 7 * DAY, executionTimeoutSeconds: HOUR } as const;

const TYPES: Readonly<Record<string, CommandType>> = {
  ping: type({ ttlSeconds: HOUR, executionTimeoutSeconds: MINUTE }),
  echo: type({ ttlSeconds: HOUR, executionTimeoutSeconds: MINUTE }),
  diagnostics: type({ executionTimeoutSeconds: 5 * MINUTE }),
  "logs-fetch": type({ payload: anything.extend({ lines: z.int().min(1).max(100_000).optional(), since: z.string().max(40).optional() }), ttlSeconds: HOUR }),
  // After an hour nobody expects a restart any more.
  "restart-app": onApp({ ttlSeconds: HOUR }),
  "start-app": onApp({ ttlSeconds: HOUR }),
  "stop-app": onApp({ ttlSeconds: HOUR }),
  deploy: onApp(slow),
  undeploy: onApp(slow),
  "update-app": onApp(slow),
  "rollback-app": onApp(slow),
  "backup-create": onApp({ executionTimeoutSeconds: 6 * HOUR }),
  "backup-restore": onApp({ executionTimeoutSeconds: 6 * HOUR, redeliverSafe: false }),
  "backup-verify": onApp({ executionTimeoutSeconds: 6 * HOUR }),
  "volume-scan": type({ executionTimeoutSeconds: HOUR }),
  "tunnel-up": type(),
  "tunnel-down": type(),
  "mesh-apply": type(),
  "secrets-rotate": type({ ttlSeconds: 7 * DAY }),
  "agent-config": type({ ttlSeconds: 7 * DAY }),
  "agent-update": type({ ...slow, lane: "host" }),
  reboot: type({ ttlSeconds: HOUR, lane: "host", redeliverSafe: false, payload: anything.extend({ delaySeconds: z.int().min(0).max(3_600).optional() }) }),
  shell: type({ ttlSeconds: HOUR, redeliverSafe: false, permission: "device:shell", payload: anything.extend({ command: z.string().min(1).max(32_768) }) }),
};

/** Types that the gateway itself sends. They carry no secret: the agent fetches it by a signed call. */
const SYSTEM_TYPES: Readonly<Record<string, CommandType>> = {
  "svc.rotate-secret": type({ ttlSeconds: 30 * DAY, executionTimeoutSeconds: 15 * MINUTE }),
};

const RESERVED = /^svc\./i;

/** Null for a type that is not the gateway's own. */
export const systemType = (name: string): CommandType | null => (Object.hasOwn(SYSTEM_TYPES, name) ? (SYSTEM_TYPES[name] ?? null) : null);

/** Types that groups of the contract declare. Only their features order them. */
const DECLARED: ReadonlyMap<string, DeclaredType> = new Map(
  Object.values<Group>(contract).flatMap(({ commands }) => Object.values(commands).map((declared) => [declared.type, declared] as const)),
);

/** Null for a type that no group declares. */
export const declaredType = (name: string): CommandType | null => {
  const declared = DECLARED.get(name);
  return declared === undefined ? null : { ...declared, permission: null };
};

/** Null for a name that no caller may use. */
export const commandType = (name: string): CommandType | null => {
  if (RESERVED.test(name) || DECLARED.has(name)) return null;
  return Object.hasOwn(TYPES, name) ? (TYPES[name] ?? generic) : generic;
};

/** A command that names an app shares that app's lane, whatever its type. */
export const laneOf = (commandId: string, payload: Readonly<Record<string, unknown>>, known: CommandType): string => {
  if (known.lane === "host") return "host";
  const { appId } = payload;
  return typeof appId === "string" && appId !== "" ? `app:${appId}` : `cmd:${commandId}`;
};
