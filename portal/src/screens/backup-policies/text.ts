// The sentences of backup policies.
import type { BackupPolicy } from "@mooring/client";
import { counted } from "../../ui/count.ts";

type Run = NonNullable<BackupPolicy["lastStatus"]>;

export const SCHEDULES = [
  ["0 3 * * *", "Every night at 3"],
  ["@hourly", "Every hour"],
  ["0 3 * * 0", "Sundays at 3"],
  ["0 3 1 * *", "The first of a month at 3"],
] as const;

export const text = {
  title: "Backup policies",
  one: "Backup policy",
  none: "A policy backs up apps by itself, and deletes what its rules no longer keep.",
  create: "Create a policy",
  change: "Change",
  save: "Save",
  run: "Run now",
  pause: "Pause",
  resume: "Resume",
  remove: "Delete the policy",
  removal: "It makes no more backups. Those that it made stay.",
  name: "Name",
  schedule: "When",
  scheduleHint: "Minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly.",
  timezone: "Time zone",
  what: "What",
  whatHint: "All apps of these, as they are when it runs.",
  destination: "Where to",
  defaultDestination: "The default destination",
  keep: "What stays",
  keepHint: "A backup stays if one rule keeps it. Only good ones count, and the newest good one always stays.",
  rules: [
    ["keepLast", "The newest"],
    ["keepDaily", "Days"],
    ["keepWeekly", "Weeks"],
    ["keepMonthly", "Months"],
  ] as const,
  missed: "If a run is missed",
  missedWords: [
    ["run_once", "Make it up once"],
    ["skip", "Leave it out"],
  ] as const satisfies readonly (readonly [BackupPolicy["missedRun"], string])[],
  consistency: "How data is kept from changing",
  consistencies: [
    ["template", "As each application says"],
    ["stop", "Stop the app"],
    ["pause", "Pause the app"],
    ["live", "Not at all"],
  ] as const satisfies readonly (readonly [BackupPolicy["consistency"], string])[],
  beforeUpdates: "Back up before each update, too",
  preview: "Preview",
  previewTitle: "What it does",
  previewPanel: "Preview",
  next: "Next runs",
  neverRuns: "It never runs.",
  apps: (count: number) => counted(count, "app"),
  fates: "Backups that are there",
  noFates: "There are none yet.",
  stays: "stays",
  goes: "goes",
  state: "State",
  active: "active",
  paused: "paused",
  nextRun: "Next run",
  lastRun: "Last run",
  runs: "Runs",
  noRuns: "It has not run yet.",
  failures: (count: number) => `${counted(count, "run")} in a row failed.`,
  seeRuns: "See its backups",
  ended: (status: Run) => status,
  counts: ({
    total,
    completed,
    failed,
    skipped,
    partiallyFailed,
  }: Readonly<Record<"total" | "completed" | "failed" | "skipped" | "partiallyFailed", number>>) =>
    [
      `${completed} of ${total}`,
      ...(partiallyFailed > 0 ? [`${partiallyFailed} lack files`] : []),
      ...(failed > 0 ? [`${failed} failed`] : []),
      ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ].join(", "),
} as const;
