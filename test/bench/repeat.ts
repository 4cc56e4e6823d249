// Joins the findings of several runs: one figure each, the median of the runs. Pure.
import { median } from "./arithmetic.ts";
import type { Finding } from "./report.ts";

const shown = ({ value, unsound = false }: Finding): string => `${value === null ? "none" : Number(value.toPrecision(3))}${unsound ? " (unsound)" : ""}`;

/** A median hides no loss: one invalid run makes the result invalid. It is sound if most runs are; the others still count, so that nobody chooses among runs. */
const medianOf = (runs: readonly Finding[], [first]: readonly [Finding, ...Finding[]]): Finding => {
  const invalid = runs.find((run) => run.invalid === true);
  if (invalid !== undefined) return invalid;
  const values = runs.flatMap(({ value }) => (value === null ? [] : [value]));
  const unsound = runs.filter((run) => run.unsound === true).length * 2 > runs.length;
  const value = values.length * 2 > runs.length ? median(values) : null;
  const span: Pick<Finding, "span"> = values.length === 0 ? {} : { span: [Math.min(...values), Math.max(...values)] };
  const nearest = runs.find((run) => run.value === value) ?? first;
  const note = [`${runs.length} runs: ${runs.map(shown).join(", ")}`, ...(nearest.note === undefined ? [] : [nearest.note])].join("; ");
  return { id: first.id, value, rounds: runs.flatMap(({ rounds = [] }) => rounds), ...span, note, unsound };
};

export const mediansOf = (runs: readonly (readonly Finding[])[]): readonly Finding[] => {
  const [only, ...others] = runs;
  if (only === undefined || others.length === 0) return only ?? [];
  return only.map((first) => medianOf([first, ...others.flatMap((run) => run.filter(({ id }) => id === first.id))], [first]));
};
