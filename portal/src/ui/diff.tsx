// What a change does: each value that differs, before and after.
import type { ReactNode } from "react";
import css from "./diff.module.css";

export interface DiffRow {
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
}

export interface DiffProps {
  readonly caption: ReactNode;
  readonly rows: readonly DiffRow[];
  /** Null where nothing was, or nothing is left. */
  readonly before?: string | null;
  readonly after?: string | null;
}

const MAX_SHOWN = 4_000;
const show = (value: unknown): string => {
  if (value === undefined || value === null) return "";
  const shown = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}…` : shown;
};

export const Diff = ({ caption, rows, before = "Before", after = "After" }: DiffProps) => (
  <table className={css["diff"]}>
    <caption>{caption}</caption>
    <thead>
      <tr>
        <th scope="col">Field</th>
        {before === null ? null : <th scope="col">{before}</th>}
        {after === null ? null : <th scope="col">{after}</th>}
      </tr>
    </thead>
    <tbody>
      {rows.map((row) => (
        <tr key={row.field}>
          <th scope="row">{row.field}</th>
          {before === null ? null : <td className={css["before"]}>{show(row.before)}</td>}
          {after === null ? null : <td className={css["after"]}>{show(row.after)}</td>}
        </tr>
      ))}
    </tbody>
  </table>
);
