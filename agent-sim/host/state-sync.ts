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

const Refused = z.object({ network: z.string(), reason: z.string() });
const Reported = z.object({
  data: z.object({ desiredVersion: z.int().catch(0), ignored: z.array(z.string()).catch([]), refused: z.array(Refused).catch([]) }),
});
const Desired = z.object({ data: z.object({ version: z.int(), apps: z.array(z.unknown()) }) });
const Fetched = z.object({ data: z.record(z.string(), z.string()) });

type Call = Agent["call"];

/** The gateway takes no more. */
const MAX_ADVERTISED = 10;
const saidOf = (tunnels: readonly ReportedTunnel[], networks: readonly string[]) => ({
  ...(tunnels.length === 0 ? {} : { tunnels }),
  ...(networks.length === 0 ? {} : { advertises: networks.slice(0, MAX_ADVERTISED).map((network) => network.slice(0, 64)) }),
});

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
  /** A desired state was read, and is carried out from now on. */
  readonly onRead?: (version: number, apps: readonly unknown[]) => void;
  /** How the device's tunnels fare; none: nothing is said of them. */
  readonly tunnels?: () => readonly ReportedTunnel[];
  /** Networks that this device offers to lead to; none: it offers none. */
  readonly advertises?: () => readonly string[];
  /** The gateway makes no routes of these networks. Told once for each reason. */
  readonly onRefused?: (refused: readonly string[]) => void;
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

/** Tells each of them once, and again only if it was missing in between. */
const createTeller = (tell: ((news: readonly string[]) => void) | undefined) => {
  const told = new Set<string>();
  return (all: readonly string[]): void => {
    const news = all.filter((each) => !told.has(each));
    for (const each of told) if (!all.includes(each)) told.delete(each);
    for (const each of news) told.add(each);
    if (news.length > 0) tell?.(news);
  };
};

export const createStateSync = (options: StateSyncOptions): StateSync => {
  const { host, call, time, applied, random = Math.random, tunnels = () => [], advertises = () => [], onRefused, onIgnored } = options;
  let stopped = true;
  let reporting = false;
  let again = false;
  let begun = false;
  let wasBehind = false;
  const pace = createReportPace(random);
  let tag: string | undefined;

  const applyAll = async (): Promise<void> => {
    const answer = await call("GET", "/v1/agent/desired-state", undefined, tag === undefined ? {} : { headers: { "if-none-match": tag } });
    const desired = Desired.safeParse(answer.body).data?.data;
    if (isUnchanged(answer) || !hasSucceeded(answer) || desired === undefined) return;
    tag = answer.headers.etag;
    applied.raise(desired.version);
    options.onRead?.(desired.version, desired.apps);
    const work = desired.apps.map((app) => host.apply(app as DesiredApp)); // as: the host parses it
    const isExpected = (reason: unknown): boolean => reason instanceof HostFailure || reason instanceof HostClosed;
    for (const outcome of await Promise.allSettled(work)) if (outcome.status === "rejected" && !isExpected(outcome.reason)) throw outcome.reason;
  };
  const tellIgnored = createTeller(onIgnored);
  const tellRefused = createTeller(onRefused);
  /** Returns the delay before the next report. */
  const report = async (): Promise<number> => {
    const answer = await call("PUT", "/v1/agent/reported-state", { version: applied.get(), apps: host.report(), ...saidOf(tunnels(), advertises()) });
    const waitMs = pace.afterAnswer(answer);
    if (!hasSucceeded(answer)) return waitMs;
    const { desiredVersion = 0, ignored = [], refused = [] } = Reported.safeParse(answer.body).data?.data ?? {};
    tellIgnored(ignored);
    tellRefused(refused.map(({ network, reason }) => `${network} (${reason})`));
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
