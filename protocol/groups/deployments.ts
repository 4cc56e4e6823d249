// Deployments: what people deploy to a device, its revisions, and the way back. A deployment without a template groups devices.
import { z } from "zod";
import { Version } from "../kit/bounds.ts";
import { DeploymentId, ref, TenantId } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { awaitedFields, MAX_WAIT_SECONDS } from "../kit/wait.ts";
import { named } from "../records/actor.ts";
import { Timeline } from "../records/apps/app.ts";
import { ConfigInput, SecretsInput } from "../records/apps/app-input.ts";
import { deploymentLogOperations } from "../records/apps/app-log-operations.ts";
import { AppSummary, Deployment, DeploymentPlan, DeploymentRevision, DeploymentStatus } from "../records/apps/deployment.ts";
import { deploymentEvents } from "../records/apps/deployment-events.ts";

const Timestamp = z.iso.datetime();
const Name = z.string().trim().min(1).max(100);
const Template = z.string().min(1).max(64);
const one = z.strictObject({ deploymentId: ref("dep") });
const content = {
  configuration: ConfigInput.optional().describe("Default: the configuration of the newest revision."),
  upgrade: z.boolean().default(false).describe("`true`: with the template's present version."),
};
const list = listQuery({
  sort: ["createdAt", "name", "status"],
  by: "-createdAt",
  filters: {
    status: z.array(DeploymentStatus).min(1).max(13).optional().describe("Only deployments in one of these states, separated by commas."),
    deviceId: ref("dev").optional().describe("Only deployments to this device."),
    template: Template.optional().describe("Only deployments of this template."),
    q: z.string().min(1).max(100).optional().describe("Only deployments whose name contains this text."),
  },
});

const people = { auth: ["user", "apiKey"] } as const;
const read = { ...people, permission: "deployment:read" } as const;
const deploy = { ...people, permission: "deployment:deploy" } as const;
const CHANGE = ["DEPLOYMENT_NOT_FOUND", "INVALID_STATE_TRANSITION", "DEVICE_NOT_FOUND", "COMMAND_QUEUE_FULL"] as const;
const CONTENT = ["APP_CONFIG_INVALID", "APP_TEMPLATE_NOT_FOUND", "PLAN_UPGRADE_REQUIRED"] as const;

const DeploymentDashboard = z.object({
  deploymentId: DeploymentId,
  tenantId: TenantId,
  dashboardUid: z.string(),
  dashboardTitle: z.string(),
  dashboardTags: z.array(z.string()),
  timeRange: z.object({ from: z.string(), to: z.string() }),
  panelCount: z.int(),
  templateVariables: z.int(),
});
const DashboardExport = z.object({ dashboard: z.record(z.string(), z.unknown()), exportedAt: Timestamp, deploymentId: DeploymentId });

export const deployments = group({
  tag: "Deployments",
  records: { Deployment, DeploymentRevision, AppSummary, DeploymentPlan, DeploymentDashboard, DashboardExport },
  operations: {
    ...deploymentLogOperations,
    list: query({ ...read, summary: "List deployments", rest: ["GET /deployments"], list: "page", input: list, output: paged(named(Deployment)) }),
    listOfTenant: query({
      ...read,
      summary: "List a tenant's deployments",
      rest: ["GET /tenants/{tenantId}/deployments"],
      list: "page",
      input: list.safeExtend({ tenantId: ref("ten") }),
      output: paged(named(Deployment)),
      errors: ["TENANT_NOT_FOUND"],
    }),
    get: query({
      ...read,
      summary: "Get a deployment",
      rest: ["GET /deployments/{deploymentId}"],
      input: one,
      output: named(Deployment),
      errors: ["DEPLOYMENT_NOT_FOUND"],
    }),
    create: mutation({
      ...people,
      permission: "deployment:create",
      summary: "Deploy a template to a device",
      rest: ["POST /deployments"],
      status: 201,
      location: "/deployments/{deploymentId}",
      input: z
        .strictObject({
          tenantId: ref("ten").optional().describe("If given, the caller's own."),
          name: Name.optional(),
          appName: Template.optional().describe("The template."),
          appId: Template.optional().describe("The same as `appName`."),
          deviceId: ref("dev").optional().describe("Without it the deployment waits until somebody names its device."),
          configuration: ConfigInput.optional(),
          secrets: SecretsInput.optional(),
          timeoutSeconds: z.int().min(60).max(7_200).default(900).describe("The time that the agent has to deploy."),
        })
        .refine(({ appName, appId }) => appName === undefined || appId === undefined || appName === appId, {
          path: ["appId"],
          message: "names another template than appName",
        })
        .refine(
          ({ appName, appId, deviceId, configuration, secrets }) => (appName ?? appId) !== undefined || (deviceId ?? configuration ?? secrets) === undefined,
          {
            path: ["appId"],
            message: "name a template for the device and the configuration",
          },
        )
        .refine(({ deviceId, secrets }) => deviceId !== undefined || secrets === undefined, { path: ["secrets"], message: "need a device" }),
      output: Deployment,
      errors: [
        ...["DEVICE_NOT_FOUND", "TENANT_NOT_FOUND", "APP_TEMPLATE_NOT_FOUND", "APP_CONFIG_INVALID", "DEPLOYMENT_ALREADY_EXISTS"],
        ...["PLAN_LIMIT_EXCEEDED", "PLAN_UPGRADE_REQUIRED", "COMMAND_QUEUE_FULL"],
      ] as const,
    }),
    change: mutation({
      ...people,
      permission: "deployment:update",
      summary: "Change a deployment",
      rest: ["PATCH /deployments/{deploymentId}"],
      input: one.extend({
        name: Name.optional(),
        status: z.enum(["active", "stopped", "cancelled"]).optional().describe("Starts, stops or cancels it."),
        deviceId: ref("dev").optional().describe("Deploys one that waits for its device."),
        version: Version.optional(),
      }),
      output: Deployment,
      errors: [...CHANGE, ...CONTENT, "DEPLOYMENT_ALREADY_EXISTS", "PLAN_LIMIT_EXCEEDED", "VERSION_CONFLICT"],
    }),
    remove: mutation({
      ...people,
      permission: "deployment:delete",
      summary: "Delete a deployment and remove its app",
      rest: ["DELETE /deployments/{deploymentId}"],
      status: 204,
      query: ["keepVolumes"],
      input: one.extend({ keepVolumes: z.boolean().default(false).describe("`true`: the app's data stays on the device.") }),
      output: z.null(),
      errors: [...CHANGE, "DEPLOYMENT_IN_USE"],
    }),
    redeploy: mutation({
      ...deploy,
      summary: "Deploy again, perhaps with another configuration",
      rest: ["POST /deployments/{deploymentId}/redeploy"],
      input: one.extend(content),
      output: Deployment,
      errors: [...CHANGE, ...CONTENT],
    }),
    stop: mutation({
      ...deploy,
      summary: "Stop a deployment",
      rest: ["POST /deployments/{deploymentId}/stop"],
      input: one,
      output: Deployment,
      errors: [...CHANGE],
    }),
    start: mutation({
      ...deploy,
      summary: "Start a deployment",
      rest: ["POST /deployments/{deploymentId}/start"],
      input: one,
      output: Deployment,
      errors: [...CHANGE],
    }),
    cancel: mutation({
      ...deploy,
      summary: "Cancel a deployment that has not become active",
      rest: ["POST /deployments/{deploymentId}/cancel"],
      input: one,
      output: Deployment,
      errors: [...CHANGE],
    }),
    rollback: mutation({
      ...deploy,
      summary: "Roll a deployment back to an earlier revision",
      rest: ["POST /deployments/{deploymentId}/rollback"],
      input: one.extend({ toRevision: z.int().min(1).max(2_147_483_647).optional().describe("Default: the revision that was active before.") }),
      output: Deployment,
      errors: [...CHANGE, "NO_PREVIOUS_REVISION"],
    }),
    plan: query({
      ...deploy,
      summary: "Show what a deployment would change",
      rest: ["POST /deployments/{deploymentId}/plan"],
      input: one.extend(content),
      output: DeploymentPlan,
      errors: ["DEPLOYMENT_NOT_FOUND", "INVALID_STATE_TRANSITION", ...CONTENT],
    }),
    listRevisions: query({
      ...read,
      summary: "List the revisions of a deployment, newest first",
      rest: ["GET /deployments/{deploymentId}/revisions"],
      list: "page",
      input: listQuery({ sort: ["revision"], by: "-revision", filters: { deploymentId: ref("dep") } }),
      output: paged(named(DeploymentRevision)),
      errors: ["DEPLOYMENT_NOT_FOUND"],
    }),
    listApps: query({
      ...read,
      summary: "List the apps of a deployment",
      rest: ["GET /deployments/{deploymentId}/apps"],
      list: "plain",
      input: one,
      output: z.object({ items: z.array(AppSummary) }),
      errors: ["DEPLOYMENT_NOT_FOUND"],
    }),
    wait: query({
      ...read,
      summary: "Wait until a deployment has one of several states",
      rest: ["GET /deployments/{deploymentId}/wait"],
      maxWaitSeconds: MAX_WAIT_SECONDS,
      input: one.extend(awaitedFields(DeploymentStatus)),
      output: named(Deployment),
      errors: ["DEPLOYMENT_NOT_FOUND", "STREAM_LIMIT_REACHED"],
    }),
    timeline: query({
      ...read,
      summary: "List the steps of a deployment",
      rest: ["GET /deployments/{deploymentId}/events"],
      input: one,
      output: Timeline,
      errors: ["DEPLOYMENT_NOT_FOUND"],
    }),
    dashboard: query({
      ...read,
      summary: "Describe a deployment's dashboard",
      rest: ["GET /deployments/{deploymentId}/dashboard"],
      input: one,
      output: DeploymentDashboard,
      errors: ["DEPLOYMENT_NOT_FOUND"],
    }),
    exportDashboard: query({
      ...read,
      summary: "Export a deployment's dashboard for Grafana",
      rest: ["GET /deployments/{deploymentId}/dashboard/export"],
      input: one,
      output: DashboardExport,
      errors: ["DEPLOYMENT_NOT_FOUND"],
    }),
  },
  events: deploymentEvents,
});
