// Tells the gateway what the device runs, on every change and once a minute, and carries out a desired state of which no command has told.
import { z } from "zod";
import type { DesiredApp } from "../../protocol/records/apps/app-spec.ts";
import { type Agent, callWithRetry, type HttpAnswer, NoAnswer, noop, retryAfterMs, type Time } from "../agent/index.ts";
import { type Host, HostClosed, HostFailure, type Secrets } from "./host.ts";

const EVERY_MS = 60_000;
/** Several changes at once make one report. */
const SOON_MS = 250;
const AGAIN_MS = 5_000;
/** How long an app that starts waits for its secrets. */
const SECRETS_MS = 30_000;

const Reported = z.object({ data: z.object({ desiredVersion: z.int().catch(0) }) });
const Desired = z.object({ data: z.object({ version: z.int(), apps: z.array(z.unknown()) }) });
const Fetched = z.object({ data: z.record(z.string(), z.string()) });

type Call = Agent["call"];

/** The secrets of an app, by a signed call. A gateway that starts anew or has too much to do must not fail a deployment. */
export const fetchSecretsBy =
  (call: Call, time: Time) =>
  async (appId: string): Promise<Secrets> => {
    const patience = { time, random: Math.random, untilMs: time.elapsedMs() + SECRETS_MS };
    const answer = await callWithRetry(() => call("GET", `/v1/apps/${encodeURIComponent(appId)}/secrets`), patience);
    const secrets = Fetched.safeParse(answer.body).data?.data;
    if (answer.status !== 200 || secrets === undefined) throw new Error(`the gateway answered ${answer.status}`);
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
}

export interface StateSync {
  start(): void;
  /** Something has changed: report soon. */
  changed(): void;
  stop(): void;
}

export const createStateSync = ({ host, call, time, applied }: StateSyncOptions): StateSync => {
  let cancel = noop;
  let stopped = true;
  let reporting = false;
  let again = false;
  let wasBehind = false;

  const applyAll = async (): Promise<void> => {
    const answer = await call("GET", "/v1/agent/desired-state");
    const desired = Desired.safeParse(answer.body).data?.data;
    if (answer.status !== 200 || desired === undefined) return;
    applied.raise(desired.version);
    const work = desired.apps.map((app) => host.apply(app as DesiredApp)); // as: the host parses it
    const isExpected = (reason: unknown): boolean => reason instanceof HostFailure || reason instanceof HostClosed;
    for (const outcome of await Promise.allSettled(work)) if (outcome.status === "rejected" && !isExpected(outcome.reason)) throw outcome.reason;
  };
  /** Returns the delay before the next report. */
  const report = async (): Promise<number> => {
    const answer: HttpAnswer = await call("PUT", "/v1/agent/reported-state", { version: applied.get(), apps: host.report() });
    if (answer.status !== 200) return retryAfterMs(answer) ?? EVERY_MS;
    const isBehind = (Reported.safeParse(answer.body).data?.data.desiredVersion ?? 0) > applied.get();
    // Mostly a command is on its way, so it gets a minute.
    if (isBehind && wasBehind) await applyAll();
    wasBehind = isBehind;
    return EVERY_MS;
  };
  const schedule = (delayMs: number): void => {
    cancel();
    if (!stopped) cancel = time.after(delayMs, () => void run());
  };
  const run = async (): Promise<void> => {
    [reporting, again] = [true, false];
    const waitMs = await report().catch((error: unknown) => {
      if (error instanceof NoAnswer) return AGAIN_MS;
      throw error;
    });
    reporting = false;
    schedule(again ? SOON_MS : waitMs);
  };
  return {
    start: () => {
      stopped = false;
      schedule(SOON_MS);
    },
    changed: () => {
      // The report under way may tell of the time before, and its end schedules the next one.
      if (reporting) again = true;
      else schedule(SOON_MS);
    },
    stop: () => {
      stopped = true;
      cancel();
    },
  };
};
