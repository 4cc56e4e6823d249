// The sentences of imports.
import type { Import, ImportLine } from "@mooring/client";
import { counted } from "../../ui/count.ts";

const ACTIONS: Readonly<Record<ImportLine["action"], string>> = {
  create: "create",
  update: "change",
  unchanged: "unchanged",
  skip: "leave out",
  refuse: "refused",
};

export const text = {
  title: "Imports",
  total: (count: number) => counted(count, "import"),
  none: "An import makes what a file says: a manifest in YAML, or the lines of an export. You see its plan first.",
  plan: "Plan an import",
  planIt: "Plan",
  file: "File",
  fileHint: "A manifest (.yaml), or an export that you have unpacked (.ndjson). At most 1 MB.",
  tooLarge: "The file is larger than 1 MB.",
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
  changes: "Changes",
  by: "By",
  made: "Planned",
  nothing: "nothing to do",
  toDo: (create: number, update: number, refused: number) =>
    [create > 0 ? `${create} to create` : "", update > 0 ? `${update} to change` : "", refused > 0 ? `${refused} refused` : ""]
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
    ready: "ready",
    applying: "running",
    completed: "completed",
    completed_with_errors: "completed with errors",
    failed: "failed",
    cancelled: "cancelled",
  } satisfies Readonly<Record<Import["status"], string>>,
} as const;

export const summaryOf = ({ counts: { create = 0, update = 0, refuse = 0 } }: Pick<Import, "counts">): string =>
  text.toDo(create, update, refuse) || text.nothing;
export const toneOf = (status: Import["status"]): string =>
  ({ ready: "pending", applying: "running", completed: "completed", completed_with_errors: "partially_failed", failed: "failed", cancelled: "canceled" })[
    status
  ];
