// The shape of a scenario and what scenarios share.

import { systemTime, type Time } from "../../agent-sim/agent/index.ts";
import type { Percentiles } from "../../agent-sim/fleet/latency.ts";
import type { Portal, PortalCommand } from "../../agent-sim/fleet/portal.ts";

export interface Scale {
  readonly agents: number;
  readonly perSecond: number;
  readonly seconds: number;
  /** Agents wait this many times shorter than in the field, so that minutes of backoff do not make hours of tests. */
  readonly haste: number;
}
// At this haste the longest backoff of 300 s ends within the minute that each run has to settle.
export const SCALES = {
  full: { agents: 120, perSecond: 60, seconds: 20, haste: 6 },
  short: { agents: 16, perSecond: 20, seconds: 5, haste: 10 },
} as const satisfies Readonly<Record<string, Scale>>;

export interface Context {
  readonly seed: number;
  readonly scale: Scale;
  /** Whether the rig breaks the guarantee on purpose, which the checker must notice. */
  readonly control: boolean;
}

export interface ScenarioOutcome {
  /** The number of chances to break the promise. */
  readonly n: number;
  readonly faults: number;
  /** Counts by name; every count above zero is a broken promise. */
  readonly violations: Readonly<Record<string, number>>;
  readonly latencyMs: Percentiles;
  /** What the figures measure, and other remarks. */
  readonly notes: readonly string[];
}

export interface Scenario {
  readonly name: string;
  /** The number of the promise in the reliability design. */
  readonly promise: string;
  readonly claim: string;
  readonly control: {
    /** How the guarantee is broken. */
    readonly how: string;
    /** The violations that the checker must report then, each of them. */
    readonly red: string | readonly string[];
  };
  readonly needsRedis?: boolean;
  run(context: Context): Promise<ScenarioOutcome>;
}

/** Whether the checker has seen everything that the control breaks. */
export const isRed = ({ control: { red } }: Pick<Scenario, "control">, { violations }: Pick<ScenarioOutcome, "violations">): boolean =>
  [red].flat().every((kind) => (violations[kind] ?? 0) > 0);

export const hurried = (haste: number): Time => ({ ...systemTime, after: (delayMs, run) => systemTime.after(delayMs / haste, run) });

/** The same portal with changed commands. It restores the payload's `request` and `target` after `change`. */
export const asking = (portal: Portal, change: (command: PortalCommand) => PortalCommand): Portal => ({
  ...portal,
  queue: (command, key, patience) => {
    const changed = change(command);
    return portal.queue({ ...changed, payload: { ...changed.payload, request: command.payload["request"], target: command.payload["target"] } }, key, patience);
  },
});

export const totalOf = ({ violations }: Pick<ScenarioOutcome, "violations">): number => Object.values(violations).reduce((sum, count) => sum + count, 0);
