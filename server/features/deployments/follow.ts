// Moves a deployment with its app, in the same transaction: state, revisions, timeline and event.
import type { z } from "zod";
import { contract, type DeploymentId } from "../../../protocol/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { Tx } from "../../core/database.ts";
import { type Emit, type Happened, happened } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";
import { addTimelineStep } from "../../core/structures/timeline.ts";
import type { AppMove, FollowApp } from "../apps/index.ts";
import { canMoveDeployment, type DeploymentEvent, moveDeployment } from "./states.ts";
import { type DeploymentChange, type DeploymentRow, insertRevision, lockDeployment, saveDeployment } from "./store/deployments.ts";

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

/** Throws INVALID_STATE_TRANSITION unless the deployment's states list the change. The deployment is locked. */
export const createTakeStep =
  ({ clock, emit }: FollowDeps): TakeStep =>
  async (tx, scope, row, { event, by, patch = {}, reason = null }) => {
    const to = moveDeployment(row.status, event);
    const next = { ...row, ...patch } as DeploymentRow; // as: a change holds plain values
    const at = clock.now();
    const revision = event === "ran" ? (next.currentRevision ?? next.revision) : next.revision;
    const timeline = addTimelineStep(row.timeline, { at: at.toISOString(), from: row.status, to, by, revision, commandId: next.commandId, reason });
    const deletedAt = to === "deleted" ? { deletedAt: at } : {};
    const saved = await saveDeployment(tx, scope, row.deploymentId, { ...patch, ...deletedAt, status: to, timeline });
    // That the agent has begun is a step without an event of its own.
    if (event !== "began") await emit(tx, [told(scope, saved, event, row.status) as Happened<typeof started>]); // as: a union of events, each with its own payload
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

const revise = async (tx: Tx, scope: SystemScope, row: DeploymentRow, { app, by, rolledBackTo }: AppMove): Promise<void> => {
  if (app.lastRevision <= row.revision) return;
  const { appType, templateVersion, config, spec, lastRevision: revision } = app;
  await insertRevision(tx, scope, { deploymentId: row.deploymentId, revision, appType, templateVersion, config, spec, rolledBackTo, createdBy: by });
};

export const createFollow = (take: TakeStep): FollowApp => {
  return async (tx, scope, move) => {
    const { tenantId, traceparent } = scope;
    // A deployment that a limited caller does not see is moved all the same.
    const own = { tenantId, ...(traceparent === undefined ? {} : { traceparent }) };
    const row = await lockDeployment(tx, own, move.app.deploymentId as DeploymentId); // as: only an app with a deployment is followed
    if (row === null) return;
    await revise(tx, own, row, move);
    const patch = { ...mirrored(move), ...(move.event === "ran" ? { currentRevision: move.app.revision } : {}) };
    const events = eventsOf(row, move);
    if (events.length === 0) await saveDeployment(tx, own, row.deploymentId, patch);
    let at = row;
    for (const event of events) at = await take(tx, scope, at, { event, by: move.by, patch, reason: move.app.failure?.reason ?? null });
  };
};
