// What a change did to one row. The API has masked secrets.
import type { AuditLog } from "@mooring/client";
import { Diff } from "../../ui/diff.tsx";
import { text } from "./text.ts";

type Change = AuditLog["changes"][number];

const wordOf = ({ before, after }: Change): string => (before === null ? text.added : after === null ? text.removed : text.changed);

export const RowDiff = ({ change }: { readonly change: Change }) => {
  const { type, id, before, after } = change;
  const fields = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return (
    <Diff
      caption={
        <>
          {type} {wordOf(change)} {id === null ? null : <span className="mono muted">{id}</span>}
        </>
      }
      rows={fields.map((field) => ({ field, before: before?.[field], after: after?.[field] }))}
      {...(before === null ? { before } : {})}
      {...(after === null ? { after } : {})}
    />
  );
};
