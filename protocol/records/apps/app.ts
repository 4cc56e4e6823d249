// Apps as people see them: their states, what they should be, what their agent reports, and their snapshots.
import { z } from "zod";
import { AppId, CommandId, DeploymentId, DeviceId, id, TenantId } from "../../kit/ids.ts";
import { named } from "../actor.ts";
import { AppHue, AppIcon } from "./app-picture.ts";
import { AppConfig, AppStage, ReportedApp } from "./app-spec.ts";

const Timestamp = z.iso.datetime();

export const APP_STATUSES = [
  "pending",
  "installing",
  "starting",
  "stopping",
  "restarting",
  "updating",
  "rolling_back",
  "removing",
  "running",
  "stopped",
  "error",
  "removed",
] as const;
export const AppStatus = z.enum(APP_STATUSES);
export type AppStatus = z.output<typeof AppStatus>;

/** The failure of an app, and of the deployment that it belongs to. */
export const AppFailure = z.object({
  stage: AppStage.nullable().describe("`null`: the command that ordered it did not reach the app."),
  reason: z.string().describe("For machines, such as `PORT_TAKEN`, `HEALTH_CHECK_FAILED`, `DEPLOY_TIMEOUT` or `COMMAND_EXPIRED`."),
  message: z.string(),
  revision: z.int(),
  commandId: CommandId.nullable().describe("The command that failed. `null`: the app failed later."),
  lines: z.array(z.string()).describe("The last lines of the app's log, at most 20 and 4 KiB, with secrets masked."),
});
export type AppFailure = z.output<typeof AppFailure>;

export const App = z.object({
  id: AppId.describe("The same as `appId`."),
  appId: AppId,
  tenantId: TenantId,
  deploymentId: DeploymentId.nullable().describe("`null`: the app was created on its own."),
  deviceId: DeviceId.describe("The device that it runs on."),
  appType: z.string().describe("The template."),
  templateVersion: z.string(),
  name: z.string(),
  status: AppStatus,
  config: AppConfig.describe("With the template's defaults."),
  revision: z.int().describe("The one that should run. Rises with each change of template, version or configuration."),
  desiredState: z.enum(["running", "stopped", "removed"]),
  secretsVersion: z.int().describe("Rises with each change of the secrets; 0 for none."),
  secretKeys: z.array(z.string()).describe("The names of the secrets that are set."),
  reported: ReportedApp.omit({ appId: true, failure: true }).nullable().describe("The agent's last report. `null`: none yet."),
  reportedAt: Timestamp.nullable().describe("When the report last changed."),
  drift: z.boolean().describe("What the agent reported last differs from what should be, and no command is open that would change it."),
  driftSince: Timestamp.nullable().describe("When the reports began to differ. `null`: they do not, or there is none."),
  failure: AppFailure.nullable().describe("Why the last change failed, or why the app stopped working."),
  commandId: CommandId.nullable().describe("The command that carried out, or carries out, the last change."),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type App = z.output<typeof App>;

export const AppAddress = z.object({
  kind: z.enum(["lan", "tunnel", "domain"]).describe("`lan`: in the network of the device. `tunnel` and `domain`: from anywhere."),
  name: z.string().describe("Of the port, by the template."),
  url: z.string().describe("With the scheme `http` for pages, and `tcp` or `udp` for what no browser opens."),
  reachable: z
    .boolean()
    .nullable()
    .describe("Whether the app answers there, by its agent's last health check. `null`: nobody checks this port, or the agent has not yet."),
});
export type AppAddress = z.output<typeof AppAddress>;

/** An app as reads show it. */
export const AppDetails = named(App).extend({
  icon: AppIcon.describe("Of the template."),
  hue: AppHue.describe("Of the template."),
  addresses: z
    .array(AppAddress)
    .describe("Where the app answers, pages first. Empty: the agent has reported neither an address nor a hostname, or the app has no port."),
  runningSince: Timestamp.nullable().describe("When what runs was started, by the agent's report or else by the app's steps. `null`: it does not run."),
  update: z
    .object({ version: z.string(), notes: z.string().nullable().describe("What to know before, in Markdown.") })
    .nullable()
    .describe("The version that the catalogue has. `null`: the app has it, or the catalogue no longer has its template."),
  lastBackupAt: Timestamp.nullable().describe("When its last good backup was made. `null`: there is none, or the caller may not read backups."),
});
export type AppDetails = z.output<typeof AppDetails>;

const MAX_METADATA = { names: 50, characters: 8_192 };
/** All snapshots of an app are one answer. */
export const SnapshotMetadata = z
  .record(z.string().max(64), z.string().max(1_024))
  .refine((given) => Object.keys(given).length <= MAX_METADATA.names, `must have at most ${MAX_METADATA.names} names`)
  .refine((given) => JSON.stringify(given).length <= MAX_METADATA.characters, `must have at most ${MAX_METADATA.characters} characters as JSON`);

export const AppSnapshot = z.object({
  snapshotId: id("snp"),
  appId: AppId,
  revision: z.int(),
  appType: z.string(),
  templateVersion: z.string(),
  config: AppConfig,
  automatic: z.boolean().describe("Taken before an update or a rollback; the newest five are kept."),
  metadata: z.record(z.string(), z.string()),
  createdBy: z.string(),
  createdAt: Timestamp,
});
export type AppSnapshot = z.output<typeof AppSnapshot>;

/** The values by their names. */
export const AppSecrets = z.record(z.string(), z.string());
export const AppSecretKeys = z.object({ appId: AppId, keys: z.array(z.string()), secretsVersion: z.int() });

/** A step of an app or a deployment. */
export const TimelineStep = z.object({
  at: Timestamp,
  from: z.string().nullable(),
  to: z.string(),
  by: z.string().describe("Who caused it: a person, a key, the device or `system`."),
  revision: z.int(),
  commandId: CommandId.nullable(),
  reason: z.string().nullable(),
});
export type TimelineStep = z.output<typeof TimelineStep>;

export const Timeline = z.object({
  items: z.array(named(TimelineStep)).describe("Oldest first. Of more than 200 steps the first and the newest are kept."),
  waitsFor: z.object({ commandId: CommandId, deviceId: DeviceId }).nullable().describe("The command whose end causes the next step."),
});
export type Timeline = z.output<typeof Timeline>;
