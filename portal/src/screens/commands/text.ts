// The sentences of the tenant's commands.
import { inWords } from "../../../../protocol/kit/words.ts";
import { numbers } from "../../ui/count.ts";
export const text = {
  title: "Commands",
  filter: "Filter commands",
  counts: "Counts",
  open: (count: number) => `${numbers.format(count)} open`,
  blocked: (count: number) => `${numbers.format(count)} blocked`,
  pastDeadline: (count: number) => `${numbers.format(count)} past ${count === 1 ? "its" : "their"} deadline`,
  lastDay: "Last 24 h:",
  since: (at: string) => `Queued since ${at}:`,
  ended: (count: number, status: string) => `${numbers.format(count)} ${inWords(status)}`,
  all: "all",
  clear: "Show what is open",
  showAll: "Show all commands",
  noneOpen: "No command is open: everything that was sent has ended.",
  noMatch: "No command matches these filters.",
  device: "on",
  by: "by",
} as const;
