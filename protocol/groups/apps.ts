// Apps: instances of templates on devices. A change is an order for the device's agent; the app's state follows from what the agent reports.
import { z } from "zod";
import { Version } from "../kit/bounds.ts";
import { command } from "../kit/command-type.ts";
import { ref } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { cursorQuery, listQuery, paged } from "../kit/page.ts";
import { awaitedFields, MAX_WAIT_SECONDS } from "../kit/wait.ts";
import { named } from "../records/actor.ts";
import { App, AppDetails, AppSecretKeys, AppSecrets, AppSnapshot, AppStatus, SnapshotMetadata, Timeline } from "../records/apps/app.ts";
import { appEvents } from "../records/apps/app-events.ts";
import { ConfigInput, MAX_SECRETS, SecretsInput, SecretValue } from "../records/apps/app-input.ts";
import { LogBatch, LogLine, LogTail } from "../records/apps/app-log.ts";
import { appLogCommands, appLogOperations } from "../records/apps/app-log-operations.ts";
import { DesiredApp, ReportedApp, VariableName } from "../records/apps/app-spec.ts";
import { AppCategory, AppFits, AppTemplate, InstalledApp } from "../records/apps/app-template.ts";
import { ConfigProperty, ConfigSchema } from "../records/apps/config-schema.ts";
import { AppMetricRange, AppMetrics } from "../records/metrics.ts";

const Name = z.string().trim().min(1).max(100);
const one = z.strictObject({ appId: ref("app") });
const oneSnapshot = one.extend({ snapshotId: ref("snp") });
const requireOnline = z.boolean().default(false).describe("`true`: 409 `DEVICE_OFFLINE` while the device is not connected. Otherwise the order waits for it.");
const verb = one.extend({ requireOnline });

const people = { auth: ["user", "apiKey"] } as const;
const read = { ...people, permission: "app:read" } as const;
const update = { ...people, permission: "app:update" } as const;
const CHANGE = ["APP_NOT_FOUND", "INVALID_STATE_TRANSITION", "DEVICE_NOT_FOUND", "COMMAND_QUEUE_FULL"] as const;
const VERB = [...CHANGE, "DEVICE_OFFLINE"] as const;

const ordered = {
  payload: z.object({ app: DesiredApp, desiredVersion: z.int() }),
  output: z.object({ app: ReportedApp }),
  lane: "app",
} as const;

export const apps = group({
  tag: "Apps",
  records: {
    App,
    AppDetails,
    AppMetrics,
    AppSnapshot,
    AppTemplate,
    AppFits,
    InstalledApp,
    ConfigSchema,
    ConfigProperty,
    LogLine,
    LogBatch,
    AppSecrets,
    AppSecretKeys,
    Timeline,
    LogTail,
  },
  operations: {
    ...appLogOperations,
    templates: query({
      ...read,
      summary: "List the applications of the catalogue",
      rest: ["GET /app-templates"],
      list: "cursor",
      input: cursorQuery({
        category: AppCategory.optional().describe("Only applications of this category."),
        q: z.string().min(1).max(100).optional().describe("Only applications whose name, tagline or description contains this text."),
        available: z.boolean().optional().describe("Only applications that the tenant's plan allows, or only the others."),
        fits: z
          .boolean()
          .optional()
          .describe("Only applications that at least one device of the caller can run, or only the others. None match for callers who may not read devices."),
      }),
      output: paged(AppTemplate),
    }),
    template: query({
      ...read,
      summary: "Get an application of the catalogue",
      rest: ["GET /app-templates/{templateId}"],
      input: z.strictObject({ templateId: z.string().min(1).max(128).describe("Id of the template, such as `vaultwarden`.") }),
      output: AppTemplate,
      errors: ["APP_TEMPLATE_NOT_FOUND"],
    }),
    list: query({
      ...read,
      summary: "List apps",
      rest: ["GET /apps"],
      list: "page",
      input: listQuery({
        sort: ["createdAt", "name", "status"],
        by: "-createdAt",
        filters: {
          deviceId: ref("dev").optional().describe("Only apps on this device."),
          deploymentId: ref("dep").optional().describe("Only apps of this deployment."),
          status: z.array(AppStatus).min(1).max(12).optional().describe("Only apps in one of these states, separated by commas."),
          appType: z.string().min(1).max(64).optional().describe("Only apps of this template."),
          q: z.string().min(1).max(100).optional().describe("Only apps whose name contains this text."),
          drift: z.boolean().optional().describe("Only apps that run or are stopped otherwise than they should, or only the others."),
          outdated: z.boolean().optional().describe("Only apps of whose template the catalogue has another version, or only the others."),
        },
      }),
      output: paged(AppDetails),
    }),
    get: query({ ...read, summary: "Get an app", rest: ["GET /apps/{appId}"], input: one, output: AppDetails, errors: ["APP_NOT_FOUND"] }),
    wait: query({
      ...read,
      summary: "Wait until an app has one of several states",
      rest: ["GET /apps/{appId}/wait"],
      maxWaitSeconds: MAX_WAIT_SECONDS,
      input: one.extend(awaitedFields(AppStatus)),
      output: AppDetails,
      errors: ["APP_NOT_FOUND", "STREAM_LIMIT_REACHED"],
    }),
    timeline: query({
      ...read,
      summary: "List the steps of an app",
      rest: ["GET /apps/{appId}/timeline"],
      input: one,
      output: Timeline,
      errors: ["APP_NOT_FOUND"],
    }),
    metrics: query({
      ...read,
      summary: "Get an app's metrics in buckets",
      rest: ["GET /apps/{appId}/metrics"],
      input: one.extend({ range: AppMetricRange }),
      output: AppMetrics,
      errors: ["APP_NOT_FOUND"],
    }),
    create: mutation({
      ...people,
      permission: "app:create",
      summary: "Install an app on a device",
      rest: ["POST /apps"],
      status: 201,
      location: "/apps/{appId}",
      input: z.strictObject({
        appType: z.string().min(1).max(64).describe("The template."),
        deviceId: ref("dev"),
        name: Name.optional().describe("Default: the template's name."),
        tenantId: ref("ten").optional().describe("If given, the caller's own."),
        deploymentId: ref("dep").optional().describe("A deployment that waits for its device. Default: the app belongs to none."),
        config: ConfigInput.default({}),
        secrets: SecretsInput.default({}),
      }),
      output: App,
      errors: [
        ...["DEVICE_NOT_FOUND", "DEPLOYMENT_NOT_FOUND", "APP_TEMPLATE_NOT_FOUND", "TENANT_NOT_FOUND", "APP_CONFIG_INVALID"],
        ...["PLAN_LIMIT_EXCEEDED", "PLAN_UPGRADE_REQUIRED", "INVALID_STATE_TRANSITION", "COMMAND_QUEUE_FULL"],
      ] as const,
    }),
    change: mutation({
      ...update,
      summary: "Change an app",
      rest: ["PATCH /apps/{appId}"],
      input: one.extend({
        name: Name.optional(),
        config: ConfigInput.optional().describe("Replaces the configuration and updates the app."),
        status: z.enum(["running", "stopped"]).optional().describe("Starts or stops the app."),
        version: Version.optional(),
      }),
      output: App,
      errors: [...CHANGE, "APP_CONFIG_INVALID", "APP_TEMPLATE_NOT_FOUND", "VERSION_CONFLICT"],
    }),
    remove: mutation({
      ...people,
      permission: "app:delete",
      summary: "Remove an app from its device",
      rest: ["DELETE /apps/{appId}"],
      status: 204,
      query: ["keepVolumes"],
      input: one.extend({ keepVolumes: z.boolean().default(false).describe("`true`: the app's data stays on the device.") }),
      output: z.null(),
      errors: [...CHANGE],
    }),
    start: mutation({
      ...update,
      summary: "Start an app",
      rest: ["POST /apps/{appId}/start"],
      query: ["requireOnline"],
      input: verb,
      output: App,
      errors: [...VERB],
    }),
    stop: mutation({
      ...update,
      summary: "Stop an app",
      rest: ["POST /apps/{appId}/stop"],
      query: ["requireOnline"],
      input: verb,
      output: App,
      errors: [...VERB],
    }),
    restart: mutation({
      ...update,
      summary: "Restart an app",
      rest: ["POST /apps/{appId}/restart"],
      query: ["requireOnline"],
      input: verb,
      output: App,
      errors: [...VERB],
    }),
    upgrade: mutation({
      ...update,
      summary: "Update an app to the template's version",
      rest: ["POST /apps/{appId}/update"],
      query: ["requireOnline"],
      input: verb,
      output: App,
      errors: [...VERB, "APP_CONFIG_INVALID", "APP_TEMPLATE_NOT_FOUND", "PLAN_UPGRADE_REQUIRED"],
    }),
    secrets: query({
      auth: ["user", "apiKey", "agent"],
      permission: "app:secrets:read",
      replay: "once",
      summary: "Get an app's secrets",
      rest: ["GET /apps/{appId}/secrets"],
      limit: "agent",
      input: one,
      output: AppSecrets,
      errors: ["APP_NOT_FOUND"],
    }),
    setSecrets: mutation({
      ...people,
      permission: "app:secrets:write",
      summary: "Set an app's secrets",
      rest: ["PUT /apps/{appId}/secrets"],
      input: one.extend({
        secrets: z
          .record(VariableName, SecretValue.nullable())
          .refine((secrets) => Object.keys(secrets).length <= 2 * MAX_SECRETS, `must have at most ${2 * MAX_SECRETS} keys`)
          .describe("`null` removes a secret. Others stay as they are."),
      }),
      output: AppSecretKeys,
      errors: [...CHANGE, "APP_CONFIG_INVALID"],
    }),
    listSnapshots: query({
      ...read,
      summary: "List the snapshots of an app, newest first",
      rest: ["GET /apps/{appId}/snapshots"],
      list: "plain",
      input: one,
      output: z.object({ items: z.array(named(AppSnapshot)) }),
      errors: ["APP_NOT_FOUND"],
    }),
    createSnapshot: mutation({
      ...update,
      summary: "Keep an app's configuration",
      rest: ["POST /apps/{appId}/snapshots"],
      status: 201,
      input: one.extend({ metadata: SnapshotMetadata.default({}) }),
      output: AppSnapshot,
      errors: ["APP_NOT_FOUND", "APP_CONFIG_INVALID"],
    }),
    removeSnapshot: mutation({
      ...update,
      summary: "Delete a snapshot of an app",
      rest: ["DELETE /apps/{appId}/snapshots/{snapshotId}"],
      status: 204,
      input: oneSnapshot,
      output: z.null(),
      errors: ["APP_NOT_FOUND", "SNAPSHOT_NOT_FOUND"],
    }),
    rollback: mutation({
      ...people,
      permission: "app:rollback",
      summary: "Roll an app back to a snapshot",
      rest: ["POST /apps/{appId}/rollback"],
      input: oneSnapshot,
      output: App,
      errors: [...CHANGE, "SNAPSHOT_NOT_FOUND", "SNAPSHOT_INCOMPATIBLE"],
    }),
  },
  commands: {
    deploy: command("app.deploy", { summary: "Install or update an app", ...ordered }),
    start: command("app.start", { summary: "Start an app", ...ordered }),
    stop: command("app.stop", { summary: "Stop an app", ...ordered }),
    restart: command("app.restart", { summary: "Restart an app", ...ordered }),
    remove: command("app.remove", { summary: "Remove an app", ...ordered }),
    ...appLogCommands,
  },
  events: appEvents,
});
