// One trial: a fleet and its load on a rig, trouble while it runs, rest, and the judgement of every id.

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
import { countViolations, type Gap, judge, type Verdict, VIOLATIONS, yesInGap } from "./checker.ts";
import { createHistory, type History, recorded, watched } from "./history.ts";
import { type Rig, urlOf } from "./rig.ts";
import { hurried, type Outcome, type Scale } from "./scenario.ts";
import type { MakeShortcut } from "./shortcuts.ts";
import { readTruth } from "./truth.ts";

const CONNECT_MS = 45_000;
const REST_MS = 60_000;
/** When some are known never to come to rest, the rest is not waited for that long. */
const IMPATIENT_REST_MS = 6_000;

/** What the trouble-maker has in hand. */
export interface Stage {
  readonly rig: Rig;
  readonly group: AgentGroup;
  readonly members: readonly PairedDevice[];
  readonly random: Random;
  /** False when the load has ended. */
  readonly running: () => boolean;
  /** Writes down that something was broken now. */
  readonly fault: (what: string) => void;
  /** From now until the answer is called, nothing can truly be answered 2xx. */
  readonly gap: () => () => void;
  /** Ends early with the load. */
  readonly wait: (forMs: number) => Promise<void>;
}

export interface TrialOptions {
  readonly rig: Rig;
  readonly seed: number;
  readonly scale: Scale;
  readonly members?: readonly PairedDevice[];
  readonly tune?: (member: PairedDevice, base: AgentOptions, index: number) => AgentOptions;
  /** Told of each agent as it is made, for companions of it. */
  readonly beside?: (options: AgentOptions) => void;
  readonly pollOnlyPct?: number;
  readonly heartbeatSec?: number;
  readonly trouble?: (stage: Stage) => Promise<void>;
  /** After the load and before the judgement, such as letting go of what was held. */
  readonly relief?: (stage: Stage) => Promise<void> | void;
  /** Control: the door says yes before the command is safe. */
  readonly shortcut?: MakeShortcut | null | undefined;
  /** The promise is broken on purpose: do not wait for what cannot come. */
  readonly impatient?: boolean;
}

export interface Trial extends Outcome {
  readonly verdict: Verdict;
  readonly group: { readonly connected: number; readonly size: number; readonly reconnects: number };
  readonly tracker: CommandTracker;
  readonly history: History;
}

const patienceFor = (forMs: number): RetryOptions => ({ time, random: Math.random, untilMs: time.elapsedMs() + forMs });

const notesOf = (verdict: Verdict, load: Load, group: AgentGroup): readonly string[] => {
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
    url: urlOf(rig.agentDoor),
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
    const stage: Stage = {
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
    const verdict = judge(history.lines, truth);
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
