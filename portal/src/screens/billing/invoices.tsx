// The invoices of the tenant, newest first.
import type { Invoice } from "@mooring/client";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Panel } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { dayOf } from "../../ui/time.tsx";
import { money, text } from "./text.ts";

const periodOf = ({ periodStart, periodEnd }: Invoice): string =>
  periodStart === null || periodEnd === null ? "" : `${dayOf(periodStart)} – ${dayOf(periodEnd)}`;

const COLUMNS: readonly Column<Invoice>[] = [
  { title: "Issued", width: "120px", phone: true, cell: ({ issuedAt }) => dayOf(issuedAt) },
  { title: "Amount", width: "90px", phone: true, cell: ({ amountDue, currency }) => money(amountDue, currency) },
  { title: "State", width: "120px", phone: true, cell: ({ status }) => <Status status={status === "open" ? "pending" : status} word={status} /> },
  { title: "Period", cell: periodOf },
  {
    title: "Invoice",
    cell: ({ url, number, invoiceId }) =>
      url === null ? (
        <span className="mono muted">{number ?? invoiceId}</span>
      ) : (
        <a href={url} target="_blank" rel="noreferrer">
          {number ?? invoiceId}
        </a>
      ),
  },
];

export const Invoices = () => {
  const list = usePages<Invoice>((page) => api.billing.invoices.queryOptions({ page, pageSize: PAGE_SIZE }));
  return (
    <Panel title={text.invoices}>
      <List label={text.invoices} columns={COLUMNS} list={list} rows={3} fill={false} id={({ invoiceId }) => invoiceId} none={text.noInvoices} />
    </Panel>
  );
};
