// Moves deployments with their apps, in the same transaction: state, revisions, timeline and event.
import type { z } from "zod";
import { contract } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { type Emit, type Happened, happened } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";
import { addTimelineStep } from "../../core/structures/timeline.ts";
import type { AppMove, FollowApps } from "../apps/index.ts";
import { canMoveDeployment, type DeploymentEvent, moveDeployment } from "./states.ts";
import {
  type DeploymentChange,
  type DeploymentRow,
  insertRevisions,
  lockDeployments,
  type NewRevision,
  saveDeployment,
  saveFollowed,
} from "./store/deployments.ts";

export interface FollowDeps {
  readonly clock: Clock;
  readonly emit: Emit;
}

const { started, succeeded, failed, cancelled, stopped, rolledBack, deleted } = contract.deployments.events;

const ENDS: Readonly<Partial<Record<DeploymentEvent, typeof started | typeof stopped | typeof cancelled | typeof deleted>>> = {
  stopped,
  cancelled,
  removed: deleted,
};

/** The payload of every event of a deployment. */
export const eventData = (row: DeploymentRow, previous: DeploymentRow["status"] | null) => {
  const { deploymentId, name, template, deviceId, appId, revision, currentRevision, status } = row;
  return { deploymentId, name, template, deviceId, appId, revision, currentRevision, status, previous } satisfies z.input<typeof started.schema>;
};

const told = (scope: SystemScope, row: DeploymentRow, event: DeploymentEvent, previous: DeploymentRow["status"]) => {
  const data = eventData(row, previous);
  const { deploymentId, failure } = row;
  if (event === "failed" && failure !== null) {
    const { stage, reason, message, lines, commandId } = failure;
    return happened(scope, failed, deploymentId, { ...data, stage, reason, message, lines, commandId });
  }
  if (event === "ran" && previous === "rolling_back") return happened(scope, rolledBack, deploymentId, { ...data, failure });
  return happened(scope, event === "ran" ? succeeded : (ENDS[event] ?? started), deploymentId, data);
};

export interface DeploymentStep {
  readonly event: DeploymentEvent;
  readonly by: string;
  readonly patch?: DeploymentChange;
  readonly reason?: string | null;
}
export type TakeStep = (tx: Tx, scope: SystemScope, row: DeploymentRow, step: DeploymentStep) => Promise<DeploymentRow>;

/** Throws INVALID_STATE_TRANSITION unless the deployment's states list the change. */
const stepped = (row: DeploymentRow, { event, by, patch = {}, reason = null }: DeploymentStep, at: Date): DeploymentChange => {
  const to = moveDeployment(row.status, event);
  const next = { ...row, ...patch } as DeploymentRow; // as: a change holds plain values
  const revision = event === "ran" ? (next.currentRevision ?? next.revision) : next.revision;
  const timeline = addTimelineStep(row.timeline, { at: at.toISOString(), from: row.status, to, by, revision, commandId: next.commandId, reason });
  return { ...patch, ...(to === "deleted" ? { deletedAt: at } : {}), status: to, timeline };
};

// That the agent has begun is a step without an event of its own.
const eventOf = (scope: SystemScope, row: DeploymentRow, event: DeploymentEvent, previous: DeploymentRow["status"]): readonly Happened<typeof started>[] =>
  event === "began" ? [] : [told(scope, row, event, previous) as Happened<typeof started>]; // as: a union of events, each with its own payload

/** Throws INVALID_STATE_TRANSITION unless the deployment's states list the change. The deployment is locked. */
export const createTakeStep =
  ({ clock, emit }: FollowDeps): TakeStep =>
  async (tx, scope, row, step) => {
    const saved = await saveDeployment(tx, scope, row.deploymentId, stepped(row, step, clock.now()));
    await emit(tx, eventOf(scope, saved, step.event, row.status));
    return saved;
  };

/** What the app's change means for its deployment. */
const eventsOf = ({ status }: DeploymentRow, { event }: AppMove): readonly DeploymentEvent[] => {
  switch (event) {
    case "created":
      return ["queue"];
    case "update":
      return [status === "active" ? "update" : "queue"];
    case "start":
      return ["queue"];
    case "restart":
      return [];
    case "remove":
      return status === "cancelled" ? [] : ["remove"];
    case "ran":
      return status === "queued" ? ["began", "ran"] : status === "active" ? [] : ["ran"];
    case "canceled":
      return ["cancelled"];
    case "removed":
      return status === "deleting" ? ["removed"] : [];
    case "failed":
      return canMoveDeployment(status, "failed") ? ["failed"] : [];
    default:
      return [event];
  }
};

const mirrored = ({ app }: AppMove): DeploymentChange => ({
  appId: app.appId,
  deviceId: app.deviceId,
  template: app.appType,
  templateVersion: app.templateVersion,
  configuration: app.config,
  revision: app.lastRevision,
  commandId: app.commandId,
  failure: app.failure,
});

const revisionOf = (row: DeploymentRow, { app, by, rolledBackTo }: AppMove): readonly NewRevision[] => {
  if (app.lastRevision <= row.revision) return [];
  const { appType, templateVersion, config, spec, lastRevision: revision } = app;
  return [{ deploymentId: row.deploymentId, revision, appType, templateVersion, config, spec, rolledBackTo, createdBy: by }];
};

export const createFollow =
  ({ clock, emit }: FollowDeps): FollowApps =>
  async (tx, scope, moves) => {
    const { tenantId, traceparent } = scope;
    // A deployment that a limited caller does not see is moved all the same.
    const own = { tenantId, ...(traceparent === undefined ? {} : { traceparent }) };
    const ids = moves.flatMap(({ app }) => app.deploymentId ?? []);
    const rows = await lockDeployments(tx, own, ids);
    const followed = moves.flatMap((move) => {
      const row = rows.get(move.app.deploymentId ?? "");
      return row === undefined ? [] : [{ row, move }];
    });
    await insertRevisions(
      tx,
      own,
      followed.flatMap(({ row, move }) => revisionOf(row, move)),
    );
    const events: Happened<typeof started>[] = [];
    const saved = followed.map(({ row, move }) => {
      const patch = { ...mirrored(move), ...(move.event === "ran" ? { currentRevision: move.app.revision } : {}) };
      const happening = eventsOf(row, move);
      let at = { ...row, ...(happening.length === 0 ? patch : {}), version: row.version + Math.max(1, happening.length) } as DeploymentRow; // as: plain values
      for (const event of happening) {
        const next = { ...at, ...stepped(at, { event, by: move.by, patch, reason: move.app.failure?.reason ?? null }, clock.now()) } as DeploymentRow;
        events.push(...eventOf(scope, next, event, at.status));
        at = next;
      }
      return at;
    });
    if (saved.length === 0) return;
    await saveFollowed(tx, own, saved);
    await emit(tx, events);
  };
