// What follows from an agent's word about an app: from the end of the command that was ordered, and from what it reports at any time.
import { isDeepStrictEqual } from "node:util";
import { type AppFailure, type contract, type DeviceId, ReportedApp } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import type { Outcome, OutcomeHandler, OutcomeHandlers } from "../../core/ports/command-outcomes.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { SecretBox } from "../../platform/keys/secrets.ts";
import { openSecrets } from "./app-secrets.ts";
import { failureByEnd, failureSaid } from "./failures.ts";
import type { Orders } from "./orders.ts";
import { type AppRow, drifts } from "./record.ts";
import { type AppEvent, canMoveApp, isInTransition } from "./states.ts";
import type { AppStep, Steps } from "./steps.ts";
import { appsOnDevice, lockApp, raiseDesired, readDesired, saveApp } from "./store/apps.ts";
import { findContent } from "./store/snapshots.ts";

export interface AgentReportsDeps {
  readonly clock: Clock;
  readonly secretBox: SecretBox;
  readonly steps: Steps;
  readonly orders: Orders;
}

export interface AgentReport {
  /** The desired state that the agent has applied. */
  readonly version: number;
  readonly apps: readonly ReportedApp[];
  /** It tells of these apps, but not what: what is known of them stays. */
  readonly unread: readonly string[];
}

type Verb = Exclude<keyof typeof contract.apps.commands, "logs" | "followLogs">;
type Deploy = (typeof contract.apps.commands)["deploy"];
type Ended = Outcome<Deploy>;
const VERBS: readonly Verb[] = ["deploy", "start", "stop", "restart", "remove"];
/** The event of a success, and the state in which the agent then reports the app. */
const SUCCESS: Readonly<Record<Verb, readonly [AppEvent, ReportedApp["state"]]>> = {
  deploy: ["ran", "running"],
  start: ["ran", "running"],
  restart: ["ran", "running"],
  stop: ["stopped", "stopped"],
  remove: ["removed", "removed"],
};

/** The app in the agent's answer, also in that of a failure. */
const saidIn = (outcome: Ended, row: AppRow): ReportedApp | null => {
  const { success, data } = ReportedApp.safeParse((outcome.output as { readonly app?: unknown } | null | undefined)?.app);
  return success && data.appId === row.appId && data.revision <= row.lastRevision ? data : null;
};

/** The failure when an agent says no more than that the app failed. */
const UNSAID = { stage: "running", reason: "FAILED", message: "The agent reports that the app failed." } as const;

const isOlderRunning = (row: AppRow, said: ReportedApp | null): said is ReportedApp =>
  said !== null && said.state === "running" && said.revision > 0 && said.revision < row.revision;

/** Something was ordered that this report does not know yet, or it names a revision that never was. */
const isOutdated = ({ desiredVersion, reportedVersion, lastRevision }: AppRow, { revision }: ReportedApp, version: number): boolean =>
  version < desiredVersion || version < reportedVersion || revision > lastRevision;

/** What a report means for the app's state. Only the end of a command ends a change that is under way. */
const newsIn = (row: AppRow, said: ReportedApp): "began" | "recovered" | "broken" | null => {
  const { status, desiredState, revision } = row;
  if (status === "pending" && said.state === "installing") return "began";
  if (isInTransition(status)) return null;
  if (status === "error") return said.state === desiredState && (desiredState !== "running" || said.revision === revision) ? "recovered" : null;
  const isTakenBack = said.failure?.revision === revision && isOlderRunning(row, said);
  return status === "running" && (said.state === "failed" || isTakenBack) ? "broken" : null;
};

const kept = (said: ReportedApp): ReportedApp => ({ ...said, failure: null });
const withoutFigures = ({ cpuPercent: _cpu, memoryBytes: _memory, responseMs: _response, ...rest }: ReportedApp) => rest;
const saysTheSame = ({ reported }: AppRow, said: ReportedApp): boolean =>
  reported !== null && isDeepStrictEqual(withoutFigures(reported), withoutFigures(kept(said)));
/** Nothing but figures and the version is to be written: most reports say the same as the one before, also when another app of the device has changed. */
const isKnown = (row: AppRow, said: ReportedApp, version: number): boolean => {
  if (isOutdated(row, said, version)) return true;
  const isSettled = version === row.reportedVersion || drifts(row) === (row.driftSince !== null);
  return isSettled && saysTheSame(row, said) && newsIn(row, said) === null;
};

export interface ReportAnswer {
  readonly desiredVersion: number;
  readonly ignored: string[];
}
export interface AgentReports {
  readonly outcomes: Pick<OutcomeHandlers<typeof contract.apps>, Verb>;
  /** `heard`: what it told of apps that the device has. Their figures are still to be kept. */
  report(tx: Tx, scope: SystemScope, deviceId: DeviceId, report: AgentReport): Promise<ReportAnswer & { readonly heard: readonly ReportedApp[] }>;
}

/** An app that this transaction has locked. */
interface Held {
  readonly tx: Tx;
  readonly scope: SystemScope;
  readonly row: AppRow;
}
interface End {
  readonly verb: Verb;
  readonly outcome: Ended;
  readonly said: ReportedApp | null;
}

export const createAgentReports = ({ clock, secretBox, steps, orders }: AgentReportsDeps): AgentReports => {
  const secretsOf = ({ scope, row }: Held): readonly string[] => Object.values(openSecrets(secretBox, scope, row));
  const take = ({ tx, scope, row }: Held, step: Omit<AppStep, "by">): Promise<AppRow> => steps.take(tx, scope, row, { ...step, by: row.deviceId });

  /** Secrets never reach the row: the report's failure is kept only as the app's own. */
  const keep = ({ tx, scope, row }: Held, said: ReportedApp | null, version: number): Promise<AppRow> => {
    const reported = said === null ? null : kept(said);
    const reportedAt = clock.now();
    const driftSince = drifts({ ...row, reported }) ? (row.driftSince ?? reportedAt) : null;
    return saveApp(tx, scope, row.appId, { reported, reportedVersion: version, reportedAt, driftSince });
  };
  /** In the same state: whatever changes the state tells of that. */
  const tellDrift = async ({ tx, scope, row: before }: Held, after: AppRow): Promise<void> => {
    const isNew = (before.driftSince === null) !== (after.driftSince === null);
    if (isNew && !isInTransition(after.status)) await steps.drift(tx, scope, after);
  };

  const fail = (held: Held, failure: AppFailure): Promise<AppRow> => take(held, { event: "failed", reason: failure.reason, patch: { failure } });

  /** The agent restored an earlier revision by itself, which becomes the desired one. Null when we no longer know what was in it. */
  const takeBack = async (held: Held, said: ReportedApp, failure: AppFailure): Promise<AppRow | null> => {
    const { tx, scope, row } = held;
    const content = await findContent(tx, scope, row.appId, said.revision);
    if (content === null) return null;
    // Reports that know the version before tell of the same revision, so the app keeps its own.
    await raiseDesired(tx, scope, row.deviceId);
    const patch = { failure };
    const back = row.status === "rolling_back" ? row : await take(held, { event: "rollBack", reason: failure.reason, patch });
    return take({ ...held, row: back }, { event: "ran", patch: { ...patch, ...content, revision: said.revision } });
  };

  const end = async (held: Held, { verb, outcome, said }: End): Promise<void> => {
    const { row } = held;
    const [event, state] = SUCCESS[verb];
    if (outcome.kind === "succeeded" && said?.state === state && (state !== "running" || said.revision === row.revision)) {
      const begun = row.status === "pending" ? await take(held, { event: "began" }) : row;
      // A late success ends what had been given up.
      if (canMoveApp(begun.status, event)) await take({ ...held, row: begun }, { event, patch: { failure: null } });
      return;
    }
    if (!isInTransition(row.status)) return;
    const own = said?.failure?.revision === row.revision ? said.failure : null;
    // as: the handler of one type is a handler of commands
    const failure = own === null ? failureByEnd(outcome as Outcome, row.revision, verb === "deploy") : failureSaid(own, outcome.commandId, secretsOf(held));
    const isTakenBack = verb === "deploy" && (row.status === "updating" || row.status === "rolling_back") && isOlderRunning(row, said);
    const restored = isTakenBack ? await takeBack(held, said, failure) : null;
    if (restored === null) await fail(held, failure);
  };

  const cancel = async ({ tx, scope, row }: Held): Promise<void> => {
    await steps.canceled(tx, scope, row, "system");
    await orders.remove(tx, scope, row, { by: "system", keepVolumes: false });
  };

  const handlerOf =
    (verb: Verb): OutcomeHandler<Deploy> =>
    async (tx, outcome) => {
      const { scope, payload, commandId } = outcome;
      const locked = await lockApp(tx, scope, payload.app.appId);
      if (locked === null) return;
      const said = saidIn(outcome, locked);
      const isNews = said !== null && payload.desiredVersion >= locked.reportedVersion;
      const row = isNews ? await keep({ tx, scope, row: locked }, said, payload.desiredVersion) : locked;
      // A later order has replaced this one.
      if (commandId !== row.commandId) return;
      if (row.cancelAsked) await cancel({ tx, scope, row });
      else await end({ tx, scope, row }, { verb, outcome, said });
    };

  const recover = async (held: Held): Promise<void> => {
    const { row } = held;
    const isRemoved = row.desiredState === "removed";
    const left = isRemoved ? await take(held, { event: "remove" }) : row;
    const event = isRemoved ? "removed" : row.desiredState === "stopped" ? "stopped" : "ran";
    await take({ ...held, row: left }, { event, patch: { failure: null } });
  };

  const breakDown = async (held: Held, said: ReportedApp): Promise<void> => {
    const { row } = held;
    const own = said.failure?.revision === row.revision ? said.failure : null;
    const failure = failureSaid(own ?? { ...UNSAID, lines: [], revision: row.revision }, null, secretsOf(held));
    const restored = isOlderRunning(row, said) ? await takeBack(held, said, failure) : null;
    if (restored === null && said.state === "failed") await fail(held, failure);
  };

  const apply = async (tx: Tx, scope: SystemScope, said: ReportedApp, version: number): Promise<void> => {
    const locked = await lockApp(tx, scope, said.appId);
    if (locked === null || isOutdated(locked, said, version)) return;
    const held = { tx, scope, row: await keep({ tx, scope, row: locked }, said, version) };
    const news = newsIn(held.row, said);
    if (news === "began") await take(held, { event: "began" });
    else if (news === "recovered") await recover(held);
    else if (news === "broken") await breakDown(held, said);
    else await tellDrift({ ...held, row: locked }, held.row);
  };

  const forget = async (tx: Tx, scope: SystemScope, appId: string, version: number): Promise<void> => {
    const row = await lockApp(tx, scope, appId);
    if (row === null || row.reported === null || version < row.desiredVersion || isInTransition(row.status)) return;
    await tellDrift({ tx, scope, row }, await keep({ tx, scope, row }, null, version));
  };

  /** An agent that has applied this version although an app drifts gets a new version, which makes it carry out the desired state again. */
  const repair = async (tx: Tx, scope: SystemScope, deviceId: DeviceId, version: number): Promise<number> => {
    const desired = await readDesired(tx, scope, deviceId);
    if (version < desired) return desired;
    const isAmiss = (await appsOnDevice(tx, scope, deviceId)).some((row) => row.status !== "error" && drifts(row));
    return isAmiss ? raiseDesired(tx, scope, deviceId) : desired;
  };

  return {
    // as: the five commands have the same payload and the same output
    outcomes: Object.fromEntries(VERBS.map((verb) => [verb, handlerOf(verb)])) as unknown as AgentReports["outcomes"],
    report: async (tx, scope, deviceId, { version, apps, unread }) => {
      const rows = await appsOnDevice(tx, scope, deviceId);
      const said = new Map(apps.map((app) => [app.appId as string, app]));
      const heard: ReportedApp[] = [];
      for (const row of rows) {
        const report = said.get(row.appId);
        if (report !== undefined && !isOutdated(row, report, version)) heard.push(report);
        if (report !== undefined && !isKnown(row, report, version)) await apply(tx, scope, report, version);
        else if (report === undefined && row.reported !== null && !unread.includes(row.appId)) await forget(tx, scope, row.appId, version);
      }
      const known = new Set<string>(rows.map(({ appId }) => appId));
      return { desiredVersion: await repair(tx, scope, deviceId, version), ignored: [...said.keys()].filter((appId) => !known.has(appId)), heard };
    },
  };
};
