// The one way in which an app changes its state: the row, its timeline, its event, and its deployment, in the caller's transaction.
import type { z } from "zod";
import { contract } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { type Emit, type Happened, happened } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";
import { addTimelineStep } from "../../core/structures/timeline.ts";
import type { AppRow } from "./record.ts";
import { type AppEvent, moveApp } from "./states.ts";
import type { AppPatch } from "./store/app-row.ts";
import { insertApp, type NewApp, saveApp } from "./store/apps.ts";
import { saveUpdated } from "./store/many.ts";

/** `created`: the app was inserted. `canceled`: the end of a command that was to be canceled. */
export type MoveEvent = AppEvent | "created" | "canceled";

export interface AppMove {
  /** After the change. */
  readonly app: AppRow;
  readonly event: MoveEvent;
  readonly by: string;
  /** The revision of the deployment that the new content repeats. */
  readonly rolledBackTo: number | null;
}
/** Moves the deployments of the apps with them, in the same transaction. */
export type FollowApps = (tx: Tx, scope: SystemScope, moves: readonly AppMove[]) => Promise<void>;

export interface AppStep {
  readonly event: AppEvent;
  readonly by: string;
  readonly patch?: AppPatch;
  readonly reason?: string | null;
  readonly rolledBackTo?: number | null;
}

export interface StepsDeps {
  readonly clock: Clock;
  readonly emit: Emit;
  readonly follow: FollowApps;
}

const { created, changed, installed, running, stopped, updated, failed, rolledBack, drifted, repaired, removed } = contract.apps.events;

const RAN: Readonly<Partial<Record<AppRow["status"], typeof installed | typeof updated | typeof running>>> = { installing: installed, updating: updated };

const dataOf = (app: AppRow, previous: AppRow["status"] | null): z.input<typeof changed.schema> => {
  const { appId, deviceId, deploymentId, name, appType, templateVersion, revision, status } = app;
  return { appId, deviceId, deploymentId, name, appType, templateVersion, revision, status, previous };
};

const told = (scope: SystemScope, app: AppRow, event: MoveEvent, previous: AppRow["status"] | null) => {
  const { appId } = app;
  const data = dataOf(app, previous);
  if (event === "created") return happened(scope, created, appId, data);
  if (event === "failed" && app.failure !== null) return happened(scope, failed, appId, { ...data, failure: app.failure });
  if (event === "stopped") return happened(scope, stopped, appId, data);
  if (event === "removed") return happened(scope, removed, appId, data);
  if (event !== "ran") return happened(scope, changed, appId, data);
  if (previous === "rolling_back") return happened(scope, rolledBack, appId, { ...data, failure: app.failure });
  return happened(scope, RAN[previous ?? "pending"] ?? running, appId, data);
};

export interface Steps {
  insert(tx: Tx, scope: SystemScope, made: Omit<NewApp, "timeline">, by: string): Promise<AppRow>;
  /** Throws INVALID_STATE_TRANSITION unless the app's states list the change. The app is locked. */
  take(tx: Tx, scope: SystemScope, app: AppRow, step: AppStep): Promise<AppRow>;
  /** The same for apps that have got an order to update, each with its whole patch, in one statement. */
  takeAll(tx: Tx, scope: SystemScope, steps: readonly (AppStep & { readonly app: AppRow })[]): Promise<void>;
  /** Tells that the app differs now from what should be, or does no more, in the same state. */
  drift(tx: Tx, scope: SystemScope, app: AppRow): Promise<void>;
  /** The deployment learns that the canceled command has ended. */
  canceled(tx: Tx, scope: SystemScope, app: AppRow, by: string): Promise<void>;
}

export const createSteps = ({ clock, emit, follow }: StepsDeps): Steps => {
  const at = (): string => clock.now().toISOString();
  const tell = async (tx: Tx, scope: SystemScope, moves: readonly (AppMove & { readonly previous: AppRow["status"] | null })[]): Promise<void> => {
    // as: a union of events, each with its own payload
    await emit(
      tx,
      moves.map(({ app, event, previous }) => told(scope, app, event, previous) as Happened<typeof changed>),
    );
    const followed = moves.filter(({ app }) => app.deploymentId !== null);
    if (followed.length > 0) await follow(tx, scope, followed);
  };
  const stepped = (app: AppRow, { event, by, patch = {}, reason = null }: AppStep): Pick<AppRow, "status" | "timeline"> => {
    const status = moveApp(app.status, event);
    const { revision, commandId } = { ...app, ...patch };
    return { status, timeline: addTimelineStep(app.timeline, { at: at(), from: app.status, to: status, by, revision, commandId, reason }) };
  };
  return {
    insert: async (tx, scope, made, by) => {
      const step = { at: at(), from: null, to: "pending", by, revision: 1, commandId: made.commandId, reason: null };
      const app = await insertApp(tx, scope, { ...made, timeline: addTimelineStep([], step) });
      await tell(tx, scope, [{ app, event: "created", by, rolledBackTo: null, previous: null }]);
      return app;
    },
    take: async (tx, scope, app, step) => {
      const { event, by, patch = {}, rolledBackTo = null } = step;
      const moved = stepped(app, step);
      const removedAt = moved.status === "removed" ? { removedAt: clock.now() } : {};
      const saved = await saveApp(tx, scope, app.appId, { ...patch, ...removedAt, ...moved, version: { increment: 1 } });
      await tell(tx, scope, [{ app: saved, event, by, rolledBackTo, previous: app.status }]);
      return saved;
    },
    takeAll: async (tx, scope, steps) => {
      const moves = steps.map(({ app, ...step }) => {
        const { event, by, patch = {}, rolledBackTo = null } = step;
        const saved = { ...app, ...patch, ...stepped(app, step) } as AppRow; // as: a change holds plain values
        return { app: saved, event, by, rolledBackTo, previous: app.status };
      });
      await saveUpdated(
        tx,
        scope,
        moves.map(({ app }) => app),
      );
      await tell(tx, scope, moves);
    },
    drift: (tx, scope, app) => emit(tx, [happened(scope, app.driftSince === null ? repaired : drifted, app.appId, dataOf(app, app.status))]),
    canceled: async (tx, scope, app, by) => {
      if (app.deploymentId !== null) await follow(tx, scope, [{ app, event: "canceled", by, rolledBackTo: null }]);
    },
  };
};
