// The members, and the one that is open.
import type { Member } from "@mooring/client";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMe } from "../../api/session.ts";
import { selectorText } from "../../parts/selector-field.tsx";
import { type Column, Table } from "../../ui/list/table.tsx";
import { Loaded } from "../../ui/parts.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { Impersonations } from "./impersonations.tsx";
import { OneMember } from "./one-member.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/members");

export const MemberList = () => {
  const { open } = route.useSearch();
  const navigate = useNavigate();
  const { subject } = useMe();
  const list = usePages<Member>((page) => api.roles.listMembers.queryOptions({ page, pageSize: PAGE_SIZE }));
  const show = (memberId?: string): void => void navigate({ to: "/members", search: memberId === undefined ? {} : { open: memberId }, replace: true });
  const columns: readonly Column<Member>[] = [
    {
      title: "Member",
      width: "minmax(140px, 2fr)",
      phone: true,
      cell: ({ email, userId }) => (
        <>
          {email ?? userId} {userId === subject ? <span className="muted">({text.you})</span> : null}
        </>
      ),
    },
    { title: text.role, width: "minmax(80px, 1fr)", phone: true, cell: ({ role }) => role },
    { title: text.devices, cell: ({ selector }) => selectorText(selector) },
    { title: "Since", width: AGO_WIDTH, cell: ({ createdAt }) => <Ago at={createdAt} /> },
  ];
  return (
    <>
      <Impersonations />
      <Loaded read={list.read} rows={6}>
        {() => (
          <Table
            label={text.tabs.members}
            columns={columns}
            {...list}
            id={({ memberId }) => memberId}
            opened={open}
            onOpen={({ memberId }) => show(memberId)}
            fill
          />
        )}
      </Loaded>
      {open === undefined ? null : <OneMember memberId={open} onClose={() => show()} />}
    </>
  );
};
