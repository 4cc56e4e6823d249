// One trial: a fleet under load on a rig, trouble while it runs, time to settle, and a check of every id.

import {
  type AgentOptions,
  createRandom,
  type PairedDevice,
  pause,
  type Random,
  type RetryOptions,
  systemTime as time,
  until,
} from "../../agent-sim/agent/index.ts";
import { type AgentGroup, createAgentGroup } from "../../agent-sim/fleet/agent-group.ts";
import { type CommandTracker, createCommandTracker } from "../../agent-sim/fleet/command-tracker.ts";
import { type Load, startLoad } from "../../agent-sim/fleet/load.ts";
import { type CheckerVerdict, checkHistory, countViolations, type Gap, VIOLATIONS, yesInGap } from "./check/checker.ts";
import { createHistory, type History, recorded, watched } from "./check/history.ts";
import { readTruth } from "./check/truth.ts";
import { type Rig, urlOf } from "./rig/rig.ts";
import type { MakeShortcut } from "./rig/shortcuts.ts";
import { hurried, type Scale, type ScenarioOutcome } from "./scenario.ts";

const CONNECT_MS = 45_000;
const REST_MS = 60_000;
/** A control may never settle, so it waits only this long. */
const IMPATIENT_REST_MS = 6_000;

/** The trouble-maker's tools. */
export interface TrialStage {
  readonly rig: Rig;
  readonly group: AgentGroup;
  readonly members: readonly PairedDevice[];
  readonly random: Random;
  /** False once the load has ended. */
  readonly running: () => boolean;
  /** Records a fault in the history. */
  readonly fault: (what: string) => void;
  /** Starts a gap in which no command can be stored; call the result to end it. */
  readonly gap: () => () => void;
  /** Waits, but no longer than the load runs. */
  readonly wait: (forMs: number) => Promise<void>;
}

export interface TrialOptions {
  readonly rig: Rig;
  readonly seed: number;
  readonly scale: Scale;
  readonly members?: readonly PairedDevice[];
  readonly tune?: (member: PairedDevice, base: AgentOptions, index: number) => AgentOptions;
  /** Called with the options of each agent, to start a companion. */
  readonly beside?: (options: AgentOptions) => void;
  readonly pollOnlyPct?: number;
  readonly heartbeatSec?: number;
  readonly trouble?: (stage: TrialStage) => Promise<void>;
  /** Runs after the load and before the check, to release held connections. */
  readonly relief?: (stage: TrialStage) => Promise<void> | void;
  /** Control: answers 2xx before the command is safe. */
  readonly shortcut?: MakeShortcut | null | undefined;
  /** The promise is broken on purpose, so do not wait for what cannot happen. */
  readonly impatient?: boolean;
}

export interface Trial extends ScenarioOutcome {
  readonly verdict: CheckerVerdict;
  readonly group: { readonly connected: number; readonly size: number; readonly reconnects: number };
  readonly tracker: CommandTracker;
  readonly history: History;
}

const patienceFor = (forMs: number): RetryOptions => ({ time, random: Math.random, untilMs: time.elapsedMs() + forMs });

const notesOf = (verdict: CheckerVerdict, load: Load, group: AgentGroup): readonly string[] => {
  const { accepted, okMultiDelivered, unknownApplied, unknownNotApplied, refused, byStatus } = verdict;
  const statuses = Object.entries(byStatus).map(([status, count]) => `${count} ${status}`);
  const examples = VIOLATIONS.flatMap((kind) => {
    const ids = verdict.violations[kind];
    return ids.length > 0 ? [`${kind}: ${ids.slice(0, 3).join(" ")}`] : [];
  });
  return [
    `${accepted} answered 2xx, ${okMultiDelivered} delivered more than once, unknown ${unknownApplied} applied / ${unknownNotApplied} not, ${refused} refused`,
    `ended as ${statuses.join(", ") || "-"}; ${group.reconnects} reconnects`,
    ...(load.firstProblem === null ? [] : [`first problem: ${load.firstProblem}`]),
    ...examples,
  ];
};

export const runTrial = async (options: TrialOptions): Promise<Trial> => {
  const { rig, seed, scale, trouble, relief, impatient = false } = options;
  const random = createRandom(seed);
  const members = options.members ?? (await rig.provision(scale.agents));
  const [tracker, history] = [createCommandTracker(time.elapsedMs), createHistory()];
  const shortcut = options.shortcut?.(rig) ?? null;
  const gaps: Gap[] = [];
  const portal = recorded(rig.portal, { history, elapsedMs: time.elapsedMs, shortcut });
  const group = createAgentGroup({
    url: urlOf(rig.agentProxy),
    members,
    tracker,
    time: hurried(scale.haste),
    random,
    seed,
    heartbeatSec: options.heartbeatSec ?? null,
    pollOnlyPct: options.pollOnlyPct ?? 0,
    rampPerSecond: 200,
    onAlarm: () => undefined,
    tune: (member, base, index) => {
      const tuned = watched(options.tune?.(member, base, index) ?? base, member, history, time.elapsedMs);
      options.beside?.(tuned);
      return tuned;
    },
  });
  const loadOver = new AbortController();
  try {
    group.start();
    const allIn = await until(time, () => group.connected === group.size, { everyMs: 50, withinMs: impatient ? IMPATIENT_REST_MS : CONNECT_MS });
    const stage: TrialStage = {
      rig,
      group,
      members,
      random,
      running: () => !loadOver.signal.aborted,
      fault: (id) => history.add({ op: "fault", phase: "info", id, actor: "rig", tMs: time.elapsedMs() }),
      gap: () => {
        const fromMs = time.elapsedMs();
        return () => void gaps.push({ fromMs, toMs: time.elapsedMs() });
      },
      wait: (forMs) => pause(time, forMs, loadOver.signal),
    };
    const restMs = impatient ? IMPATIENT_REST_MS : REST_MS;
    const signal = new AbortController().signal;
    const load = startLoad({ portal, tracker, members, perSecond: scale.perSecond, durationMs: scale.seconds * 1_000, time, random, graceMs: REST_MS, signal });
    const troubled = trouble?.(stage);
    await load.done;
    loadOver.abort();
    await troubled;
    await relief?.(stage);
    await until(time, () => load.outstanding === 0 && tracker.counts.open === 0 && group.connected === group.size, { everyMs: 50, withinMs: restMs });
    await Promise.race([shortcut?.rest(), pause(time, restMs)]);
    const truth = await readTruth(
      rig,
      members.map(({ deviceId }) => deviceId),
      patienceFor(impatient ? IMPATIENT_REST_MS : REST_MS),
    );
    const verdict = checkHistory(history.lines, truth);
    // The last reconnection that the scenario asked for may have begun after all were back.
    await until(time, () => group.connected === group.size, { everyMs: 50, withinMs: restMs });
    const { connected, size, reconnects } = group;
    return {
      verdict,
      tracker,
      history,
      group: { connected, size, reconnects },
      n: verdict.accepted,
      faults: history.faults,
      violations: {
        ...Object.fromEntries(VIOLATIONS.map((kind) => [kind, countViolations(verdict, [kind])])),
        "yes-in-gap": yesInGap(history.lines, gaps),
        "never-connected": allIn ? 0 : size,
        "left-offline": size - connected,
        unanswered: load.unresolved + load.outstanding,
        refused: load.refused,
      },
      latencyMs: tracker.createToAck.percentiles(),
      notes: notesOf(verdict, load, group),
    };
  } finally {
    loadOver.abort();
    await group.stop();
  }
};
