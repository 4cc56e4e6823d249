// Tells the gateway what the device runs, on every change and once a minute, and carries out a desired state of which no command has told.
import { z } from "zod";
import type { DesiredApp } from "../../protocol/records/apps/app-spec.ts";
import type { ReportedTunnel } from "../../protocol/records/tunnel.ts";
import { type Agent, callWithRetry, createDueTimer, hasSucceeded, isUnchanged, type Random, refusal, type Time } from "../agent/index.ts";
import { type Host, HostClosed, HostFailure, type Secrets } from "./host.ts";
import { createReportPace } from "./report-pace.ts";

/** Several changes at once make one report. */
const SOON_MS = 250;
/** How long an app that starts waits for its secrets. */
const SECRETS_MS = 30_000;

const Reported = z.object({ data: z.object({ desiredVersion: z.int().catch(0), ignored: z.array(z.string()).catch([]) }) });
const Desired = z.object({ data: z.object({ version: z.int(), apps: z.array(z.unknown()) }) });
const Fetched = z.object({ data: z.record(z.string(), z.string()) });

type Call = Agent["call"];

const saidOf = (tunnels: readonly ReportedTunnel[]) => (tunnels.length === 0 ? {} : { tunnels });

/** The secrets of an app, by a signed call. A gateway that starts anew or has too much to do must not fail a deployment. */
export const fetchSecretsBy =
  (call: Call, time: Time) =>
  async (appId: string): Promise<Secrets> => {
    const patience = { time, random: Math.random, untilMs: time.elapsedMs() + SECRETS_MS };
    const answer = await callWithRetry(() => call("GET", `/v1/apps/${encodeURIComponent(appId)}/secrets`), patience);
    const secrets = Fetched.safeParse(answer.body).data?.data;
    if (!hasSucceeded(answer) || secrets === undefined) throw refusal("the gateway refused the secrets of an app", answer);
    return secrets;
  };

/** The newest version of the desired state that the agent has begun to carry out. */
export interface AppliedVersion {
  get(): number;
  raise(version: number): void;
}

export interface StateSyncOptions {
  readonly host: Pick<Host, "report" | "apply">;
  readonly call: Call;
  readonly time: Time;
  readonly applied: AppliedVersion;
  readonly random?: Random;
  /** How the device's tunnels fare; none: nothing is said of them. */
  readonly tunnels?: () => readonly ReportedTunnel[];
  /** The gateway knows nothing of these apps, which the device goes on running. Told once for each. */
  readonly onIgnored?: (appIds: readonly string[]) => void;
}

export interface StateSync {
  /** The first report comes within this time, because a whole site may be starting. */
  start(windowMs?: number): void;
  /** Something has changed: report soon. However often that happens, reports go on. */
  changed(): void;
  stop(): void;
}

export const createStateSync = ({ host, call, time, applied, random = Math.random, tunnels = () => [], onIgnored }: StateSyncOptions): StateSync => {
  let stopped = true;
  let reporting = false;
  let again = false;
  let begun = false;
  let wasBehind = false;
  const pace = createReportPace(random);
  let tag: string | undefined;
  const told = new Set<string>();

  const applyAll = async (): Promise<void> => {
    const answer = await call("GET", "/v1/agent/desired-state", undefined, tag === undefined ? {} : { headers: { "if-none-match": tag } });
    const desired = Desired.safeParse(answer.body).data?.data;
    if (isUnchanged(answer) || !hasSucceeded(answer) || desired === undefined) return;
    tag = answer.headers.etag;
    applied.raise(desired.version);
    const work = desired.apps.map((app) => host.apply(app as DesiredApp)); // as: the host parses it
    const isExpected = (reason: unknown): boolean => reason instanceof HostFailure || reason instanceof HostClosed;
    for (const outcome of await Promise.allSettled(work)) if (outcome.status === "rejected" && !isExpected(outcome.reason)) throw outcome.reason;
  };
  const tellIgnored = (ignored: readonly string[]): void => {
    const news = ignored.filter((appId) => !told.has(appId));
    for (const appId of told) if (!ignored.includes(appId)) told.delete(appId);
    for (const appId of news) told.add(appId);
    if (news.length > 0) onIgnored?.(news);
  };
  /** Returns the delay before the next report. */
  const report = async (): Promise<number> => {
    const answer = await call("PUT", "/v1/agent/reported-state", { version: applied.get(), apps: host.report(), ...saidOf(tunnels()) });
    const waitMs = pace.afterAnswer(answer);
    if (!hasSucceeded(answer)) return waitMs;
    const { desiredVersion = 0, ignored = [] } = Reported.safeParse(answer.body).data?.data ?? {};
    tellIgnored(ignored);
    const isBehind = desiredVersion > applied.get();
    // Mostly a command is on its way, so it gets a minute.
    if (isBehind && wasBehind) await applyAll();
    wasBehind = isBehind;
    return waitMs;
  };
  const timer = createDueTimer(time, () => void run());
  const schedule = (delayMs: number): void => {
    if (!stopped) timer.within(delayMs);
  };
  const run = async (): Promise<void> => {
    [reporting, again, begun] = [true, false, true];
    const waitMs = await report().catch(pace.afterError);
    reporting = false;
    schedule(again && !pace.isUnanswered() ? SOON_MS : waitMs);
  };
  return {
    start: (windowMs = 0) => {
      stopped = false;
      schedule(SOON_MS + random() * windowMs);
    },
    changed: () => {
      // The report under way may tell of the time before, and its end schedules the next one. The first report waits for its own moment.
      if (reporting) again = true;
      else if (begun && !pace.isUnanswered()) schedule(SOON_MS);
    },
    stop: () => {
      stopped = true;
      timer.cancel();
    },
  };
};
