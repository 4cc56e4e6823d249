// One import: its plan as a table, what became of each record, and the button that carries it out.
import type { ImportLine, ImportWithActors } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Facts, Loaded, Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { Ago } from "../../ui/time.tsx";
import { summaryOf, text, toneOf } from "./text.ts";

const route = getRouteApi("/imports/$importId");
const LOOK_MS = 1_000;
const TONES: Readonly<Record<ImportLine["action"], string>> = {
  create: "active",
  update: "running",
  unchanged: "none",
  skip: "none",
  refuse: "failed",
  delete: "pending",
};
/** What is carried out. */
const DONE: ReadonlySet<ImportLine["action"]> = new Set(["create", "update", "delete"]);
type Row = Pick<ImportLine, "n" | "line" | "kind" | "key" | "action" | "code" | "message" | "status"> & {
  readonly changes: readonly { readonly field: string }[];
};

const COLUMNS: readonly Column<Row>[] = [
  { title: text.action, width: "120px", phone: true, cell: ({ action }) => <Status status={TONES[action]} word={text.actions[action]} /> },
  { title: text.kind, width: "130px", phone: true, cell: ({ kind }) => kind },
  { title: text.name, width: "minmax(110px, 2fr)", phone: true, cell: ({ key }) => key },
  {
    title: text.why,
    width: "minmax(140px, 3fr)",
    phone: true,
    cell: ({ message, changes }) => <span title={message ?? ""}>{message ?? text.fields(changes.map(({ field }) => field))}</span>,
  },
  { title: text.line, width: "60px", cell: ({ line }) => line },
  {
    title: text.result,
    width: "90px",
    cell: ({ status, action }) => (DONE.has(action) ? text.results[status] : ""),
  },
];

const isBusy = ({ status }: Pick<ImportWithActors, "status">): boolean => status === "applying" || status === "validating" || status === "uploading";
const readAgain = () => queryClient.invalidateQueries(api.imports.pathFilter());

const Actions = ({ of }: { readonly of: ImportWithActors }) => {
  const navigate = useNavigate();
  const [asks, setAsks] = useState(false);
  const { importId, planHash, status, mode, counts, deletesToConfirm } = of;
  const apply = useMutation(
    api.imports.apply.mutationOptions({
      onSuccess: async () => {
        setAsks(false);
        await readAgain();
      },
    }),
  );
  const remove = useMutation(
    api.imports.remove.mutationOptions({
      onSuccess: async () => {
        if (status !== "applying") await navigate({ to: "/imports" });
        await readAgain();
      },
    }),
  );
  const hasWork = (counts.create ?? 0) + (counts.update ?? 0) + (counts.delete ?? 0) > 0;
  return (
    <>
      {status === "ready" && mode !== "dry_run" && hasWork ? (
        <button type="button" data-kind="primary" onClick={() => setAsks(true)}>
          {text.apply}
        </button>
      ) : null}
      <button type="button" onClick={() => remove.mutate({ importId })}>
        {status === "applying" ? text.stop : text.remove}
      </button>
      {remove.error === null ? null : <Failure error={remove.error} />}
      <Confirm
        title={text.applyTitle}
        open={asks}
        onClose={() => setAsks(false)}
        submit={text.apply}
        action={apply}
        onConfirm={() => apply.mutate({ importId, planHash: planHash ?? "", confirmDeletes: deletesToConfirm ?? undefined })}
      >
        {text.applyText(summaryOf(of))}
      </Confirm>
    </>
  );
};

const Lines = ({ of, isUnderWay }: { readonly of: ImportWithActors; readonly isUnderWay: boolean }) => {
  const list = usePages<Row>((page) => ({
    ...api.imports.report.queryOptions({ importId: of.importId, page, pageSize: PAGE_SIZE }),
    refetchInterval: isUnderWay ? LOOK_MS : false,
  }));
  return <List label={text.changes} columns={COLUMNS} list={list} rows={8} id={({ n }) => String(n)} none={text.noLines} />;
};

const Plan = ({ of }: { readonly of: ImportWithActors }) => (
  <>
    <Facts
      of={{
        [text.state]: <Status status={toneOf(of.status)} word={text.statuses[of.status]} />,
        [text.what]: text.formats[of.format],
        [text.origin]: text.origins[of.origin],
        [text.changes]: summaryOf(of),
        ...(of.statusReason === null ? {} : { [text.reason]: of.statusReason }),
        [text.done]: text.doneOf(of.applied.succeeded, of.applied.failed),
        [text.made]: <Ago at={of.createdAt} />,
      }}
    />
    {of.planHash === null ? null : <Lines of={of} isUnderWay={of.status === "applying"} />}
  </>
);

export const ImportScreen = () => {
  const { importId } = route.useParams();
  const read = useQuery({
    ...api.imports.get.queryOptions({ importId }),
    refetchInterval: ({ state }) => (state.data !== undefined && isBusy(state.data) ? LOOK_MS : false),
  });
  return (
    <Page title={text.one} fill beside={<Link to="/imports">{text.back}</Link>} actions={read.data === undefined ? undefined : <Actions of={read.data} />}>
      <Loaded read={read} rows={6}>
        {(of) => <Plan of={of} />}
      </Loaded>
    </Page>
  );
};
