// Manifests: one file of what the tenant should have. Plan what it would change, and apply exactly that.
import { readFile } from "node:fs/promises";
import type { Import, ImportLine } from "../../index.ts";
import { pause } from "../../kit/timers.ts";
import type { Mooring } from "../index.ts";
import { type CliCall, type CliCommand, DONE, FAILED } from "./command.ts";
import { allOf } from "./find.ts";
import { Refusal } from "./refusal.ts";

const LOOK_MS = 500;
/** A file is sent in parts of that size. */
const PART_BYTES = 2_097_152;
/** Any value may be missing over the wire. */
type Line = Omit<ImportLine, "changes"> & { readonly changes: readonly { readonly field: string; readonly from?: unknown; readonly to?: unknown }[] };
const SIGNS: Readonly<Record<ImportLine["action"], string>> = { create: "+", update: "~", refuse: "!", skip: ".", unchanged: " ", delete: "-" };

const textOf = (value: unknown): string => (value === null || value === undefined ? "nothing" : JSON.stringify(value));
const lineOf = ({ action, kind, key, line, code, message, changes }: Line): string => {
  const why = code === null ? "" : `: ${code}, ${message}`;
  const fields = action === "update" ? changes.map(({ field, from, to }) => `\n    ${field}: ${textOf(from)} -> ${textOf(to)}`).join("") : "";
  return `${SIGNS[action]} ${kind} ${key} (${line === null ? "not in the file" : `line ${line}`})${why}${fields}`;
};
const countsOf = ({ counts: { create = 0, update = 0, refuse = 0, skip = 0, unchanged = 0, delete: deleted = 0 } }: Import): string =>
  create + update + refuse + deleted === 0
    ? `no changes (${unchanged} unchanged, ${skip} skipped)`
    : `${create} to create, ${update} to update, ${deleted} to delete, ${refuse} refused, ${skip} skipped, ${unchanged} unchanged`;

interface Planned {
  readonly mooring: Mooring;
  readonly plan: Import;
  readonly lines: readonly Line[];
}
const isGzip = (bytes: Buffer): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b;

/** Sends the file part by part, and waits for its plan. */
const uploaded = async (mooring: Mooring, bytes: Buffer, importId: string, { time, signal }: CliCall): Promise<Import> => {
  for (let from = 0; from < bytes.length; from += PART_BYTES) {
    const part = bytes.subarray(from, from + PART_BYTES);
    const contentRange = `bytes ${from}-${from + part.length - 1}/${bytes.length}`;
    await mooring.imports.upload.mutate({ importId, contentRange, part: part.toString("base64") });
  }
  const plan = await settled(mooring, importId, "validating", { time, signal });
  if (plan.status !== "ready") throw new Refusal(`the file was not planned: ${plan.statusReason ?? plan.status}`);
  return plan;
};

const settled = async (
  mooring: Mooring,
  importId: string,
  meanwhile: Import["status"],
  { time, signal }: Pick<CliCall, "time" | "signal">,
): Promise<Import> => {
  for (;;) {
    const now = await mooring.imports.get.query({ importId });
    if (now.status !== meanwhile || signal.aborted) return now;
    await pause(time, LOOK_MS, signal);
  }
};

const planned = async (call: CliCall, mode: Import["mode"]): Promise<Planned> => {
  const { words, options, gateway } = call;
  const [file = ""] = words;
  const bytes = await readFile(file).catch((error: Error) => {
    throw new Refusal(`${file} cannot be read: ${error.message}`);
  });
  const mooring = await gateway();
  const document = isGzip(bytes) ? undefined : bytes.toString("utf8");
  const begun = await mooring.imports.create.mutate({ document, mode, conflict: "overwrite", sendInvites: options["invite"] === true });
  const plan = document === undefined ? await uploaded(mooring, bytes, begun.importId, call) : begun;
  const lines = await allOf((page) => mooring.imports.report.query({ importId: plan.importId, ...page }));
  return { mooring, plan, lines };
};

const shown = ({ output }: CliCall, { plan, lines }: Planned): void =>
  output.answer({ ...plan, report: lines }, () => [
    ...lines.filter(({ action }) => action !== "unchanged").flatMap((line) => lineOf(line).split("\n")),
    countsOf(plan),
  ]);

const replace = { about: "Also delete what the kinds of the file have here and the file lacks. Only owners may." } as const;
const invite = { about: "Invite members of the file who are none yet." } as const;

const plan: CliCommand = {
  name: "plan",
  words: ["FILE"],
  about: "Show what a manifest or an export would change. It exits with 1 if that is anything, so that a job sees drift.",
  options: { invite, replace },
  run: async (call) => {
    const found = await planned(call, call.options["replace"] === true ? "replace" : "dry_run");
    shown(call, found);
    // Nobody applies it, and a job makes one each night.
    await found.mooring.imports.remove.mutate({ importId: found.plan.importId });
    return found.lines.every(({ action }) => action === "unchanged" || action === "skip") ? DONE : FAILED;
  },
};

const apply: CliCommand = {
  name: "apply",
  words: ["FILE"],
  about: "Make the tenant what a manifest or an export says. Lines that are refused are left out, and it exits with 1.",
  options: {
    invite,
    strict: { about: "Change nothing if any line is refused." },
    replace,
    "confirm-deletes": { value: "N", about: "How many records it deletes, if they are more than a tenth of their kind." },
  },
  run: async (call) => {
    const found = await planned(call, call.options["replace"] === true ? "replace" : "merge");
    const { mooring, plan: made, lines } = found;
    const refused = lines.filter(({ action }) => action === "refuse").length;
    const { create = 0, update = 0, delete: deleted = 0 } = made.counts;
    if (create + update + deleted === 0 || (refused > 0 && call.options["strict"] === true)) {
      shown(call, found);
      return refused === 0 ? DONE : FAILED;
    }
    const confirmed = call.options["confirm-deletes"];
    const confirmDeletes = confirmed === undefined ? undefined : Number(confirmed);
    await mooring.imports.apply.mutate({ importId: made.importId, planHash: made.planHash ?? "", confirmDeletes });
    const done = await settled(mooring, made.importId, "applying", call);
    const after = await allOf((page) => mooring.imports.report.query({ importId: made.importId, ...page }));
    const failed = after.filter(({ status }) => status === "failed");
    call.output.answer({ ...done, report: after }, () => [
      ...after.filter(({ action }) => action !== "unchanged").flatMap((line) => lineOf(line).split("\n")),
      `${done.status}: ${done.applied.succeeded} done, ${done.applied.failed} failed, ${refused} refused`,
    ]);
    return failed.length + refused === 0 && done.status === "completed" ? DONE : FAILED;
  },
};

const manifest: CliCommand = {
  name: "manifest",
  words: [],
  about: "Print the tenant as a manifest, to keep it in git.",
  options: {},
  run: async ({ output, gateway }) => {
    const text = await (await gateway()).imports.manifest.query({});
    output.answer({ manifest: text }, () => text.trimEnd().split("\n"));
    return DONE;
  },
};

export const MANIFESTS = [plan, apply, manifest];
