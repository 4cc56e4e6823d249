// The audit log as a file. NDJSON goes straight to disk, however long it is; the API gives CSV in parts.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { mooring, usesToken } from "../../api/client.ts";
import { Failure } from "../../ui/failure.tsx";
import { saveFile } from "../../ui/save-file.ts";
import { text } from "./text.ts";

export interface ExportFilters {
  readonly actor?: string;
  readonly action?: string;
  readonly resource?: string;
  readonly from?: string;
}

const PART = 5_000;

export const Exports = ({ filters }: { readonly filters: ExportFilters }) => {
  const [count, setCount] = useState(0);
  const csv = useMutation({
    mutationFn: async () => {
      const parts: string[] = [];
      for (let after: number | null = 0, read = 0; after !== null; ) {
        const part = await mooring.audit.export.query({ ...filters, format: "csv", after, max: PART });
        // Each part begins with the header.
        parts.push(after === 0 ? part.content : part.content.slice(part.content.indexOf("\n") + 1));
        after = part.next;
        read += part.count;
        setCount(read);
      }
      saveFile("audit-logs.csv", "text/csv", parts);
    },
  });
  return (
    <>
      {csv.error === null ? null : <Failure error={csv.error} />}
      {csv.isPending ? (
        <span role="status" className="muted">
          {text.exporting(count)}
        </span>
      ) : null}
      {usesToken ? null : (
        <a href={`/v1/audit-logs/export.ndjson?${new URLSearchParams({ ...filters })}`} download="audit-logs.ndjson">
          {text.lines}
        </a>
      )}
      <button type="button" disabled={csv.isPending} onClick={() => csv.mutate()}>
        {text.csv}
      </button>
    </>
  );
};
