// The invites of the tenant, and the one that is open.
import type { Invite } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { selectorText } from "../../parts/selector-field.tsx";
import { List } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { CreateInvite } from "./create-invite.tsx";
import { OneInvite } from "./one-invite.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/members");

export const Invites = () => {
  const { open } = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const [creates, setCreates] = useState(false);
  const roles = useQuery(api.roles.list.queryOptions({}));
  const names = new Map(
    roles.data?.items.flatMap(({ roleId, key, name }): [string, string][] => [
      [roleId, name],
      [key, name],
    ]),
  );
  const list = usePages<Invite>((page) => api.invites.list.queryOptions({ page, pageSize: PAGE_SIZE }));
  const show = (inviteId?: string): void =>
    void navigate({ to: "/members", search: { tab: "invites", ...(inviteId === undefined ? {} : { open: inviteId }) }, replace: true });
  const columns: readonly Column<Invite>[] = [
    { title: "Email", width: "minmax(140px, 2fr)", phone: true, cell: ({ email }) => email },
    { title: "State", width: "110px", phone: true, cell: ({ status }) => <Status status={status} /> },
    { title: text.role, cell: ({ roleId }) => names.get(roleId) ?? roleId },
    { title: text.devices, cell: ({ selector }) => selectorText(selector) },
    { title: "Sent", width: AGO_WIDTH, cell: ({ lastSentAt }) => <Ago at={lastSentAt} /> },
    { title: "Expires", width: AGO_WIDTH, cell: ({ status, expiresAt }) => (status === "pending" ? <Ago at={expiresAt} /> : null) },
  ];
  const invite = may("invite:write") ? (
    <button type="button" data-kind="primary" onClick={() => setCreates(true)}>
      {text.invite}
    </button>
  ) : undefined;
  return (
    <>
      {list.count > 0 && invite !== undefined ? <div>{invite}</div> : null}
      <List
        label={text.tabs.invites}
        columns={columns}
        list={list}
        rows={6}
        id={({ inviteId }) => inviteId}
        opened={open}
        onOpen={({ inviteId }) => show(inviteId)}
        none={text.noInvites}
        action={invite}
      />
      {open === undefined ? null : <OneInvite inviteId={open} onClose={() => show()} />}
      {creates ? <CreateInvite onClose={() => setCreates(false)} /> : null}
    </>
  );
};
