// Events of apps.
import { z } from "zod";
import { event } from "../../kit/event.ts";
import { AppId, DeploymentId, DeviceId, id } from "../../kit/ids.ts";
import { AppFailure, AppStatus } from "./app.ts";

const AppEvent = z.object({
  appId: AppId,
  deviceId: DeviceId,
  deploymentId: DeploymentId.nullable(),
  name: z.string(),
  appType: z.string(),
  templateVersion: z.string(),
  revision: z.int(),
  status: AppStatus,
  previous: AppStatus.nullable(),
});

export const appEvents = {
  created: event("app.created", AppEvent, "Somebody ordered an app for a device"),
  changed: event("app.changed", AppEvent, "An app began a change: it is installed, started, stopped, restarted, updated, rolled back or removed"),
  installed: event("app.installed", AppEvent, "An app runs for the first time"),
  running: event("app.running", AppEvent, "An app runs again"),
  stopped: event("app.stopped", AppEvent, "An app was stopped"),
  updated: event("app.updated", AppEvent, "An app runs in another revision"),
  failed: event("app.failed", AppEvent.extend({ failure: AppFailure }), "A change of an app failed, or the app stopped working"),
  rolledBack: event(
    "app.rolled_back",
    AppEvent.extend({ failure: AppFailure.nullable().describe("Of the update that the agent took back by itself. `null`: somebody ordered it.") }),
    "An app runs in an earlier revision again",
  ),
  drifted: event("app.drifted", AppEvent, "What the agent reports of an app differs from what should be, and nothing is under way to change that"),
  repaired: event("app.repaired", AppEvent, "An app is as it should be again, by its agent's report"),
  removed: event("app.removed", AppEvent, "An app is gone from its device"),
  snapshotCreated: event(
    "app.snapshot_created",
    z.object({ appId: AppId, snapshotId: id("snp"), revision: z.int(), automatic: z.boolean() }),
    "An app's configuration was kept",
  ),
};
