// The sentences about apps and deployments, wherever they are shown.
import type { App } from "@mooring/client";
import { counted } from "../../ui/count.ts";

type Failure = NonNullable<App["failure"]>;

export const text = {
  failed: (revision: number) => `Revision ${revision} failed`,
  stages: {
    refused: "refused by the agent",
    preparing: "while it was prepared",
    fetching: "while its images were fetched",
    stopping: "while it stopped",
    starting: "while it started",
    health: "in its health check",
    running: "while it ran",
    removing: "while it was removed",
  } satisfies Readonly<Record<NonNullable<Failure["stage"]>, string>>,
  command: "Its command",
  lastLines: "Last lines of its log",
  steps: "Steps",
  revision: (revision: number) => `revision ${revision}`,
  byDevice: "the device",
  noSteps: "Nothing has happened yet.",
  drift: "Not as it should be",
  driftWhat: "What the agent reported last differs from what should be, and no command is under way that would change it.",
  insteadOf: (is: string | number, desired: string | number) => `${is} instead of ${desired}`,
  since: "For",
  reportedAt: "Reported",
  nothingReported: "The agent has reported nothing about it.",
  state: "State",
  revisionField: "Revision",
  generated: "Leave it empty for a random value.",
  unfit: "The marked fields do not fit.",
  keepVolumes: "Keep its data on the device",
  dataGoes: "Its data on the device goes with it.",
  back: "Go back",
  logs: "Logs",
  log: "Log",
  fullLog: "Full log",
  lastLinesNow: "Last lines",
  lines: "Lines of the log",
  noLines: "No lines yet.",
  notInstalled: "The app is not on its device.",
  logsOffline: "The device is offline. New lines come when it is back.",
  logsRefused: "The agent does not send the log. It is asked again.",
  logsIncomplete: "The gateway's nodes do not reach each other; lines may be missing.",
  skipped: (count: number) => `${counted(count, "line")} left out, because more came than could be sent.`,
} as const;

export const failureTitle = ({ stage, revision }: Pick<Failure, "stage" | "revision">): string =>
  stage === null ? text.failed(revision) : `${text.failed(revision)} ${text.stages[stage]}`;
