// The words of backups wherever some are shown.
import type { Backup } from "@mooring/client";
import { counted } from "../../ui/count.ts";

export const text = {
  backups: "Backups",
  name: "Name",
  status: "Status",
  app: "App",
  device: "Device",
  size: "Size",
  created: "Made",
  now: "Back up now",
  none: "Backups of this appear here. One is good once it has been read back from where it is kept.",
  total: (count: number) => counted(count, "backup"),
  percent: (value: number) => `${Math.round(value)} %`,
  never: "There is no good backup yet.",
  good: "good",
  lastGood: "last backup",
  noBackup: "no backup",
  addedTo: (added: string, destination: string | undefined) => (destination === undefined ? `${added} new` : `${added} new, at ${destination}`),
  kept: (count: number) => `${counted(count, "good backup")} kept`,
  newestFailed: "The newest backup failed.",
  look: "Look",
  restore: "Restore…",
  all: (count: number) => `All ${count}`,
  unverified: "not verified yet",
  triggers: {
    manual: "by hand",
    policy: "by a policy",
    pre_update: "before an update",
    pre_restore: "before a restore",
    agent: "by the device itself",
  } satisfies Readonly<Record<Backup["trigger"], string>>,
} as const;
