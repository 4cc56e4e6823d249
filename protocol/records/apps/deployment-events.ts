// Events of deployments.
import { z } from "zod";
import { event } from "../../kit/event.ts";
import { AppId, CommandId, DeploymentId, DeviceId } from "../../kit/ids.ts";
import { AppFailure } from "./app.ts";
import { DeploymentStatus } from "./deployment.ts";

const DeploymentEvent = z.object({
  deploymentId: DeploymentId,
  name: z.string(),
  template: z.string().nullable(),
  deviceId: DeviceId.nullable(),
  appId: AppId.nullable(),
  revision: z.int(),
  currentRevision: z.int().nullable(),
  status: DeploymentStatus,
  previous: DeploymentStatus.nullable(),
});

export const deploymentEvents = {
  created: event("deployment.created", DeploymentEvent, "A deployment was created"),
  started: event(
    "deployment.started",
    DeploymentEvent,
    "A deployment began a change: it is deployed, updated, rolled back, started, stopped, cancelled or deleted",
  ),
  succeeded: event("deployment.succeeded", DeploymentEvent, "A deployment became active"),
  failed: event(
    "deployment.failed",
    DeploymentEvent.extend({ ...AppFailure.pick({ stage: true, reason: true, message: true, lines: true }).shape, commandId: CommandId.nullable() }),
    "A deployment failed",
  ),
  cancelled: event("deployment.cancelled", DeploymentEvent, "A deployment was cancelled before it became active"),
  stopped: event("deployment.stopped", DeploymentEvent, "A deployment was stopped"),
  rolledBack: event(
    "deployment.rolled_back",
    DeploymentEvent.extend({ failure: AppFailure.nullable().describe("Of the update that the agent took back by itself. `null`: somebody ordered it.") }),
    "A deployment is active in an earlier revision again",
  ),
  deleted: event("deployment.deleted", DeploymentEvent, "A deployment is gone, and its app with it"),
};
