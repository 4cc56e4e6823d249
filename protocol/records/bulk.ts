// Bulk operations: one change of many devices, apps, backups or others, which goes on in steps and keeps a result for each.
import { z } from "zod";
import { Tag } from "../kit/device-selector.ts";
import { CommandId, FleetId, id, ref, TenantId } from "../kit/ids.ts";
import { ConfigInput } from "./apps/app-input.ts";
import { BackupMode, BackupType, VerifyMode } from "./backups/backup.ts";
import { commandFields } from "./command-order.ts";

const Timestamp = z.iso.datetime();

/** What an item of an operation is. */
export const BULK_TARGETS = ["device", "app", "deployment", "alert", "backup", "tunnel"] as const;
export type BulkTargetKind = (typeof BULK_TARGETS)[number];

const none = z.strictObject({});
const note = z.strictObject({ note: z.string().max(2_000).optional() });
const tags = z.array(Tag).max(50).default([]);
const fleets = z.array(ref("flt")).max(20).default([]);
const confirm = z.int().min(1).describe("The number of devices, as the preview counts them.");
const isSome = <T>(...lists: readonly (readonly T[])[]): boolean => lists.some(({ length }) => length > 0);
const keepVolumes = z.boolean().default(false).describe("`true`: the data of the apps stays on the devices.");
// Each command has a key of its own, by its item.
const { idempotencyKey: _, ...command } = commandFields;

/** The parameters of each operation: what the single call takes beside the id. */
export const BULK_PARAMS = {
  "device.command": z.strictObject({ ...command, confirm: confirm.optional().describe("For `shell`: the number of devices, as the preview counts them.") }),
  "device.tag": z.strictObject({ add: tags, remove: tags }).refine(({ add, remove }) => isSome(add, remove), "must name a tag"),
  "device.move": z.strictObject({ deploymentId: ref("dep") }),
  "device.fleet": z.strictObject({ add: fleets, remove: fleets }).refine(({ add, remove }) => isSome(add, remove), "must name a static fleet"),
  "device.delete": z.strictObject({ confirm }),
  "app.restart": none,
  "app.start": none,
  "app.stop": none,
  "app.update": z
    .strictObject({ upgrade: z.boolean().default(false), configuration: ConfigInput.optional() })
    .refine(({ upgrade, configuration }) => upgrade !== (configuration !== undefined), "give either upgrade or configuration"),
  "app.remove": z.strictObject({ keepVolumes }),
  "deployment.redeploy": z.strictObject({ upgrade: z.boolean().default(false), configuration: ConfigInput.optional() }),
  "deployment.stop": none,
  "deployment.start": none,
  "deployment.delete": z.strictObject({ keepVolumes }),
  "agent.update": none,
  "backup.create": z.strictObject({
    type: BackupType.default("full"),
    destinationId: ref("bkd").optional().describe("Default: the tenant's default destination."),
    consistency: z.enum(["template", ...BackupMode.options]).default("template"),
  }),
  "backup.verify": z.strictObject({ mode: VerifyMode.default("checksum") }),
  "tunnel.stop": none,
  "alert.acknowledge": note,
  "alert.resolve": note,
} as const satisfies Readonly<Record<string, z.ZodType>>;
export type BulkName = keyof typeof BULK_PARAMS;
export type BulkParams<N extends BulkName = BulkName> = z.output<(typeof BULK_PARAMS)[N]>;
export const BULK_NAMES = Object.keys(BULK_PARAMS) as readonly BulkName[]; // as: its own keys
export const BulkName = z.enum(BULK_NAMES);

/** What an operation is about, if its name does not begin with it. */
const OTHER_TARGETS: { readonly [N in BulkName]?: BulkTargetKind } = { "agent.update": "device", "backup.create": "app" };
export const targetOf = (name: BulkName): BulkTargetKind => OTHER_TARGETS[name] ?? (name.split(".")[0] as BulkTargetKind); // as: the names above

export const BULK_STATUSES = ["draft", "freezing", "pending", "running", "paused", "completed", "completed_with_errors", "failed", "cancelled"] as const;
export const BulkStatus = z.enum(BULK_STATUSES);
export type BulkStatus = z.infer<typeof BulkStatus>;

export const BULK_ITEM_STATUSES = ["pending", "running", "succeeded", "failed", "skipped", "cancelled"] as const;
export const BulkItemStatus = z.enum(BULK_ITEM_STATUSES);
export type BulkItemStatus = z.infer<typeof BulkItemStatus>;

export const BulkCounts = z.object({
  total: z.int().describe("The sum of all others."),
  pending: z.int(),
  running: z.int().describe("Ordered, and not ended yet."),
  succeeded: z.int(),
  failed: z.int(),
  skipped: z.int().describe("Nothing was to be done, or the target is unknown or not visible."),
  cancelled: z.int(),
});
export type BulkCounts = z.infer<typeof BulkCounts>;

export const BulkThreshold = z
  .strictObject({
    percent: z.int().min(1).max(100).default(10).describe("Of the items that ended."),
    count: z.int().min(1).max(1_000_000).nullable().default(null).describe("Stops at so many failures, whatever their share."),
    minSample: z
      .int()
      .min(1)
      .max(1_000)
      .nullable()
      .default(null)
      .describe("Compares the plain share from so many ended items on. `null`: stops once the share is above `percent` with 90 % confidence."),
  })
  .describe("Stops the operation as `failed` when too many items fail.");
export type BulkThreshold = z.output<typeof BulkThreshold>;

export const BulkRate = z.strictObject({ perMinute: z.int().min(1).max(60_000).describe("The most items that begin in a minute.") });

export const BULK_ACTIONS = ["start", "pause", "resume", "cancel", "retryFailed"] as const;
export const BulkAction = z.enum(BULK_ACTIONS);
export type BulkAction = z.infer<typeof BulkAction>;

export const BulkOperation = z.object({
  operationId: id("blk"),
  tenantId: TenantId,
  operation: BulkName,
  name: z.string().nullable(),
  target: z
    .object({
      kind: z.enum(["ids", "fleet", "selector", "upload", "retry"]),
      fleetId: FleetId.nullable(),
      selector: z.record(z.string(), z.unknown()).nullable(),
    })
    .describe("How the items were chosen. They are frozen when the operation begins."),
  params: z.record(z.string(), z.unknown()),
  await: z.enum(["ended", "ordered"]).describe("`ended`: an item that orders a command ends with it. `ordered`: the order is enough."),
  maxParallel: z.int(),
  failureThreshold: BulkThreshold.nullable(),
  rate: BulkRate.nullable(),
  status: BulkStatus,
  statusReason: z
    .string()
    .nullable()
    .describe("Why it is `paused`, `failed` or `cancelled`: `ACCESS_LOST`, `THRESHOLD`, `EXPIRED`, or what the person said. `null`: there is nothing to say."),
  counts: BulkCounts,
  actions: z.array(BulkAction).describe("The calls that its state allows."),
  startAt: Timestamp.nullable(),
  expiresAt: Timestamp.describe("Items that have not begun by then are cancelled with `EXPIRED`."),
  retryOf: id("blk").nullable().describe("The operation whose failed items this one repeats."),
  lastError: z.string().nullable().describe("Why its last steps failed. It goes on by itself."),
  createdBy: z.string(),
  startedAt: Timestamp.nullable(),
  completedAt: Timestamp.nullable(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type BulkOperation = z.infer<typeof BulkOperation>;

export const BulkItem = z.object({
  n: z.int().describe("Its number, from 1, in the order of the work."),
  targetId: z.string(),
  name: z.string().nullable().describe("How the target is called now. `null`: it has no name, is gone, or you do not see it."),
  status: BulkItemStatus,
  code: z.string().nullable().describe("Why it failed or was skipped: the code of the single call, of its command, `NOT_FOUND`, `NOT_VISIBLE` or `EXPIRED`."),
  message: z.string().nullable(),
  attempt: z.int(),
  commandId: CommandId.nullable().describe("The command that it ordered."),
  finishedAt: Timestamp.nullable(),
});
export type BulkItem = z.infer<typeof BulkItem>;

export const BulkPreview = z.object({
  total: z.int().describe("Targets that you see."),
  sample: z.array(z.object({ targetId: z.string(), name: z.string().nullable() })).describe("The first 100."),
  refused: z.record(z.string(), z.int()).describe("Targets that would be skipped, by code."),
});
export type BulkPreview = z.infer<typeof BulkPreview>;
