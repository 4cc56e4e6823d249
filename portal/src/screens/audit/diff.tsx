// What a change did to one row: each field with its value before and after. The API has masked secrets.
import type { AuditLog } from "@mooring/client";
import css from "./audit.module.css";
import { text } from "./text.ts";

type Change = AuditLog["changes"][number];

const MAX_SHOWN = 4_000;
const show = (value: unknown): string => {
  if (value === undefined || value === null) return "";
  const shown = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}…` : shown;
};
const wordOf = ({ before, after }: Change): string => (before === null ? text.added : after === null ? text.removed : text.changed);

export const Diff = ({ change }: { readonly change: Change }) => {
  const { type, id, before, after } = change;
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return (
    <table className={css["diff"]}>
      <caption>
        {type} {wordOf(change)} {id === null ? null : <span className="mono muted">{id}</span>}
      </caption>
      <thead>
        <tr>
          <th scope="col">{text.field}</th>
          {before === null ? null : <th scope="col">{text.before}</th>}
          {after === null ? null : <th scope="col">{text.after}</th>}
        </tr>
      </thead>
      <tbody>
        {fields.map((field) => (
          <tr key={field}>
            <th scope="row">{field}</th>
            {before === null ? null : <td className={css["before"]}>{show(before[field])}</td>}
            {after === null ? null : <td className={css["after"]}>{show(after[field])}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
};
