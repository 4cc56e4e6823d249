// Backup destinations: where the restic repositories of devices are, each with its own password. Every tenant begins with one.
import { z } from "zod";
import { Version } from "../kit/bounds.ts";
import { BackupDestinationId, CommandId, DeviceId, ref, TenantId } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { named } from "../records/actor.ts";
import { BackupFailure, Bytes } from "../records/backups/backup.ts";
import { destinationCommands } from "../records/backups/backup-commands.ts";
import { destinationEvents } from "../records/backups/backup-events.ts";
import { DestinationKind, RepositoryAccess } from "../records/backups/repository-access.ts";

const Timestamp = z.iso.datetime();
const Name = z.string().trim().min(1).max(100);
/** A part of a path, of a bucket or on a server. */
const Prefix = z
  .string()
  .max(256)
  .regex(/^(?:[\w.-]+\/)*[\w.-]+$/, "must be names separated by slashes")
  .refine((text) => !text.split("/").some((part) => part === "." || part === ".."), "must not contain . or ..");
const Url = z
  .url({ protocol: /^https?$/ })
  .max(1_000)
  .refine((text) => {
    if (!URL.canParse(text)) return false;
    const { username, password, search, hash } = new URL(text);
    return username + password + search + hash === "";
  }, "must have neither credentials nor a query nor a fragment");

const settings = {
  path: z
    .string()
    .max(1_000)
    .regex(/^\/[^\0\n\r]*$/, "must be an absolute path")
    .refine((text) => !text.split("/").includes(".."), "must not contain ..")
    .nullable()
    .describe("Of `local`: a folder of the device. `null`: one in the agent's own folder."),
  endpoint: Url.nullable().describe("Of `s3`: the service, such as `https://s3.eu-central-1.amazonaws.com`."),
  bucket: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/)
    .nullable()
    .describe("Of `s3`."),
  prefix: Prefix.nullable().describe("Of `s3`: the folder in the bucket."),
  region: z
    .string()
    .regex(/^[\w-]{1,64}$/)
    .nullable()
    .describe("Of `s3`."),
  url: Url.nullable().describe("Of `rest`: the server that speaks restic's REST protocol."),
};
const DestinationSettings = z.object(settings);
const GivenSettings = z.strictObject(settings).partial();
const Secret = z
  .string()
  .min(1)
  .max(1_000)
  .regex(/^[^\0\n\r]*$/);
const Credentials = z
  .strictObject({ accessKeyId: Secret, secretAccessKey: Secret, username: Secret, password: Secret })
  .partial()
  .describe("Of `s3`: `accessKeyId` and `secretAccessKey`. Of `rest`: `username` and `password`, if the server asks for them. Nobody can read them again.");

export const BackupDestination = z.object({
  id: BackupDestinationId.describe("The same as `destinationId`."),
  destinationId: BackupDestinationId,
  tenantId: TenantId,
  name: z.string(),
  kind: DestinationKind,
  settings: DestinationSettings,
  hasCredentials: z.boolean(),
  isDefault: z.boolean().describe("Backups go there if nobody names another one."),
  usedBytes: Bytes.describe("What the repositories hold: of `gateway` what is stored, of others the sum of what backups have added."),
  lastCheckedAt: Timestamp.nullable().describe("When a device last tried to reach it."),
  lastError: BackupFailure.nullable().describe("Why the last try failed."),
  createdBy: z.string(),
  version: z.int(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});
export type BackupDestination = z.output<typeof BackupDestination>;

const DestinationTest = z.object({ destinationId: BackupDestinationId, deviceId: DeviceId, commandId: CommandId });
const RecoverySheet = z.object({
  destinationId: BackupDestinationId,
  deviceId: DeviceId,
  kind: DestinationKind,
  repository: z.string().describe("The value of RESTIC_REPOSITORY."),
  password: z.string().describe("The value of RESTIC_PASSWORD."),
  environment: z.record(z.string(), z.string()),
  folder: z
    .string()
    .nullable()
    .describe("Of `gateway`: the repository's folder below BACKUP_DIR of this installation, which restic opens without the gateway."),
  expiresAt: Timestamp.nullable().describe("Of `gateway`: until when the gateway serves the repository by this sheet. `null`: always."),
  commands: z
    .array(z.string())
    .describe("The lines for a shell that list the snapshots, restore the newest one and check the repository, without this product."),
});

const one = z.strictObject({ destinationId: ref("bkd") });
const people = { auth: ["user", "apiKey"] } as const;
const read = { ...people, permission: "backup_destination:read" } as const;
const write = { ...people, permission: "backup_destination:write" } as const;

export const backupDestinations = group({
  tag: "Backups",
  records: { BackupDestination, DestinationTest, RecoverySheet },
  operations: {
    list: query({
      ...read,
      summary: "List backup destinations",
      rest: ["GET /backup-destinations"],
      list: "page",
      input: listQuery({
        sort: ["createdAt", "name"],
        by: "createdAt",
        filters: { kind: DestinationKind.optional().describe("Only destinations of this kind.") },
      }),
      output: paged(named(BackupDestination)),
    }),
    get: query({
      ...read,
      summary: "Get a backup destination",
      rest: ["GET /backup-destinations/{destinationId}"],
      input: one,
      output: named(BackupDestination),
      errors: ["BACKUP_DESTINATION_NOT_FOUND"],
    }),
    create: mutation({
      ...write,
      summary: "Create a backup destination",
      rest: ["POST /backup-destinations"],
      status: 201,
      location: "/backup-destinations/{destinationId}",
      input: z.strictObject({
        name: Name,
        kind: DestinationKind,
        settings: GivenSettings.default({}),
        credentials: Credentials.default({}),
        isDefault: z.boolean().default(false),
      }),
      output: BackupDestination,
      errors: ["BACKUP_DESTINATION_INVALID", "BACKUP_DESTINATION_UNREACHABLE", "BACKUP_LIMIT_REACHED"],
    }),
    change: mutation({
      ...write,
      summary: "Change a backup destination",
      rest: ["PATCH /backup-destinations/{destinationId}"],
      input: one.extend({
        name: Name.optional(),
        settings: GivenSettings.optional().describe("Replaces the settings. While backups are there only the access to the same place may change."),
        credentials: Credentials.optional().describe("Replaces the credentials."),
        isDefault: z.literal(true).optional().describe("Makes it the default instead of the present one."),
        version: Version.optional(),
      }),
      output: BackupDestination,
      errors: ["BACKUP_DESTINATION_NOT_FOUND", "BACKUP_DESTINATION_INVALID", "BACKUP_DESTINATION_IN_USE", "VERSION_CONFLICT"],
    }),
    remove: mutation({
      ...write,
      summary: "Delete a backup destination",
      rest: ["DELETE /backup-destinations/{destinationId}"],
      status: 204,
      input: one,
      output: z.null(),
      errors: ["BACKUP_DESTINATION_NOT_FOUND", "BACKUP_DESTINATION_IN_USE"],
    }),
    test: mutation({
      ...write,
      summary: "Let a device test a backup destination",
      rest: ["POST /backup-destinations/{destinationId}/test"],
      input: one.extend({
        deviceId: ref("dev"),
        initialize: z
          .boolean()
          .default(false)
          .describe("Replace the device's repository by an empty one if it is lost (`REPOSITORY_MISSING`). One that is there stays as it is."),
      }),
      output: DestinationTest,
      errors: ["BACKUP_DESTINATION_NOT_FOUND", "BACKUP_DESTINATION_UNREACHABLE", "BACKUP_ENGINE_MISSING", "DEVICE_NOT_FOUND", "COMMAND_QUEUE_FULL"],
    }),
    recovery: query({
      auth: ["user"],
      permission: "backup:recover",
      summary: "Get what restic needs to restore a device's backups without this product",
      rest: ["GET /backup-destinations/{destinationId}/recovery"],
      input: one.extend({ deviceId: ref("dev") }),
      output: RecoverySheet,
      errors: ["BACKUP_DESTINATION_NOT_FOUND", "DEVICE_NOT_FOUND", "REAUTHENTICATION_REQUIRED"],
    }),
    access: query({
      auth: ["agent"],
      permission: "self",
      limit: "agent",
      replay: "once",
      summary: "Get the access to the device's repository at a destination",
      rest: ["GET /agent/backup-destinations/{destinationId}/access"],
      input: one.extend({ commandId: ref("cmd").describe("The open command that the agent carries out.") }),
      output: RepositoryAccess,
      errors: ["BACKUP_DESTINATION_NOT_FOUND", "COMMAND_NOT_FOUND", "BACKUP_DESTINATION_UNREACHABLE"],
    }),
  },
  commands: destinationCommands,
  events: destinationEvents,
});
