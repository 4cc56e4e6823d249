// The list of bulk jobs, newest first.
import type { BulkOperation } from "@mooring/client";
import { Link, useNavigate } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { actorText } from "../../parts/text.ts";
import { COMMAND_VIEWS, ViewTabs } from "../../parts/views.tsx";
import { numbers } from "../../ui/count.ts";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

/** A job as its list shows it. */
type Job = Omit<BulkOperation, "target"> & { readonly actor: Parameters<typeof actorText>[0] };

const doneOf = ({ counts: { total, pending, running } }: Job): string => `${numbers.format(total - pending - running)} ${text.of(total)}`;

const COLUMNS: readonly Column<Job>[] = [
  { title: text.job, width: "minmax(120px, 2fr)", phone: true, cell: ({ name, operation }) => <strong>{name ?? text.operations[operation]}</strong> },
  { title: text.state, width: "180px", phone: true, cell: ({ status }) => <Status status={status} word={text.states[status]} /> },
  { title: text.progress, width: "130px", phone: true, cell: doneOf },
  { title: text.counts.failed, width: "90px", cell: ({ counts: { failed } }) => (failed === 0 ? null : numbers.format(failed)) },
  { title: text.madeBy, width: "minmax(80px, 1fr)", cell: ({ actor }) => actorText(actor) },
  { title: text.created, width: AGO_WIDTH, cell: ({ createdAt }) => <Ago at={createdAt} /> },
];

export const BulkListScreen = () => {
  const navigate = useNavigate();
  const list = usePages<Job>((page) => api.bulkOperations.list.queryOptions({ page, pageSize: PAGE_SIZE }));
  return (
    <Page title={text.title} fill tabs={<ViewTabs of={COMMAND_VIEWS} at="/bulk" />}>
      <List
        label={text.title}
        columns={COLUMNS}
        list={list}
        id={({ operationId }) => operationId}
        onOpen={({ operationId }) => void navigate({ to: "/bulk/$operationId", params: { operationId } })}
        none={text.none}
        action={<Link to="/devices">{text.toDevices}</Link>}
      />
    </Page>
  );
};
