// Data exports: files with what the tenant has, how far each is, and the way to make one.
import type { DataExportWithActors } from "@mooring/client";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { actorText } from "../../parts/text.ts";
import { bytesText } from "../../ui/bytes.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { CreateExport } from "./create.tsx";
import { SCOPES, text } from "./text.ts";

type Row = DataExportWithActors;
const isUnderWay = ({ status }: Row): boolean => status === "pending" || status === "running";

const stateOf = (row: Row) => {
  if (row.statusReason !== null) return <span title={text.reasons[row.statusReason]}>{text.reasons[row.statusReason]}</span>;
  return isUnderWay(row) ? text.lines(row.progress.lines, row.progress.section) : row.sha256 === null ? null : bytesText(row.sizeBytes);
};

interface Acts {
  readonly download: (row: Row) => void;
  readonly cancel: (row: Row) => void;
  readonly remove: (row: Row) => void;
}
const columnsOf = ({ download, cancel, remove }: Acts): readonly Column<Row>[] => [
  {
    title: text.what,
    width: "minmax(110px, 2fr)",
    phone: true,
    cell: ({ scopes, format }) =>
      `${scopes.length === SCOPES.length ? text.everything : scopes.length === 1 ? text.scopes[scopes[0] ?? "settings"] : text.parts(scopes.length)}${format === "csv" ? ", CSV" : ""}`,
  },
  { title: text.state, width: "110px", phone: true, cell: ({ status }) => <Status status={status} /> },
  { title: text.size, width: "minmax(120px, 1.4fr)", cell: stateOf },
  { title: text.made, width: AGO_WIDTH, cell: ({ createdAt }) => <Ago at={createdAt} /> },
  { title: text.by, width: "minmax(90px, 1fr)", cell: ({ actor }) => actorText(actor) },
  { title: text.until, width: AGO_WIDTH, cell: ({ expiresAt }) => <Ago at={expiresAt} /> },
  {
    title: text.action,
    width: "196px",
    phone: true,
    cell: (row) => (
      <span className="row">
        {row.status !== "completed" ? null : (
          <button type="button" data-kind="plain" onClick={() => download(row)}>
            {text.download}
          </button>
        )}
        <button type="button" data-kind="plain" onClick={() => (isUnderWay(row) ? cancel(row) : remove(row))}>
          {isUnderWay(row) ? text.cancel : text.remove}
        </button>
      </span>
    ),
  },
];

const readAgain = () => queryClient.invalidateQueries(api.dataExports.pathFilter());

export const ExportsScreen = () => {
  const list = usePages<Row>((page) => api.dataExports.list.queryOptions({ page, pageSize: PAGE_SIZE }));
  const [creates, setCreates] = useState(false);
  const [removed, setRemoved] = useState<Row | null>(null);
  const remove = useMutation(
    api.dataExports.remove.mutationOptions({
      onSuccess: async () => {
        setRemoved(null);
        await readAgain();
      },
    }),
  );
  // A plain link would go without the page's tenant and without its token.
  const link = useMutation(api.dataExports.link.mutationOptions({ onSuccess: ({ url }) => location.assign(url) }));
  const [columns] = useState(() =>
    columnsOf({ download: ({ exportId }) => link.mutate({ exportId }), cancel: ({ exportId }) => remove.mutate({ exportId }), remove: setRemoved }),
  );
  const button = (
    <button type="button" data-kind="primary" onClick={() => setCreates(true)}>
      {text.create}
    </button>
  );
  return (
    <Page
      title={text.title}
      fill
      beside={<span className="muted">{list.read.data === undefined ? "" : text.total(list.count)}</span>}
      actions={list.count > 0 ? button : undefined}
    >
      {link.error === null ? null : <Failure error={link.error} />}
      {remove.error === null || removed !== null ? null : <Failure error={remove.error} />}
      <List label={text.title} columns={columns} list={list} rows={6} id={({ exportId }) => exportId} none={text.none} action={button} />
      {creates ? <CreateExport onClose={() => setCreates(false)} /> : null}
      {removed === null ? null : (
        <Confirm
          title={text.removeTitle}
          open
          onClose={() => setRemoved(null)}
          submit={text.remove}
          action={remove}
          onConfirm={() => remove.mutate({ exportId: removed.exportId })}
        >
          {text.removeText}
        </Confirm>
      )}
    </Page>
  );
};
