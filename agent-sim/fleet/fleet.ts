// A whole run: provision or take devices, connect them, queue commands, wait for the end of each, and judge.
import { randomUUID } from "node:crypto";
import { createHttp, createRandom, type Member, type Patience, systemTime as time, until } from "../agent/index.ts";
import { type Crew, createCrew } from "./crew.ts";
import type { Percentiles } from "./latency.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { type Load, startLoad } from "./load.ts";
import { type Credentials, createPortal, type Portal } from "./portal.ts";
import { type Findings, verifyAll } from "./verify.ts";

export interface FleetOptions extends Credentials {
  readonly url: string;
  /** How many devices to provision. Without meaning when `members` are given. */
  readonly agents: number;
  /** Already paired devices; none are provisioned then. */
  readonly members?: readonly Member[];
  /** Of the load; may be Infinity, until the signal. */
  readonly durationMs: number;
  /** Load before the duration, whose latencies are not counted. */
  readonly warmUpMs?: number;
  readonly commandsPerSecond: number;
  readonly seed: number;
  readonly heartbeatSec?: number | null;
  readonly pollOnlyPct?: number;
  readonly rampPerSecond?: number;
  /** How long the fleet may take to come to rest after the load. */
  readonly drainMs?: number;
  /** Ends the load; the run then comes to rest and is judged as always. */
  readonly signal?: AbortSignal;
}

export type Phase = "provisioning" | "connecting" | "running" | "draining" | "verifying" | "stopping";
export interface Progress {
  readonly phase: Phase;
  readonly elapsedSeconds: number;
  readonly agents: number;
  readonly connected: number;
  readonly heartbeats: number;
  readonly heartbeatsPerSecond: number;
  readonly reconnects: number;
  readonly accepted: number;
  readonly open: number;
  /** Of the last few thousand commands, create to ack. */
  readonly recent: Percentiles;
}
export interface FleetHooks {
  /** Once a second. */
  onProgress?(progress: Progress): void;
  /** Something a person should read. */
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
  readonly latencyMs: { readonly createToPush: Percentiles; readonly createToAck: Percentiles };
  readonly ok: boolean;
}

const PROVISION_CHUNK = 1_000;
const PROVISION_MS = 300_000;
const CONNECT_MS = 90_000;
const DRAIN_MS = 60_000;
const RAMP_PER_SECOND = 150;
const API_SOCKETS = 64;
/** A limited gateway may allow no more than this many reads a minute. */
const SLOWEST_READS_PER_MINUTE = 60;

const provision = async (portal: Portal, count: number, patience: Patience): Promise<readonly Member[]> => {
  const run = randomUUID().slice(0, 8);
  const members: Member[] = [];
  while (members.length < count && !patience.signal?.aborted) {
    const size = Math.min(PROVISION_CHUNK, count - members.length);
    const fingerprints = Array.from({ length: size }, (_, n) => `sim-${run}-${String(members.length + n).padStart(5, "0")}`);
    members.push(...(await portal.provision(fingerprints, randomUUID(), patience)));
  }
  return members;
};

interface Stage {
  phase: Phase;
  crew: Crew | null;
}
const report = (stage: Stage, ledger: Ledger, { onProgress }: FleetHooks): (() => void) => {
  const startMs = time.elapsedMs();
  let before = { heartbeats: 0, atMs: startMs };
  const tick = (): void => {
    const now = { heartbeats: stage.crew?.heartbeats ?? 0, atMs: time.elapsedMs() };
    const perSecond = ((now.heartbeats - before.heartbeats) * 1_000) / Math.max(1, now.atMs - before.atMs);
    before = now;
    const { accepted, open } = ledger.counts;
    onProgress?.({
      phase: stage.phase,
      elapsedSeconds: Math.round((now.atMs - startMs) / 1_000),
      agents: stage.crew?.size ?? 0,
      connected: stage.crew?.connected ?? 0,
      heartbeats: now.heartbeats,
      heartbeatsPerSecond: Math.round(perSecond * 10) / 10,
      reconnects: stage.crew?.reconnects ?? 0,
      accepted,
      open,
      recent: ledger.createToAck.recent(),
    });
  };
  const timer = setInterval(tick, 1_000);
  return () => clearInterval(timer);
};

const patienceFor = (forMs: number, signal?: AbortSignal): Patience => ({ time, random: Math.random, untilMs: time.elapsedMs() + forMs, signal });

/** Sends the load and waits until everything here has come to rest, bounded. */
const exercise = async (
  stage: Stage,
  crew: Crew,
  load: () => Load,
  { ledger, drainMs }: { readonly ledger: Ledger; readonly drainMs: number },
): Promise<{ readonly load: Load; readonly seconds: number }> => {
  stage.phase = "running";
  const startMs = time.elapsedMs();
  const running = load();
  await running.done;
  const seconds = Math.round((time.elapsedMs() - startMs) / 100) / 10;
  stage.phase = "draining";
  await until(time, () => running.outstanding === 0 && ledger.counts.open === 0 && crew.connected === crew.size, { everyMs: 50, withinMs: drainMs });
  return { load: running, seconds };
};

const judge = (
  crew: Crew,
  ledger: Ledger,
  { options, load, findings, seconds }: { readonly options: FleetOptions; readonly load: Load; readonly findings: Findings; readonly seconds: number },
): Summary => {
  const { accepted, executedTwice } = ledger.counts;
  const { connected, heartbeats, reconnects, size } = crew;
  const allKnown = load.refused === 0 && load.unresolved === 0 && load.outstanding === 0;
  return {
    agents: size,
    durationSeconds: seconds,
    seed: options.seed,
    connected,
    heartbeats,
    reconnects,
    commands: { accepted, terminal: findings.terminal, lost: findings.lost, executedTwice, byStatus: findings.byStatus },
    latencyMs: { createToPush: ledger.createToPush.percentiles(), createToAck: ledger.createToAck.percentiles() },
    ok: size > 0 && connected === size && findings.terminal === accepted && findings.lost === 0 && executedTwice === 0 && allKnown,
  };
};

const remark = ({ refused, unresolved, outstanding, firstProblem }: Load, { lost, examples }: Findings, { onNotice }: FleetHooks): void => {
  if (refused > 0) onNotice?.(`${refused} commands were refused; the first: ${firstProblem}`);
  if (unresolved + outstanding > 0)
    onNotice?.(
      `${unresolved + outstanding} requests were never answered; nobody knows whether they count${firstProblem === null ? "" : `; the first: ${firstProblem}`}`,
    );
  if (lost > 0) onNotice?.(`lost, for example: ${examples.join(", ")}`);
};

/** Rejects when the gateway refuses or cannot be reached to begin with; later troubles end in `ok: false`. */
export const runFleet = async (options: FleetOptions, hooks: FleetHooks = {}): Promise<Summary> => {
  const { url, seed, commandsPerSecond, durationMs, warmUpMs = 0, drainMs = DRAIN_MS, signal = new AbortController().signal } = options;
  const random = createRandom(seed);
  const http = createHttp(url, API_SOCKETS);
  const portal = createPortal(http, options);
  const ledger = createLedger(time.elapsedMs);
  const stage: Stage = { phase: "provisioning", crew: null };
  const stopReport = report(stage, ledger, hooks);
  try {
    const members = options.members ?? (await provision(portal, options.agents, patienceFor(PROVISION_MS, signal)));
    const rampPerSecond = options.rampPerSecond ?? RAMP_PER_SECOND;
    const crew = createCrew({
      url,
      members,
      ledger,
      time,
      random,
      seed,
      heartbeatSec: options.heartbeatSec ?? null,
      pollOnlyPct: options.pollOnlyPct ?? 0,
      rampPerSecond,
      onAlarm: (text) => hooks.onNotice?.(text),
    });
    Object.assign(stage, { phase: "connecting", crew });
    crew.start();
    await until(time, () => crew.connected === crew.size, { everyMs: 50, withinMs: (crew.size / rampPerSecond) * 1_000 + CONNECT_MS, signal });
    const begin = (): Load =>
      startLoad({ portal, ledger, members, perSecond: commandsPerSecond, durationMs, warmUpMs, time, random, graceMs: drainMs, signal });
    const { load, seconds } = await exercise(stage, crew, begin, { ledger, drainMs });
    stage.phase = "verifying";
    const accepted = ledger.byDevice();
    const findings = await verifyAll(portal, accepted, patienceFor(Math.max(drainMs, (accepted.size * 60_000) / SLOWEST_READS_PER_MINUTE)));
    const summary = judge(crew, ledger, { options, load, findings, seconds });
    remark(load, findings, hooks);
    return summary;
  } finally {
    stage.phase = "stopping";
    await stage.crew?.stop();
    stopReport();
    http.close();
  }
};
