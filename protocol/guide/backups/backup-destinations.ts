// Guide to backup destinations.

import type { Guide } from "../guide.ts";
import { AT, IDS, LATER, shownWithActors } from "../records.ts";
import { repositoryAccess } from "./backups.ts";

const destinationId = "bkd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
const { commandId, deviceId, tenantId, userId } = IDS;
const settings = {
  path: null,
  endpoint: "https://s3.eu-central-1.amazonaws.com",
  bucket: "acme-backups",
  prefix: "mooring",
  region: "eu-central-1",
  url: null,
};
const destination = {
  id: destinationId,
  destinationId,
  tenantId,
  name: "Frankfurt",
  kind: "s3",
  settings,
  hasCredentials: true,
  isDefault: false,
  usedBytes: 73_400_320,
  lastCheckedAt: LATER,
  lastError: null,
  createdBy: `user:${userId}`,
  version: 1,
  createdAt: AT,
  updatedAt: AT,
};

export const backupDestinations: Guide<"backupDestinations"> = {
  list: {
    description: "Lists the destinations, the first one first. Every tenant begins with one, which is its default.",
    input: { page: 1, pageSize: 20 },
    output: { items: [shownWithActors(destination)], total: 1 },
  },
  get: { description: "Returns the destination. Nobody can read its credentials again.", input: { destinationId }, output: shownWithActors(destination) },
  create: {
    description:
      "A `local` destination is a folder of each device, `gateway` is this installation, `s3` a bucket, `rest` a server that speaks restic's REST protocol. Devices connect to it themselves, so let one of them test it.",
    input: {
      name: "Frankfurt",
      kind: "s3",
      settings: { endpoint: settings.endpoint, bucket: settings.bucket, prefix: "mooring", region: settings.region },
      credentials: { accessKeyId: "AKIA…", secretAccessKey: "wJalr…" },
    },
    output: { ...destination, usedBytes: 0, lastCheckedAt: null },
  },
  change: {
    description: "Changes only the fields that you send. While backups are at the destination, its place stays the same (409 `BACKUP_DESTINATION_IN_USE`).",
    input: { destinationId, isDefault: true },
    output: { ...destination, isDefault: true, version: 2 },
  },
  remove: {
    description: "Answers 409 `BACKUP_DESTINATION_IN_USE` while backups are there, a policy names it or it is the default, and lists these in `references`.",
    input: { destinationId },
  },
  test: {
    description:
      "Lets the device open its repository at the destination, or make it where none has been; with `initialize` it replaces one that is lost. Follow the command; `lastCheckedAt` and `lastError` then tell how it went.",
    input: { destinationId, deviceId },
    output: { destinationId, deviceId, commandId },
  },
  recovery: {
    description:
      "For owners who have just signed in, and recorded in the audit log. Keep the sheet somewhere safe: with it restic restores the device's backups when this product is gone. A `gateway` destination serves it for a day; the folder below BACKUP_DIR opens with the password at any time.",
    input: { destinationId, deviceId },
    output: {
      destinationId,
      deviceId,
      kind: "s3",
      repository: "s3:https://s3.eu-central-1.amazonaws.com/acme-backups/mooring/rep_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
      password: "nN3…",
      environment: { AWS_ACCESS_KEY_ID: "AKIA…", AWS_SECRET_ACCESS_KEY: "wJalr…", AWS_DEFAULT_REGION: "eu-central-1" },
      folder: null,
      expiresAt: null,
      commands: ["restic snapshots", "restic restore latest --target ./restored --verify", "restic check --read-data"],
    },
  },
  access: {
    description: "For agents: the access to the device's own repository at the destination, for an open command that tests it, deletes from it or prunes it.",
    input: { destinationId, commandId },
    output: { ...repositoryAccess, right: "forget" },
  },
};
