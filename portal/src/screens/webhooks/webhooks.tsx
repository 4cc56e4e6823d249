// The webhooks of the tenant: where its events go, and whether they arrive.
import type { Webhook } from "@mooring/client";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { numbers } from "../../ui/count.ts";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { CreateWebhook } from "./create.tsx";
import { stateWord, text } from "./text.ts";

const COLUMNS: readonly Column<Webhook>[] = [
  { title: text.url, width: "minmax(0, 1.5fr)", phone: true, cell: ({ url }) => <span title={url}>{url}</span> },
  { title: text.status, width: "minmax(96px, 1.4fr)", phone: true, cell: (webhook) => <Status status={webhook.status} word={stateWord(webhook)} /> },
  { title: text.events, cell: ({ events }) => <span title={events.join(", ")}>{events.join(", ")}</span> },
  { title: "Arrived, 24 h", width: "100px", cell: ({ stats }) => numbers.format(stats.success24h) },
  { title: "Failed, 24 h", width: "90px", cell: ({ stats }) => numbers.format(stats.failure24h) },
  { title: text.lastSuccess, width: AGO_WIDTH, cell: ({ stats }) => <Ago at={stats.lastSuccessAt} /> },
];

export const WebhooksScreen = () => {
  const may = useMay();
  const navigate = useNavigate();
  const [creating, setCreating] = useState(false);
  const list = usePages<Webhook>((page) => api.webhooks.list.queryOptions({ page, pageSize: PAGE_SIZE }));
  const open = (webhookId: string): void => void navigate({ to: "/webhooks/$webhookId", params: { webhookId } });
  const create = may("webhook:write") ? (
    <button type="button" data-kind="primary" onClick={() => setCreating(true)}>
      {text.create}
    </button>
  ) : undefined;
  return (
    <Page
      title={text.title}
      fill
      beside={<span className="muted">{list.read.data === undefined ? "" : text.total(list.count)}</span>}
      actions={list.count > 0 ? create : undefined}
    >
      <List
        label={text.title}
        columns={COLUMNS}
        list={list}
        rows={8}
        id={({ webhookId }) => webhookId}
        onOpen={({ webhookId }) => open(webhookId)}
        none={text.none}
        action={create}
      />
      {creating ? <CreateWebhook onClose={() => setCreating(false)} onDone={open} /> : null}
    </Page>
  );
};
