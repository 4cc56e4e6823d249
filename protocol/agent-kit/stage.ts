// What a case works with: its own gateway, its own folder, and the agent in it. Every wait has a bound, and what was due is named beside it.
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Time } from "../kit/timers.ts";
import type { KitGateway } from "./gateway/kit-gateway.ts";
import { KIT_TOKEN } from "./gateway/kit-gateway.ts";
import type { KitSession } from "./gateway/kit-session.ts";
import type { HeardAck, KitOrder, OrderOptions } from "./gateway/order-book.ts";
import { type JudgedAgent, startAgent } from "./judged-agent.ts";
import type { Patience } from "./kit-time.ts";
import { type BrokenRule, NotObservable, shown, Wrong } from "./verdict.ts";

/** From the start of the process to its first session. */
const START_MS = 20_000;
/** For whatever an agent does at once. */
export const SOON_MS = 5_000;

export interface StartOptions {
  /** Default: it has an identity. `token`: it pairs with one. `person`: somebody must approve it. */
  readonly pairs?: "token" | "person";
  readonly env?: Readonly<Record<string, string>>;
  /** The rule that an agent breaks whose session does not come. */
  readonly rule?: string;
}

export interface Stage {
  readonly gateway: KitGateway;
  /** MOORING_STATE. */
  readonly stateFolder: string;
  readonly agent: JudgedAgent;
  readonly time: Time;
  readonly patience: Patience;
  start(options?: StartOptions): JudgedAgent;
  /** Starts it and waits for its first ready session. */
  open(options?: StartOptions): Promise<KitSession>;
  /** The next session that is ready, after this many sessions. */
  session(after: number, within?: { readonly rule?: string; readonly ms?: number }): Promise<KitSession>;
  /** Waits for something that is due. Wrong if it does not come, or if the agent did something else that the documents forbid. */
  due<T>(rule: string, what: string, look: () => T | null | undefined | false, withinMs?: number): Promise<T>;
  /** Wrong unless this holds. */
  expect(holds: boolean, rule: string, what: string, seen: unknown): void;
  /** For what the documents recommend. */
  hint(holds: boolean, rule: string, what: string, seen: unknown): void;
  /** Lets time pass in which something must not happen. */
  pass(ms: number): Promise<void>;
  queue(type: string, payload: unknown, options?: OrderOptions): KitOrder;
  /** A command with an effect: its begin and end are written down by the agent. */
  effect(key: string, ms?: number, options?: OrderOptions): KitOrder;
  /** Waits for the final ack of a command. */
  final(order: KitOrder, rule?: string, withinMs?: number): Promise<HeardAck>;
  /** How often the effect began and ended. */
  ran(key: string): { readonly begun: number; readonly ended: number };
  /** The lines that the agent wrote for its effects, oldest first. */
  effectLines(): readonly string[];
  /** The files below MOORING_STATE, and the identity. */
  files(): readonly string[];
  kill(): Promise<void>;
  /** The hints. Wrong if the agent did anything against the documents. */
  finish(): Promise<readonly BrokenRule[]>;
  /** Ends the agent, whatever happened. */
  abandon(): Promise<void>;
  readonly hasStarted: boolean;
}

export interface StageDeps {
  readonly gateway: KitGateway;
  readonly folder: string;
  readonly words: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly time: Time;
  readonly patience: Patience;
}

const filesBelow = (folder: string): readonly string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: "utf8" })
        .map((name) => join(folder, name))
        .filter((path) => statSync(path).isFile())
    : [];

export const createStage = ({ gateway, folder, words, env: outer, time, patience }: StageDeps): Stage => {
  const stateFolder = join(folder, "state");
  const identityFile = join(folder, "identity.json");
  const effects = join(folder, "effects");
  const hints: BrokenRule[] = [];
  let agent: JudgedAgent | null = null;
  mkdirSync(stateFolder, { recursive: true, mode: 0o700 });

  const running = (): JudgedAgent => {
    if (agent === null) throw new Error("the case has not started the agent");
    return agent;
  };
  const checkFaults = (): void => {
    const [first] = gateway.faults;
    if (first !== undefined) throw new Wrong(first);
  };
  const due: Stage["due"] = async (rule, what, look, withinMs = SOON_MS) => {
    const found = await patience.until(() => {
      checkFaults();
      return look();
    }, withinMs);
    if (found !== null) return found;
    const { ended, output } = running();
    const how = ended === null ? "" : `; the agent has ended (${ended.signal ?? ended.code})`;
    throw new Wrong({
      rule,
      due: `${what}, within ${withinMs / 1_000} s`,
      seen: `nothing of that${how}; the agent's last words: ${shown(output.slice(-500).trim())}`,
    });
  };
  const start: Stage["start"] = ({ pairs, env = {} } = {}) => {
    if (pairs === undefined && !existsSync(identityFile)) writeFileSync(identityFile, JSON.stringify(gateway.identityText()), { mode: 0o600 });
    agent = startAgent({
      words,
      time,
      env: {
        ...outer,
        MOORING_URL: gateway.url,
        MOORING_IDENTITY: identityFile,
        MOORING_STATE: stateFolder,
        MOORING_EFFECTS: effects,
        ...(pairs === "token" ? { MOORING_ENROLLMENT_TOKEN: KIT_TOKEN } : {}),
        ...env,
      },
    });
    return agent;
  };
  const session: Stage["session"] = (after, { rule = "R4.3", ms = SOON_MS } = {}) =>
    due(rule, `session ${after + 1} of the agent, ready`, () => gateway.sessions.slice(after).find(({ readyAtMs }) => readyAtMs !== null), ms);
  const queue: Stage["queue"] = (type, payload, options) => {
    const order = gateway.book.add(type, payload, options);
    gateway.sessions.at(-1)?.push();
    return order;
  };

  const effectLines = (): readonly string[] => (existsSync(effects) ? readFileSync(effects, "utf8").split("\n") : []);

  return {
    gateway,
    stateFolder,
    get agent() {
      return running();
    },
    time,
    patience,
    start,
    open: async (options) => {
      const before = gateway.sessions.length;
      start(options);
      return session(before, { ms: START_MS, ...(options?.rule === undefined ? {} : { rule: options.rule }) });
    },
    session,
    due,
    expect: (holds, rule, what, seen) => {
      checkFaults();
      if (!holds) throw new Wrong({ rule, due: what, seen: shown(seen) });
    },
    hint: (holds, rule, what, seen) => {
      if (!holds) hints.push({ rule, due: what, seen: shown(seen) });
    },
    pass: async (ms) => {
      await patience.pass(ms);
      checkFaults();
    },
    queue,
    effect: (key, ms = 0, options) => queue("test.effect", { key, ms }, options),
    final: async (order, rule = "R7.3", withinMs = SOON_MS) => due(rule, `a final ack of ${order.commandId} (${order.type})`, () => order.final, withinMs),
    effectLines,
    ran: (key) => {
      const lines = effectLines();
      return { begun: lines.filter((line) => line === `begin ${key}`).length, ended: lines.filter((line) => line === `end ${key}`).length };
    },
    files: () => [...filesBelow(stateFolder), ...(existsSync(identityFile) ? [identityFile] : [])],
    kill: () => running().kill(),
    finish: async () => {
      await agent?.kill();
      checkFaults();
      return hints;
    },
    abandon: async () => void (await agent?.kill()),
    get hasStarted() {
      return agent !== null;
    },
  };
};

/** Whole milliseconds between one and the next, rounded down, so that a bound in whole ones holds exactly. */
export const gapsOf = (times: readonly number[]): readonly number[] => times.slice(1).map((atMs, n) => Math.floor(atMs - (times[n] ?? 0)));

export const notObservable = (why: string): never => {
  throw new NotObservable(why);
};
