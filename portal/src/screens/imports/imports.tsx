// Imports: the plans that people have made, how each went, and the way to make one.
import type { ImportWithActors } from "@mooring/client";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { actorText } from "../../parts/text.ts";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { PlanImport } from "./plan.tsx";
import { summaryOf, text, toneOf } from "./text.ts";

type Row = ImportWithActors;

const COLUMNS: readonly Column<Row>[] = [
  { title: text.what, width: "minmax(90px, 1fr)", phone: true, cell: ({ format }) => text.formats[format] },
  { title: text.changes, width: "minmax(150px, 2fr)", phone: true, cell: summaryOf },
  { title: text.state, width: "170px", phone: true, cell: ({ status }) => <Status status={toneOf(status)} word={text.statuses[status]} /> },
  { title: text.by, width: "minmax(90px, 1fr)", cell: ({ actor }) => actorText(actor) },
  { title: text.made, width: AGO_WIDTH, cell: ({ createdAt }) => <Ago at={createdAt} /> },
];

export const ImportsScreen = () => {
  const navigate = useNavigate();
  const list = usePages<Row>((page) => api.imports.list.queryOptions({ page, pageSize: PAGE_SIZE }));
  const [plans, setPlans] = useState(false);
  const button = (
    <button type="button" data-kind="primary" onClick={() => setPlans(true)}>
      {text.plan}
    </button>
  );
  return (
    <Page
      title={text.title}
      fill
      beside={<span className="muted">{list.read.data === undefined ? "" : text.total(list.count)}</span>}
      actions={list.count > 0 ? button : undefined}
    >
      <List
        label={text.title}
        columns={COLUMNS}
        list={list}
        rows={6}
        id={({ importId }) => importId}
        onOpen={({ importId }) => void navigate({ to: "/imports/$importId", params: { importId } })}
        none={text.none}
        action={button}
      />
      {plans ? <PlanImport onClose={() => setPlans(false)} /> : null}
    </Page>
  );
};
