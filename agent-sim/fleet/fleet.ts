// A whole run: provisions devices, connects them, queues commands, waits until each has ended, and checks the result.
import {
  createHttp,
  createRandom,
  createRunAbort,
  type Http,
  type PairedDevice,
  type RetryOptions,
  sayWhileWaiting,
  systemTime as time,
  until,
} from "../agent/index.ts";
import { type AgentGroup, createAgentGroup } from "./agent-group.ts";
import { type CommandTracker, createCommandTracker } from "./command-tracker.ts";
import { allEnded, type DeploymentSummary, deployToFleet } from "./deployments.ts";
import { type AppFailures, failingIn } from "./fleet-apps.ts";
import type { UpdateShares } from "./fleet-updates.ts";
import type { Percentiles } from "./latency.ts";
import { type Load, startLoad } from "./load.ts";
import { createFleetMachines, type SimulatedMachine } from "./machines.ts";
import { createPortal, type PortalCredentials } from "./portal.ts";
import { provision } from "./provision.ts";
import { type Findings, verifyAll } from "./verify.ts";

export interface FleetOptions extends PortalCredentials {
  readonly url: string;
  /** Number of devices to provision. Ignored if `members` are given. */
  readonly agents: number;
  /** Devices that are already paired, instead of provisioned ones. */
  readonly members?: readonly PairedDevice[];
  /** The members' machines, in their order; default: made from the seed. */
  readonly machines?: readonly SimulatedMachine[];
  /** How the apps of the member at this place fail, instead of `failingApps`. */
  readonly appFailuresOf?: (index: number) => AppFailures | undefined;
  /** The apps may have been deployed before this run. */
  readonly mayHaveApps?: boolean;
  /** Duration of the load; Infinity: until the signal aborts. */
  readonly durationMs: number;
  /** Load before that, whose latencies are not counted. */
  readonly warmUpMs?: number;
  readonly commandsPerSecond: number;
  readonly seed: number;
  readonly heartbeatSec?: number | null;
  readonly pollOnlyPct?: number;
  readonly rampPerSecond?: number;
  /** Deployed to each device before the load. */
  readonly deployments?: number;
  /** The share of deployments that fail, from 0 to 1. */
  readonly failingApps?: number;
  /** The shares of ordered updates of the agent that do not work; default: none. */
  readonly updates?: UpdateShares;
  /** Time for open commands to end after the load. */
  readonly drainMs?: number;
  /** Ends the load; the run still waits for open commands and checks them. */
  readonly signal?: AbortSignal;
}

export type FleetPhase = "provisioning" | "connecting" | "deploying" | "running" | "draining" | "verifying" | "stopping";
export interface FleetProgress {
  readonly phase: FleetPhase;
  readonly elapsedSeconds: number;
  readonly agents: number;
  readonly connected: number;
  readonly heartbeats: number;
  readonly heartbeatsPerSecond: number;
  readonly reconnects: number;
  readonly accepted: number;
  readonly open: number;
  /** Create-to-ack latency of the last few thousand commands, without their simulated work. */
  readonly recent: Percentiles;
}
export interface FleetHooks {
  /** Called once a second. */
  onProgress?(progress: FleetProgress): void;
  /** Called with messages for the user. */
  onNotice?(text: string): void;
}

export interface Summary {
  readonly agents: number;
  readonly durationSeconds: number;
  readonly seed: number;
  readonly connected: number;
  readonly heartbeats: number;
  readonly reconnects: number;
  readonly commands: {
    readonly accepted: number;
    readonly terminal: number;
    readonly lost: number;
    readonly executedTwice: number;
    readonly byStatus: Readonly<Record<string, number>>;
  };
  readonly latencyMs: { readonly createToPush: Percentiles; readonly createToAck: Percentiles; readonly createToAckWithWork: Percentiles };
  /** Null: none were wanted. */
  readonly deployments: DeploymentSummary | null;
  readonly ok: boolean;
}

const PROVISION_MS = 300_000;
const CONNECT_MS = 90_000;
const DRAIN_MS = 60_000;
/** For the session of an agent that tries again. */
const OPENING_MS = 30_000;
const RAMP_PER_SECOND = 150;
const API_SOCKETS = 64;
/** The lowest rate at which a rate-limited gateway may allow reads. */
const SLOWEST_READS_PER_MINUTE = 60;

interface Stage {
  phase: FleetPhase;
  group: AgentGroup | null;
}
const report = (stage: Stage, tracker: CommandTracker, { onProgress }: FleetHooks): (() => void) => {
  const startMs = time.elapsedMs();
  let before = { heartbeats: 0, atMs: startMs };
  const tick = (): void => {
    const now = { heartbeats: stage.group?.heartbeats ?? 0, atMs: time.elapsedMs() };
    const perSecond = ((now.heartbeats - before.heartbeats) * 1_000) / Math.max(1, now.atMs - before.atMs);
    before = now;
    const { accepted, open } = tracker.counts;
    onProgress?.({
      phase: stage.phase,
      elapsedSeconds: Math.round((now.atMs - startMs) / 1_000),
      agents: stage.group?.size ?? 0,
      connected: stage.group?.connected ?? 0,
      heartbeats: now.heartbeats,
      heartbeatsPerSecond: Math.round(perSecond * 10) / 10,
      reconnects: stage.group?.reconnects ?? 0,
      accepted,
      open,
      recent: tracker.createToAck.recent(),
    });
  };
  const timer = setInterval(tick, 1_000);
  return () => clearInterval(timer);
};

const retryFor = (forMs: number, signal?: AbortSignal): RetryOptions => ({ time, random: Math.random, untilMs: time.elapsedMs() + forMs, signal });

/** Runs the load and waits, for a bounded time, until all commands have ended and all agents are connected. */
const runLoad = async (
  stage: Stage,
  group: AgentGroup,
  load: () => Load,
  { tracker, drainMs }: { readonly tracker: CommandTracker; readonly drainMs: number },
): Promise<{ readonly load: Load; readonly seconds: number }> => {
  stage.phase = "running";
  const startMs = time.elapsedMs();
  const running = load();
  await running.done;
  const seconds = Math.round((time.elapsedMs() - startMs) / 100) / 10;
  stage.phase = "draining";
  await until(time, () => running.outstanding === 0 && tracker.counts.open === 0 && group.connected === group.size, { everyMs: 50, withinMs: drainMs });
  // An agent that met no gateway several times waits longer than that, by the rules of the protocol. It is late only when the wait that it announced is over.
  await until(time, () => group.connected === group.size, { everyMs: 50, withinMs: group.longestWaitMs + OPENING_MS });
  return { load: running, seconds };
};

const summarize = (
  group: AgentGroup,
  tracker: CommandTracker,
  {
    options,
    load,
    findings,
    deployments,
    seconds,
  }: { readonly options: FleetOptions; readonly load: Load; readonly findings: Findings; readonly seconds: number } & Pick<Summary, "deployments">,
): Summary => {
  const { accepted, executedTwice } = tracker.counts;
  const { connected, heartbeats, reconnects, size } = group;
  const allKnown = load.refused === 0 && load.unresolved === 0 && load.outstanding === 0;
  return {
    agents: size,
    durationSeconds: seconds,
    seed: options.seed,
    connected,
    heartbeats,
    reconnects,
    commands: { accepted, terminal: findings.terminal, lost: findings.lost, executedTwice, byStatus: findings.byStatus },
    latencyMs: {
      createToPush: tracker.createToPush.percentiles(),
      createToAck: tracker.createToAck.percentiles(),
      createToAckWithWork: tracker.createToAckWithWork.percentiles(),
    },
    deployments,
    ok:
      size > 0 &&
      allEnded(deployments, (options.failingApps ?? 0) > 0) &&
      connected === size &&
      findings.terminal === accepted &&
      findings.lost === 0 &&
      executedTwice === 0 &&
      allKnown,
  };
};

const reportProblems = (
  { refused, unresolved, outstanding, firstProblem }: Load,
  { lost, examples, missing }: Findings & Pick<AgentGroup, "missing">,
  { onNotice }: FleetHooks,
): void => {
  if (refused > 0) onNotice?.(`the gateway refused ${refused} commands; the first: ${firstProblem}`);
  if (unresolved + outstanding > 0)
    onNotice?.(
      `${unresolved + outstanding} requests were never answered, so their commands may exist${firstProblem === null ? "" : `; the first: ${firstProblem}`}`,
    );
  if (missing.length > 0) onNotice?.(`${missing.length} agents are not connected; the first: ${missing[0]}`);
  if (lost > 0) onNotice?.(`lost commands, for example: ${examples.join(", ")}`);
};

interface AppsToDeploy {
  readonly options: FleetOptions;
  readonly members: readonly PairedDevice[];
  readonly signal: AbortSignal;
  readonly drainMs: number;
}
const deployApps = async (stage: Stage, http: Http, { options, members, signal, drainMs }: AppsToDeploy): Promise<DeploymentSummary | null> => {
  const { deployments: perDevice = 0 } = options;
  if (perDevice === 0) return null;
  stage.phase = "deploying";
  return deployToFleet({ http, credentials: options, members, perDevice, time, withinMs: drainMs, signal });
};

/** Rejects if the gateway refuses the devices or cannot be reached at the start; later failures end in `ok: false`. */
export const runFleet = async (options: FleetOptions, hooks: FleetHooks = {}): Promise<Summary> => {
  const { url, seed, commandsPerSecond, durationMs, warmUpMs = 0, drainMs = DRAIN_MS, signal = createRunAbort().signal } = options;
  const random = createRandom(seed);
  const http = createHttp(url, API_SOCKETS);
  const portal = createPortal(http, options);
  const tracker = createCommandTracker(time.elapsedMs);
  const stage: Stage = { phase: "provisioning", group: null };
  const stopReport = report(stage, tracker, hooks);
  try {
    const machines = options.machines ?? createFleetMachines({ count: options.agents, seed, time });
    const provisioning = {
      on: `${machines.length} devices from the gateway`,
      at: url,
      work: (onRetry: (reason: string) => void) => provision(portal, machines, { ...retryFor(PROVISION_MS, signal), onRetry }),
    };
    const members = options.members ?? (await sayWhileWaiting(provisioning, time, (line) => hooks.onNotice?.(line)));
    const rampPerSecond = options.rampPerSecond ?? RAMP_PER_SECOND;
    const group = createAgentGroup({
      url,
      members,
      tracker,
      time,
      random,
      seed,
      heartbeatSec: options.heartbeatSec ?? null,
      pollOnlyPct: options.pollOnlyPct ?? 0,
      rampPerSecond,
      machines,
      appFailures: failingIn(options.failingApps ?? 0),
      appFailuresOf: options.appFailuresOf,
      updates: options.updates,
      mayHaveApps: options.mayHaveApps,
      onAlarm: (text) => hooks.onNotice?.(text),
    });
    Object.assign(stage, { phase: "connecting", group });
    group.start();
    await until(time, () => group.connected === group.size, { everyMs: 50, withinMs: (group.size / rampPerSecond) * 1_000 + CONNECT_MS, signal });
    const deployments = await deployApps(stage, http, { options, members, signal, drainMs });
    const begin = (): Load =>
      startLoad({ portal, tracker, members, perSecond: commandsPerSecond, durationMs, warmUpMs, time, random, graceMs: drainMs, signal });
    const { load, seconds } = await runLoad(stage, group, begin, { tracker, drainMs });
    stage.phase = "verifying";
    const accepted = tracker.byDevice();
    const findings = await verifyAll(portal, accepted, retryFor(Math.max(drainMs, (accepted.size * 60_000) / SLOWEST_READS_PER_MINUTE)));
    const summary = summarize(group, tracker, { options, load, findings, deployments, seconds });
    reportProblems(load, { ...findings, missing: group.missing }, hooks);
    return summary;
  } finally {
    stage.phase = "stopping";
    await stage.group?.stop();
    stopReport();
    http.close();
  }
};
