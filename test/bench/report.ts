// The output of the bench: a table for people and a file for programs.
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { meets } from "./arithmetic.ts";
import { SETTINGS } from "./gateway.ts";
import { describeMachine } from "./machine.ts";
import { type MetricId, metricOf } from "./metrics.ts";

/** The result of a benchmark; if `value` is null it was not measured, and `note` says why. */
export interface Finding {
  readonly id: MetricId;
  readonly value: number | null;
  readonly rounds?: readonly unknown[];
  /** The span of the rounds, for the table. */
  readonly span?: readonly [number, number];
  readonly note?: string;
  /** The figure is not reliable, so it meets no target. */
  readonly unsound?: boolean;
  /** The run was wrong, so there is no figure: something was lost, wrong or accepted when it should not have been. */
  readonly invalid?: boolean;
}

export type MetricResult = ReturnType<typeof toResult>;

export const toResult = ({ id, value, rounds = [], span, note, unsound = false }: Finding) => {
  const { name, unit, reference, target, stretch, better } = metricOf(id);
  const reached = value === null || unsound ? false : target === null || meets(value, target, better);
  return {
    id,
    name,
    value: value === null ? null : Number(value.toPrecision(4)),
    unit,
    reference,
    target,
    stretch,
    ok: value === null && !unsound ? null : reached,
    rounds,
    ...(span === undefined ? {} : { span: span.map((edge) => Number(edge.toPrecision(4))) }),
    ...(note === undefined ? {} : { note }),
  };
};

const cell = (value: number | null): string =>
  value === null ? "-" : value >= 1_000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
const verdictOf = ({ ok, target }: MetricResult): string => {
  if (ok === null) return "not measured";
  if (target === null) return ok ? "reported" : "MISSED";
  return ok ? "ok" : "MISSED";
};

export const table = (results: readonly MetricResult[]): string => {
  const rows = results.map((result) => {
    const span = result.span === undefined ? "" : `[${cell(result.span[0] ?? null)}..${cell(result.span[1] ?? null)}]`;
    return [result.id, cell(result.value), result.unit, span, cell(result.target), cell(result.stretch), verdictOf(result), result.note ?? ""];
  });
  const all = [["metric", "value", "unit", "rounds", "target", "stretch", "", ""], ...rows];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? [];
  const numeric = new Set([1, 4, 5]);
  return all
    .map((row) =>
      row
        .map((text, column) => (numeric.has(column) ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
};

const commit = (): string => {
  try {
    const git = (...words: string[]): string => execFileSync("git", words, { encoding: "utf8", cwd: import.meta.dirname }).trim();
    return `${git("rev-parse", "--short", "HEAD")}${git("status", "--porcelain", "--", "../../server", "../../protocol") === "" ? "" : " with changes"}`;
  } catch {
    return "unknown";
  }
};

export const document = (results: readonly MetricResult[], started: Date) => ({
  commit: commit(),
  date: started.toISOString(),
  machine: describeMachine(),
  settings: SETTINGS,
  metrics: results,
});

export const save = (results: ReturnType<typeof document>): string => {
  const folder = join(import.meta.dirname, "results");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "latest.json");
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`);
  return file;
};
