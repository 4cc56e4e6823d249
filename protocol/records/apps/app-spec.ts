// What a device runs: the runtime part of a template, the desired apps of a device, and what the agent reports about them.
import { z } from "zod";
import { AppId, DeploymentId } from "../../kit/ids.ts";

/** The name of a folder, of templates and on devices. */
export const AppSlug = z
  .string()
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/)
  .max(64);
/** A variable of the app's environment. */
export const VariableName = z.string().regex(/^[A-Z_][A-Z0-9_]{0,127}$/);
const Revision = z.int().min(0).max(2_147_483_647);
const Port = z.int().min(1).max(65_535);

/** Where a variable of the app's environment comes from. The agent sets these variables and no others. */
const Source = z.union([
  z.strictObject({ config: z.string().max(128) }).describe("A property of the configuration, as text."),
  z.strictObject({ secret: VariableName }).describe("A secret of the app."),
  z.strictObject({ value: z.string().max(4_096) }).describe("This text."),
]);

const HookStep = z.strictObject({
  service: AppSlug.optional().describe(
    "Of the Compose file: the command runs in this service's container. Absent: in the first one; a process gets the words as arguments of its own program.",
  ),
  command: z.array(z.string().min(1).max(1_000)).min(1).max(32).describe("Program and arguments. Nothing is ever given to a shell."),
  timeoutSeconds: z.int().min(1).max(3_600).default(300),
});
/** How the data of an app is kept from changing while a backup reads it, and what else its backups and restores need. */
export const AppBackup = z.strictObject({
  mode: z.enum(["stop", "pause", "live"]).default("stop"),
  hooks: z
    .strictObject({
      pre: HookStep.optional().describe("Before the data is read. If it fails, so does the backup."),
      post: HookStep.optional().describe("After the data was read, whatever happened."),
      restored: HookStep.optional().describe("When the app runs with restored data."),
    })
    .default({}),
  beforeUpdates: z.boolean().default(false).describe("Back the app up before each update."),
});
export type AppBackup = z.output<typeof AppBackup>;

const common = {
  environment: z.record(VariableName, Source).default({}),
  ports: z
    .array(
      z.strictObject({
        name: AppSlug,
        protocol: z.enum(["tcp", "udp"]).default("tcp"),
        config: z.string().max(128).describe("The property of the configuration that holds the port's number on the device."),
        variable: VariableName.optional().describe("A process finds the number in this variable."),
        target: Port.optional().describe("The port inside the container."),
      }),
    )
    .max(32)
    .default([]),
  volumes: z
    .array(z.strictObject({ name: AppSlug, variable: VariableName.optional().describe("A process finds the folder in this variable.") }))
    .max(32)
    .default([]),
  health: z.strictObject({
    http: z
      .strictObject({
        port: AppSlug,
        path: z
          .string()
          .regex(/^\/[^\s\\]*$/)
          .max(256),
      })
      .optional()
      .describe("Healthy if a GET answers 2xx or 3xx; without it, healthy while it runs."),
    intervalSeconds: z.int().min(1).max(300).default(10),
    timeoutSeconds: z.int().min(1).max(60).default(5),
    retries: z.int().min(1).max(20).default(3),
    startSeconds: z.int().min(1).max(1_800).default(60).describe("An app that is not healthy by then has failed to start."),
  }),
  backup: AppBackup.optional().describe("Absent: stopped while its volumes are read."),
  stopSeconds: z.int().min(1).max(300).default(10).describe("Between SIGTERM and SIGKILL."),
};

/** How an app runs. `process` names a program that comes with the agent; nothing is ever given to a shell. */
export const AppSpec = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("process"), program: AppSlug, ...common }),
  z.strictObject({ kind: z.literal("compose"), compose: z.string().max(65_536).describe("A Compose file."), ...common }),
]);
export type AppSpec = z.output<typeof AppSpec>;

export const ConfigValue = z.union([z.string(), z.number(), z.boolean()]);
export type ConfigValue = z.output<typeof ConfigValue>;
/** Flat, as the schema of every template is. */
export const AppConfig = z.record(z.string().max(128), ConfigValue);
export type AppConfig = z.output<typeof AppConfig>;

/** One app of a device as it should be. Secrets travel apart: the agent fetches their values by a signed call. */
export const DesiredApp = z.object({
  appId: AppId,
  deploymentId: DeploymentId.nullable(),
  name: z.string().max(128),
  template: AppSlug,
  templateVersion: z.string().max(64),
  revision: Revision.min(1).describe("Rises with every change of what should run."),
  state: z.enum(["running", "stopped", "removed"]),
  keepVolumes: z.boolean().describe("Of a removed app."),
  spec: AppSpec,
  config: AppConfig.describe("With the template's defaults."),
  secretsVersion: z.int().min(0).describe("Rises with every change of the secrets; 0 for none."),
});
export type DesiredApp = z.output<typeof DesiredApp>;

/** The stage in which an app failed. */
export const AppStage = z.enum(["refused", "preparing", "fetching", "stopping", "starting", "health", "running", "removing"]);
export type AppStage = z.output<typeof AppStage>;

/** One app as it is, by the agent's word. */
export const ReportedApp = z.object({
  appId: AppId,
  revision: Revision.describe("The one that runs, or ran last; 0 for none."),
  state: z.enum(["installing", "running", "stopped", "failed", "removed"]),
  health: z.enum(["healthy", "unhealthy", "unknown"]).default("unknown"),
  failure: z
    .object({
      stage: AppStage,
      reason: z.string().max(64).describe("For machines: PORT_TAKEN, DISK_FULL, EXITED, HEALTH_CHECK_FAILED, …"),
      message: z.string().max(1_000),
      revision: Revision.min(1),
      lines: z.array(z.string().max(1_000)).max(20).describe("The last lines of its log, at most 4 KiB, with secrets masked."),
    })
    .nullable()
    .default(null),
  restarts: z.int().min(0).max(2_147_483_647).default(0),
  cpuPercent: z.number().min(0).nullable().default(null),
  memoryBytes: z.number().min(0).max(Number.MAX_SAFE_INTEGER).nullable().default(null),
  ports: z.record(AppSlug, Port).default({}),
  startedAt: z.iso.datetime({ offset: true }).optional().describe("When what runs was started, by the device's clock. Absent: the agent does not tell."),
  responseMs: z
    .number()
    .min(0)
    .max(600_000)
    .optional()
    .describe("How long the last health check by HTTP took. Absent: there was none, or the agent does not tell."),
});
export type ReportedApp = z.output<typeof ReportedApp>;
