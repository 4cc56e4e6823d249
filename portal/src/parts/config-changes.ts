// Which values differ between two configurations of an application.
import type { DiffRow } from "../ui/diff.tsx";

interface Content {
  readonly version: string;
  readonly config: Readonly<Record<string, unknown>>;
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

export const changesBetween = (before: Content, after: Content): readonly DiffRow[] => {
  const names = [...new Set([...Object.keys(before.config), ...Object.keys(after.config)])].sort();
  return [
    { field: "version", before: before.version, after: after.version },
    ...names.map((field) => ({ field, before: before.config[field], after: after.config[field] })),
  ].filter((row) => !isSame(row.before, row.after));
};
