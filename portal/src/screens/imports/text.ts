// The sentences of imports.
import type { Import, ImportLine } from "@mooring/client";
import { counted } from "../../ui/count.ts";

const ACTIONS: Readonly<Record<ImportLine["action"], string>> = {
  create: "create",
  update: "change",
  unchanged: "unchanged",
  skip: "leave out",
  refuse: "refused",
  delete: "delete",
};

export const text = {
  title: "Imports",
  total: (count: number) => counted(count, "import"),
  none: "An import makes what a file says: a manifest in YAML, or an export. You see its plan first.",
  plan: "Plan an import",
  planIt: "Plan",
  file: "File",
  fileHint: "A manifest (.yaml, at most 256 KB), or an export as you have downloaded it (.gz, at most 100 MB).",
  tooLarge: (megabytes: number) => `The file is larger than ${megabytes} MB.`,
  sent: (percent: number) => `${percent} % sent`,
  replace: "Delete what the file lacks, of the kinds that it has",
  conflict: "What is here and differs",
  conflicts: [
    ["overwrite", "is changed"],
    ["skip", "stays"],
    ["fail", "is refused"],
  ] as const,
  invite: "Invite members of the file who are none yet",
  what: "What",
  formats: { export: "Export", manifest: "Manifest" } satisfies Readonly<Record<Import["format"], string>>,
  origins: {
    written: "written by hand",
    this: "signed by this installation",
    foreign: "of another installation, or changed since",
  } satisfies Readonly<Record<Import["origin"], string>>,
  state: "State",
  reason: "Why",
  changes: "Changes",
  by: "By",
  made: "Planned",
  nothing: "nothing to do",
  toDo: (create: number, update: number, deleted: number, refused: number) =>
    [
      create > 0 ? `${create} to create` : "",
      update > 0 ? `${update} to change` : "",
      deleted > 0 ? `${deleted} to delete` : "",
      refused > 0 ? `${refused} refused` : "",
    ]
      .filter((part) => part !== "")
      .join(", "),
  one: "Import",
  back: "Imports",
  origin: "Origin",
  done: "Carried out",
  doneOf: (succeeded: number, failed: number) => `${succeeded}${failed > 0 ? `, ${failed} failed` : ""}`,
  action: "Action",
  actions: ACTIONS,
  kind: "Kind",
  name: "Name",
  line: "Line",
  why: "Why",
  result: "Result",
  results: { pending: "not yet", succeeded: "done", failed: "failed" } satisfies Readonly<Record<ImportLine["status"], string>>,
  fields: (fields: readonly string[]) => fields.join(", "),
  apply: "Carry it out",
  applyTitle: "Carry out this plan?",
  applyText: (text: string) => `${text}. Refused records are left out.`,
  stop: "Stop",
  remove: "Delete",
  noLines: "The file has no records.",
  statuses: {
    uploading: "being sent",
    validating: "being read",
    ready: "ready",
    applying: "running",
    completed: "completed",
    completed_with_errors: "completed with errors",
    failed: "failed",
    cancelled: "cancelled",
  } satisfies Readonly<Record<Import["status"], string>>,
} as const;

export const summaryOf = ({ counts: { create = 0, update = 0, delete: deleted = 0, refuse = 0 } }: Pick<Import, "counts">): string =>
  text.toDo(create, update, deleted, refuse) || text.nothing;
export const toneOf = (status: Import["status"]): string =>
  ({
    uploading: "pending",
    validating: "running",
    ready: "pending",
    applying: "running",
    completed: "completed",
    completed_with_errors: "partially_failed",
    failed: "failed",
    cancelled: "canceled",
  })[status];
