// What follows from an agent's word about an app: from the end of the command that was ordered, and from what it reports at any time.
import { Prisma } from "../../../prisma/generated/client.ts";
import { type AppFailure, contract, type DeviceId, ReportedApp } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Outcome, OutcomeHandler, OutcomeHandlers } from "../../core/command-outcomes.ts";
import type { Tx } from "../../core/database.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { SecretBox } from "../../platform/secrets.ts";
import { failureOf, failureSaid } from "./failures.ts";
import type { Orders } from "./orders.ts";
import type { AppRow } from "./record.ts";
import { openSecrets } from "./sealing.ts";
import { type AppEvent, canMoveApp, isInTransition } from "./states.ts";
import type { Steps } from "./steps.ts";
import { appsOnDevice, lockApp, raiseDesired, readDesired, saveApp } from "./store/apps.ts";
import { findContent } from "./store/snapshots.ts";

export interface AgentWordDeps {
  readonly clock: Clock;
  readonly secretBox: SecretBox;
  readonly steps: Steps;
  readonly orders: Orders;
}

export interface AgentReport {
  /** The desired state that the agent has applied. */
  readonly version: number;
  readonly apps: readonly ReportedApp[];
}

type Verb = keyof typeof contract.apps.commands;
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

/** Of an agent that says no more than that the app failed. */
const UNSAID = { stage: "running", reason: "FAILED", message: "The agent reports that the app failed." } as const;

const isOlderRunning = (row: AppRow, said: ReportedApp | null): said is ReportedApp =>
  said !== null && said.state === "running" && said.revision > 0 && said.revision < row.revision;

export interface AgentWord {
  readonly outcomes: OutcomeHandlers<typeof contract.apps>;
  report(tx: Tx, scope: SystemScope, deviceId: DeviceId, report: AgentReport): Promise<{ readonly desiredVersion: number; readonly ignored: string[] }>;
}

export const createAgentWord = ({ clock, secretBox, steps, orders }: AgentWordDeps): AgentWord => {
  const secretsOf = (scope: SystemScope, row: AppRow): readonly string[] => Object.values(openSecrets(secretBox, scope, row));

  /** Secrets never reach the row: the report's failure is kept only as the app's own. */
  const keep = (tx: Tx, scope: SystemScope, row: AppRow, said: ReportedApp, version: number): Promise<AppRow> =>
    saveApp(tx, scope, row.appId, {
      reported: { ...said, failure: null } as Prisma.InputJsonObject, // as: parsed JSON
      reportedVersion: version,
      reportedAt: clock.now(),
    });

  const fail = (tx: Tx, scope: SystemScope, row: AppRow, failure: AppFailure): Promise<AppRow> =>
    steps.take(tx, scope, row, { event: "failed", by: row.deviceId, reason: failure.reason, patch: { failure: failure as Prisma.InputJsonObject } }); // as: parsed JSON

  /** The agent restored an earlier revision by itself, which becomes the desired one. Null when we no longer know what was in it. */
  const takeBack = async (tx: Tx, scope: SystemScope, row: AppRow, said: ReportedApp, failure: AppFailure): Promise<AppRow | null> => {
    const content = await findContent(tx, scope, row.appId, said.revision);
    if (content === null) return null;
    // Reports that know the version before tell of the same revision, so the app keeps its own.
    await raiseDesired(tx, scope, row.deviceId);
    const by = row.deviceId;
    const patch = { failure: failure as Prisma.InputJsonObject }; // as: parsed JSON
    const back = row.status === "rolling_back" ? row : await steps.take(tx, scope, row, { event: "rollBack", by, reason: failure.reason, patch });
    const { config, spec, ...rest } = content;
    const restored = { ...patch, ...rest, config: config as Prisma.InputJsonObject, spec: spec as Prisma.InputJsonObject, revision: said.revision }; // as: parsed JSON
    return steps.take(tx, scope, back, { event: "ran", by, patch: restored });
  };

  const end = async (tx: Tx, scope: SystemScope, row: AppRow, { verb, outcome, said }: { readonly verb: Verb; readonly outcome: Ended; readonly said: ReportedApp | null }) => {
    const [event, state] = SUCCESS[verb];
    const by = row.deviceId;
    const isDone = outcome.kind === "succeeded" && said?.state === state && (state !== "running" || said.revision === row.revision);
    if (isDone) {
      const begun = row.status === "pending" ? await steps.take(tx, scope, row, { event: "began", by }) : row;
      // A late success ends what had been given up.
      if (!canMoveApp(begun.status, event)) return;
      await steps.take(tx, scope, begun, { event, by, patch: { failure: Prisma.DbNull } });
      return;
    }
    if (!isInTransition(row.status)) return;
    const own = said?.failure?.revision === row.revision ? said.failure : null;
    const failure = own === null ? failureOf(outcome as Outcome, row.revision, verb === "deploy") : failureSaid(own, outcome.commandId, secretsOf(scope, row));
    const isTakenBack = verb === "deploy" && (row.status === "updating" || row.status === "rolling_back") && isOlderRunning(row, said);
    const restored = isTakenBack ? await takeBack(tx, scope, row, said, failure) : null;
    if (restored === null) await fail(tx, scope, row, failure);
  };

  const cancel = async (tx: Tx, scope: SystemScope, row: AppRow): Promise<void> => {
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
      const row = isNews ? await keep(tx, scope, locked, said, payload.desiredVersion) : locked;
      // A later order has replaced this one.
      if (commandId !== row.commandId) return;
      if (row.cancelAsked) await cancel(tx, scope, row);
      else await end(tx, scope, row, { verb, outcome, said });
    };

  const recover = async (tx: Tx, scope: SystemScope, row: AppRow): Promise<void> => {
    const by = row.deviceId;
    const isRemoved = row.desiredState === "removed";
    const left = isRemoved ? await steps.take(tx, scope, row, { event: "remove", by }) : row;
    const event = isRemoved ? "removed" : row.desiredState === "stopped" ? "stopped" : "ran";
    await steps.take(tx, scope, left, { event, by, patch: { failure: Prisma.DbNull } });
  };

  /** What a report says about an app that no command is changing. */
  const settle = async (tx: Tx, scope: SystemScope, row: AppRow, said: ReportedApp): Promise<void> => {
    const { status, desiredState, revision } = row;
    const isAsDesired = said.state === desiredState && (desiredState !== "running" || said.revision === revision);
    if (status === "error" && isAsDesired) return recover(tx, scope, row);
    const own = said.failure?.revision === revision ? said.failure : null;
    if (status !== "running" || (own === null && said.state !== "failed")) return;
    const failure = failureSaid(own ?? { ...UNSAID, lines: [], revision }, null, secretsOf(scope, row));
    const restored = isOlderRunning(row, said) ? await takeBack(tx, scope, row, said, failure) : null;
    if (restored === null && said.state === "failed") await fail(tx, scope, row, failure);
  };

  const apply = async (tx: Tx, scope: SystemScope, seen: AppRow, said: ReportedApp, version: number): Promise<void> => {
    const locked = await lockApp(tx, scope, seen.appId);
    // Something was ordered that this report does not know yet, or it names a revision that never was.
    if (locked === null || version < locked.desiredVersion || version < locked.reportedVersion || said.revision > locked.lastRevision) return;
    const row = await keep(tx, scope, locked, said, version);
    if (row.status === "pending" && said.state === "installing") await steps.take(tx, scope, row, { event: "began", by: row.deviceId });
    else if (!isInTransition(row.status)) await settle(tx, scope, row, said);
  };

  const forget = async (tx: Tx, scope: SystemScope, seen: AppRow, version: number): Promise<void> => {
    const row = await lockApp(tx, scope, seen.appId);
    if (row === null || row.reported === null || version < row.desiredVersion || isInTransition(row.status)) return;
    await saveApp(tx, scope, row.appId, { reported: Prisma.DbNull, reportedVersion: version, reportedAt: clock.now() });
  };

  return {
    // as: the five commands have the same payload and the same output
    outcomes: Object.fromEntries(VERBS.map((verb) => [verb, handlerOf(verb)])) as unknown as OutcomeHandlers<typeof contract.apps>,
    report: async (tx, scope, deviceId, { version, apps }) => {
      const rows = await appsOnDevice(tx, scope, deviceId);
      const said = new Map(apps.map((app) => [app.appId as string, app]));
      for (const row of rows) {
        const report = said.get(row.appId);
        if (report !== undefined) await apply(tx, scope, row, report, version);
        else if (row.reported !== null) await forget(tx, scope, row, version);
      }
      const known = new Set<string>(rows.map(({ appId }) => appId));
      return { desiredVersion: await readDesired(tx, scope, deviceId), ignored: [...said.keys()].filter((appId) => !known.has(appId)) };
    },
  };
};
