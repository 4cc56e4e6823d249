// What a scenario is, and the words they share.

import { systemTime, type Time } from "../../agent-sim/agent/index.ts";
import type { Percentiles } from "../../agent-sim/fleet/latency.ts";
import type { NewCommand, Portal } from "../../agent-sim/fleet/portal.ts";

export interface Scale {
  readonly agents: number;
  readonly perSecond: number;
  readonly seconds: number;
  /** Agents' waits are this many times shorter than in the field, so that minutes of back-off do not make hours of tests. */
  readonly haste: number;
}
// Hurried like this, the longest back-off, 300 s, is over within the minute that everything is given to come to rest.
export const SCALES = {
  full: { agents: 120, perSecond: 60, seconds: 20, haste: 6 },
  short: { agents: 16, perSecond: 20, seconds: 5, haste: 10 },
} as const satisfies Readonly<Record<string, Scale>>;

export interface Context {
  readonly seed: number;
  readonly scale: Scale;
  /** The guarantee is broken on purpose, in the rig: the checker must see it. */
  readonly control: boolean;
}

export interface Outcome {
  /** How many chances there were to break the promise. */
  readonly n: number;
  readonly faults: number;
  /** Names and counts; everything but zero is a broken promise. */
  readonly violations: Readonly<Record<string, number>>;
  readonly latencyMs: Percentiles;
  /** What the figures are of, and what else is worth knowing. */
  readonly notes: readonly string[];
}

export interface Scenario {
  readonly name: string;
  /** As numbered in the reliability design, with what is promised in words. */
  readonly promise: string;
  readonly claim: string;
  readonly control: {
    /** How the guarantee is broken. */
    readonly how: string;
    /** The violation that must be seen then. */
    readonly red: string;
  };
  readonly needsRedis?: boolean;
  run(context: Context): Promise<Outcome>;
}

export const hurried = (haste: number): Time => ({ ...systemTime, after: (delayMs, run) => systemTime.after(delayMs / haste, run) });

/** The same portal, asked for other commands than the load thinks of. `change` sees the payload as it will be sent, and what it leaves of it is added to. */
export const asking = (portal: Portal, change: (command: NewCommand) => NewCommand): Portal => ({
  ...portal,
  queue: (command, key, patience) => {
    const changed = change(command);
    return portal.queue({ ...changed, payload: { ...changed.payload, request: command.payload["request"], target: command.payload["target"] } }, key, patience);
  },
});

export const totalOf = ({ violations }: Pick<Outcome, "violations">): number => Object.values(violations).reduce((sum, count) => sum + count, 0);
