// How an update is rolled out: what is updated, in which phases, when, and what stops it. An update policy keeps this, and each rollout a copy of it.
import { z } from "zod";
import { Tag } from "../kit/device-selector.ts";
import { id, TenantId } from "../kit/ids.ts";
import { ConfigInput } from "./apps/app-input.ts";
import { AppSlug } from "./apps/app-spec.ts";

const Timestamp = z.iso.datetime();
const Version = z.string().regex(/^[\w.+-]{1,64}$/);

export const UpdateSubject = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("agent"), channel: AppSlug.default("stable").describe("The channel of the agent's releases.") }),
    z.strictObject({ kind: z.literal("app"), template: z.string().min(1).max(64).describe("The apps of this template.") }),
  ])
  .describe("What is updated: the agent itself, or the app of one template.");
export type UpdateSubject = z.infer<typeof UpdateSubject>;

const phase = {
  percent: z.int().min(1).max(100).nullable().default(null).describe("This share of all devices that need the update."),
  count: z.int().min(1).max(100_000).nullable().default(null).describe("So many devices, instead of a share."),
  tag: Tag.nullable().default(null).describe("Devices with this tag come first."),
  minSuccessPercent: z.int().min(1).max(100).default(90).describe("The phase fails as soon as this share of its devices is out of reach."),
  soakMinutes: z.int().min(0).max(10_080).default(0).describe("How long the phase must stay well before the next one begins."),
  requireApproval: z.boolean().default(false).describe("A person has to approve before the phase begins."),
};
export const UpdatePhase = z.strictObject(phase).refine(({ percent, count }) => (percent === null) !== (count === null), "give either percent or count");
export type UpdatePhase = z.infer<typeof UpdatePhase>;
export const ShownPhase = z.object(phase).extend({ phase: z.int().describe("From 1."), size: z.int().nullable().describe("`null`: no fleet was named.") });

const Phases = z
  .array(UpdatePhase)
  .min(1)
  .max(20)
  .superRefine((phases, context) => {
    let percent = 0;
    for (const [at, phase] of phases.entries()) {
      if (percent >= 100) context.addIssue({ code: "custom", path: [at], message: "comes after phases that take all devices" });
      percent += phase.percent ?? 0;
      if (percent > 100) context.addIssue({ code: "custom", path: [at, "percent"], message: "takes the phases beyond 100 percent" });
    }
  })
  .describe("In this order. The last one takes all devices that are left.");

export const FailureThreshold = z
  .strictObject({
    percent: z.int().min(1).max(100).default(10).describe("Of the devices that have finished: failed and timed out over these and succeeded."),
    count: z.int().min(1).max(100_000).nullable().default(null).describe("Stops at so many failures, whatever their share."),
    minSample: z
      .int()
      .min(1)
      .max(1_000)
      .nullable()
      .default(null)
      .describe(
        "`null`: stops when it is likely that the share is exceeded, which means the lower bound of the 90 % Wilson interval after at least 3 finished devices and 2 failures. A number: compares the plain share once so many have finished.",
      ),
  })
  .describe("What stops the rollout. It also stops if so many have failed that the share of all devices is exceeded however the others end.");
export type FailureThreshold = z.infer<typeof FailureThreshold>;

export const MaintenanceWindow = z
  .strictObject({
    cron: z.string().min(9).max(100).describe("When the window opens: minute, hour, day of month, month, day of week."),
    durationMinutes: z.int().min(15).max(1_440).describe("How long it stays open, as time that passes."),
    timezone: z.string().min(1).max(64).describe("IANA name of the zone whose clock counts, such as `Europe/Lisbon`."),
  })
  .describe(
    "Orders go out only while a window is open. A start that the clock skips in spring opens at the shift; one that it shows twice in autumn opens once, at the first.",
  );
export type MaintenanceWindow = z.infer<typeof MaintenanceWindow>;

/** Without defaults, so that a change can leave fields out. */
const fields = {
  subject: UpdateSubject,
  targetVersion: Version.nullable().describe("`null`: the newest release of the channel, or the template's present version, when the rollout starts."),
  configuration: ConfigInput.nullable().describe("Laid over the configuration of each app. Only for the subject `app`."),
  phases: Phases,
  maxParallel: z.int().min(1).max(500).describe("The most devices that are being updated at once."),
  failureThreshold: FailureThreshold,
  onFailure: z
    .enum(["pause", "abort", "rollback"])
    .describe("What happens when the threshold is exceeded or a phase fails. `rollback` is not possible for agents, which refuse older releases."),
  maintenanceWindows: z.array(MaintenanceWindow).max(10).describe("Empty: at any time."),
  offlinePolicy: z
    .enum(["later", "wait", "skip"])
    .describe(
      "`later`: an offline device does not hold up its phase, and is updated when it comes back. `wait`: its phase waits for it. `skip`: it is left out.",
    ),
  offlineWaitHours: z.int().min(1).max(720).describe("How long offline devices are waited for, after the last phase or in their phase."),
  deviceTimeoutMinutes: z.int().min(5).max(1_440).describe("Time from the delivery of the order until the device must run the update."),
  retries: z.int().min(0).max(3).describe("How often a device gets the order again that it never received or could not take."),
  approval: z
    .strictObject({
      required: z.boolean().default(false).describe("A person has to approve the rollout before it starts."),
      byOther: z.boolean().default(true).describe("Not the one who made it."),
    })
    .describe("Only people approve, never an API key."),
  newDevices: z.enum(["ignore", "follow"]).describe("`follow`: devices that join the fleet later get the update by a rollout of their own."),
};

const DEFAULTS = {
  targetVersion: null,
  configuration: null,
  phases: [{ percent: 100 }],
  maxParallel: 50,
  failureThreshold: {},
  onFailure: "pause",
  maintenanceWindows: [],
  offlinePolicy: "later",
  offlineWaitHours: 72,
  deviceTimeoutMinutes: 60,
  retries: 1,
  approval: {},
  newDevices: "ignore",
} as const;

const given = {
  subject: fields.subject,
  targetVersion: fields.targetVersion.default(DEFAULTS.targetVersion),
  configuration: fields.configuration.default(DEFAULTS.configuration),
  phases: fields.phases.prefault(() => DEFAULTS.phases.map((phase) => ({ ...phase }))),
  maxParallel: fields.maxParallel.default(DEFAULTS.maxParallel),
  failureThreshold: fields.failureThreshold.prefault(DEFAULTS.failureThreshold),
  onFailure: fields.onFailure.default(DEFAULTS.onFailure),
  maintenanceWindows: fields.maintenanceWindows.default([]),
  offlinePolicy: fields.offlinePolicy.default(DEFAULTS.offlinePolicy),
  offlineWaitHours: fields.offlineWaitHours.default(DEFAULTS.offlineWaitHours),
  deviceTimeoutMinutes: fields.deviceTimeoutMinutes.default(DEFAULTS.deviceTimeoutMinutes),
  retries: fields.retries.default(DEFAULTS.retries),
  approval: fields.approval.prefault(DEFAULTS.approval),
  newDevices: fields.newDevices.default(DEFAULTS.newDevices),
};

const configurationFits = ({ subject, configuration }: { readonly subject: UpdateSubject; readonly configuration: unknown }): boolean =>
  subject.kind === "app" || configuration === null;
const CONFIGURES_AGENT = { path: ["configuration"], message: "an agent has none" };

/** As people give it. */
export const UpdateSettingsInput = z.strictObject(given).refine(configurationFits, CONFIGURES_AGENT);
/** As it is stored and shown. */
export const UpdateSettings = z.object(fields).describe("How the update is rolled out.");
export type UpdateSettings = z.infer<typeof UpdateSettings>;

const Name = z.string().trim().min(1).max(100);
const Description = z.string().trim().max(500);
const own = { name: Name, description: Description, enabled: z.boolean().describe("A disabled policy starts no rollouts.") };

export const UpdatePolicyInput = z
  .strictObject({ name: own.name, description: own.description.default(""), enabled: own.enabled.default(true), ...given })
  .refine(configurationFits, CONFIGURES_AGENT);

/** The fields of a change: everything but the subject, which never changes. */
const { subject: _, ...changing } = fields;
export const updatePolicyChange = z.object({ ...own, ...changing }).partial().shape;

export const UpdatePolicy = z.object({
  updatePolicyId: id("upl"),
  tenantId: TenantId,
  ...own,
  ...fields,
  warnings: z
    .array(z.enum(["SINGLE_PHASE"]))
    .describe("`SINGLE_PHASE`: all devices are updated in one phase, so only the ramp and the threshold protect them."),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type UpdatePolicy = z.infer<typeof UpdatePolicy>;
