// Deployments as people see them: their states, their revisions, and the plan of a change.
import { z } from "zod";
import { AppId, CommandId, DeploymentId, DeviceId, TenantId } from "../../kit/ids.ts";
import { AppFailure, AppStatus } from "./app.ts";
import { AppConfig, ConfigValue } from "./app-spec.ts";

const Timestamp = z.iso.datetime();

export const DEPLOYMENT_STATUSES = [
  "pending",
  "queued",
  "deploying",
  "active",
  "failed",
  "updating",
  "rolling_back",
  "stopping",
  "stopped",
  "cancelling",
  "cancelled",
  "deleting",
  "deleted",
] as const;
export const DeploymentStatus = z.enum(DEPLOYMENT_STATUSES);
export type DeploymentStatus = z.output<typeof DeploymentStatus>;

export const Deployment = z.object({
  deploymentId: DeploymentId,
  tenantId: TenantId,
  name: z.string(),
  status: DeploymentStatus,
  runtime: z.string().describe("`docker-compose`, `process` or `k3s`."),
  isDefault: z.boolean().describe("New devices join it. A deployment without a template groups devices and has no app."),
  template: z.string().nullable(),
  templateVersion: z.string().nullable(),
  deviceId: DeviceId.nullable(),
  appId: AppId.nullable(),
  configuration: AppConfig.nullable().describe("Of the newest revision, with the template's defaults."),
  revision: z.int().describe("The newest revision; 0 before the first."),
  currentRevision: z.int().nullable().describe("The revision that last became active."),
  failure: AppFailure.nullable(),
  commandId: CommandId.nullable().describe("The command that carried out, or carries out, the last change."),
  timeoutSeconds: z.int().describe("The time that the agent has to deploy."),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type Deployment = z.output<typeof Deployment>;

export const DeploymentRevision = z.object({
  deploymentId: DeploymentId,
  revision: z.int(),
  template: z.string(),
  templateVersion: z.string(),
  configuration: AppConfig,
  rolledBackTo: z.int().nullable().describe("The earlier revision that this one repeats."),
  createdBy: z.string(),
  createdAt: Timestamp,
});
export type DeploymentRevision = z.output<typeof DeploymentRevision>;

export const AppSummary = z.object({
  appId: AppId,
  appName: z.string(),
  deploymentId: DeploymentId,
  status: AppStatus,
  configuration: AppConfig,
});
export type AppSummary = z.output<typeof AppSummary>;

export const DeploymentPlan = z.object({
  deploymentId: DeploymentId,
  action: z.enum(["none", "deploy", "update", "start"]).describe("What a deployment of this would do."),
  changes: z
    .array(z.object({ path: z.string(), from: ConfigValue.nullable(), to: ConfigValue.nullable() }))
    .describe("Each value that would change, by its path; `null` stands for a value that is missing."),
  drift: z.boolean().describe("What the agent reported last differs from what should be."),
  revision: z.int().describe("The revision that it would get."),
});
export type DeploymentPlan = z.output<typeof DeploymentPlan>;
