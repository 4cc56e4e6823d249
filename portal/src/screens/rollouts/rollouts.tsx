// The list of rollouts, newest first.
import type { Rollout } from "@mooring/client";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { actorText } from "../../parts/text.ts";
import { numbers } from "../../ui/count.ts";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

const NewRollout = lazy(() => import("./new-rollout.tsx").then((part) => ({ default: part.NewRollout })));

type Row = Rollout & { readonly actor: Parameters<typeof actorText>[0] };
const COLUMNS: readonly Column<Row>[] = [
  { title: text.name, width: "minmax(140px, 2fr)", phone: true, cell: ({ name }) => <strong>{name}</strong> },
  { title: text.state, width: "180px", phone: true, cell: ({ status }) => <Status status={status} word={text.states[status]} /> },
  {
    title: text.progress,
    width: "130px",
    phone: true,
    cell: ({ counts: { succeeded, total } }) => `${numbers.format(succeeded)} of ${numbers.format(total)}`,
  },
  {
    title: text.counts.failed,
    width: "80px",
    cell: ({ counts: { failed, timedOut } }) => (failed + timedOut === 0 ? null : numbers.format(failed + timedOut)),
  },
  { title: text.by, width: "minmax(80px, 1fr)", cell: ({ actor }) => actorText(actor) },
  { title: text.created, width: AGO_WIDTH, cell: ({ createdAt }) => <Ago at={createdAt} /> },
];

export const RolloutsScreen = () => {
  const may = useMay();
  const navigate = useNavigate();
  const [creating, setCreating] = useState(false);
  const list = usePages<Row>((page) => api.rollouts.list.queryOptions({ page, pageSize: PAGE_SIZE }));
  const action = may("rollout:write") ? (
    <button type="button" data-kind="primary" onClick={() => setCreating(true)}>
      {text.create}
    </button>
  ) : undefined;
  return (
    <Page title={text.title} fill actions={action}>
      <List
        label={text.title}
        columns={COLUMNS}
        list={list}
        id={({ rolloutId }) => rolloutId}
        onOpen={({ rolloutId }) => void navigate({ to: "/rollouts/$rolloutId", params: { rolloutId } })}
        none={text.none}
      />
      <Suspense fallback={null}>{creating ? <NewRollout onClose={() => setCreating(false)} /> : null}</Suspense>
    </Page>
  );
};
