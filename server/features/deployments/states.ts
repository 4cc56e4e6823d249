// The states of a deployment and the changes between them. A change that is not listed here does not happen.
import type { DeploymentStatus } from "../../../protocol/index.ts";
import { createStateMachine } from "../../core/structures/state-machine.ts";

const NEXT: Readonly<Record<DeploymentStatus, readonly DeploymentStatus[]>> = {
  pending: ["queued", "cancelling", "deleting"],
  queued: ["deploying", "failed", "cancelling", "deleting"],
  deploying: ["active", "failed", "cancelling", "deleting"],
  active: ["updating", "rolling_back", "stopping", "failed", "deleting"],
  // It is active again, or has stopped, by its agent's word.
  failed: ["queued", "rolling_back", "stopping", "active", "stopped", "deleting"],
  updating: ["active", "rolling_back", "failed", "deleting"],
  rolling_back: ["active", "failed", "deleting"],
  stopping: ["stopped", "failed", "deleting"],
  stopped: ["queued", "deleting"],
  cancelling: ["cancelled", "deleting"],
  cancelled: ["deleting"],
  deleting: ["deleted", "failed"],
  deleted: [],
};

export const DEPLOYMENT_TARGET = {
  queue: "queued",
  began: "deploying",
  ran: "active",
  failed: "failed",
  update: "updating",
  rollBack: "rolling_back",
  stop: "stopping",
  stopped: "stopped",
  cancel: "cancelling",
  cancelled: "cancelled",
  remove: "deleting",
  removed: "deleted",
} as const satisfies Readonly<Record<string, DeploymentStatus>>;
export type DeploymentEvent = keyof typeof DEPLOYMENT_TARGET;

export const { move: moveDeployment, can: canMoveDeployment } = createStateMachine<DeploymentStatus, DeploymentEvent>(NEXT, DEPLOYMENT_TARGET);

const IN_PROGRESS: ReadonlySet<string> = new Set<DeploymentStatus>(["queued", "deploying", "updating", "rolling_back", "stopping", "cancelling", "deleting"]);
/** A command is open that will move it on. */
export const isInProgress = (status: string): boolean => IN_PROGRESS.has(status);
