// Who of the installation's administrators acts, or has acted, in a member's name, and the way to do it.
import type { Impersonation } from "@mooring/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, impersonate, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { Dialog, Field, Form, SelectField, TextField } from "../../ui/dialog.tsx";
import { Failure } from "../../ui/failure.tsx";
import { Check } from "../../ui/fields/checks.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { text } from "./text.ts";

const words = text.impersonations;
const SHOWN_TENANTS = 20;

const columnsOf = (end: (of: Impersonation) => void): readonly Column<Impersonation>[] => [
  { title: words.tenant, width: "minmax(120px, 1fr)", cell: ({ tenantId }) => <code>{tenantId}</code> },
  { title: words.member, width: "minmax(100px, 1fr)", phone: true, cell: ({ userId }) => userId },
  { title: words.admin, width: "minmax(100px, 1fr)", cell: ({ adminId }) => adminId },
  { title: words.reason, width: "minmax(120px, 2fr)", cell: ({ reason, readOnly }) => `${reason} (${readOnly ? words.readOnly : words.mayChange})` },
  {
    title: words.state,
    width: "92px",
    phone: true,
    cell: ({ endedAt }) => (endedAt === null ? <Status status="active" word={words.goesOn} /> : <Status status="over" word={words.over} />),
  },
  { title: words.until, width: AGO_WIDTH, cell: ({ endedAt, expiresAt }) => <Ago at={endedAt ?? expiresAt} /> },
  {
    title: text.node.action,
    width: "84px",
    phone: true,
    cell: (of) =>
      of.endedAt === null ? (
        <button type="button" data-kind="plain" onClick={() => end(of)} aria-label={`${words.end}: ${of.userId}`}>
          {words.end}
        </button>
      ) : null,
  },
];

const Begin = ({ onClose }: { readonly onClose: () => void }) => {
  const [q, setQ] = useState("");
  const tenants = useQuery(api.admin.listTenants.queryOptions({ pageSize: SHOWN_TENANTS, sort: "name", ...(q === "" ? {} : { q }) }));
  const start = useMutation(api.impersonations.start.mutationOptions({ onSuccess: ({ token }) => impersonate(token) }));
  const send = (fields: FormData): void => {
    const userId = String(fields.get("userId"));
    start.mutate({
      tenantId: String(fields.get("tenantId")),
      reason: String(fields.get("reason")),
      minutes: Number(fields.get("minutes")),
      readOnly: fields.get("changes") === null,
      ...(userId === "" ? {} : { userId }),
    });
  };
  return (
    <Dialog title={words.begin} open onClose={onClose}>
      <Form submit={words.start} busy={start.isPending} error={start.error} disabled={tenants.data === undefined} onSubmit={send} onCancel={onClose}>
        <Field label={words.find} hint={words.findHint}>
          {(id, hintId) => <input id={id} aria-describedby={hintId} type="search" value={q} maxLength={100} onChange={({ target }) => setQ(target.value)} />}
        </Field>
        {tenants.error === null ? null : <Failure error={tenants.error} />}
        <SelectField
          label={words.tenant}
          name="tenantId"
          options={(tenants.data?.items ?? []).map(({ tenantId, name, slug }) => [tenantId, `${name} (${slug})`])}
        />
        <TextField label={words.member} name="userId" hint={words.memberHint} maxLength={255} />
        <TextField label={words.reason} name="reason" hint={words.reasonHint} required maxLength={500} />
        <TextField label={words.minutes} name="minutes" type="number" min={1} max={60} defaultValue={15} hint={words.minutesHint} required />
        <Check name="changes" label={words.changes} />
      </Form>
    </Dialog>
  );
};

export const ImpersonationList = () => {
  const list = usePages<Impersonation>((page) => api.impersonations.listAll.queryOptions({ page, pageSize: PAGE_SIZE }));
  const [begins, setBegins] = useState(false);
  const end = useMutation(api.impersonations.endAny.mutationOptions({ onSuccess: () => queryClient.invalidateQueries(api.impersonations.pathFilter()) }));
  const [columns] = useState(() => columnsOf(({ impersonationId }) => end.mutate({ impersonationId })));
  const button = (
    <button type="button" data-kind="primary" onClick={() => setBegins(true)}>
      {words.begin}
    </button>
  );
  return (
    <>
      {end.error === null ? null : <Failure error={end.error} />}
      {list.count === 0 ? null : <div>{button}</div>}
      <List
        label={text.tabs.impersonations}
        columns={columns}
        list={list}
        rows={4}
        fill={false}
        id={({ impersonationId }) => impersonationId}
        none={words.none}
        action={button}
      />
      {begins ? <Begin onClose={() => setBegins(false)} /> : null}
    </>
  );
};
