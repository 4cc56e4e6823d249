// The roles of the tenant, built-in and own, and the one that is open.
import type { Role } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { api } from "../../api/client.ts";
import { useMay } from "../../api/session.ts";
import { type Column, Table } from "../../ui/list/table.tsx";
import { Loaded } from "../../ui/parts.tsx";
import { OneRole } from "./one-role.tsx";
import { text } from "./text.ts";

const route = getRouteApi("/members");
/** Instead of an id: a role that does not exist yet. */
const NEW = "new";

const COLUMNS: readonly Column<Role>[] = [
  { title: "Name", width: "minmax(120px, 1fr)", phone: true, cell: ({ name }) => name },
  { title: "Kind", width: "90px", phone: true, cell: ({ builtIn }) => (builtIn ? text.builtIn : text.own) },
  { title: "Members", width: "90px", phone: true, cell: ({ memberCount }) => memberCount },
  { title: "Permissions", width: "110px", cell: ({ permissions }) => permissions.length },
  { title: "Description", width: "minmax(0, 3fr)", cell: ({ description }) => description },
];

export const Roles = () => {
  const { open } = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const read = useQuery(api.roles.list.queryOptions({}));
  const show = (roleId?: string): void =>
    void navigate({ to: "/members", search: { tab: "roles", ...(roleId === undefined ? {} : { open: roleId }) }, replace: true });
  return (
    <>
      {may("role:write") ? (
        <div>
          <button type="button" data-kind="primary" onClick={() => show(NEW)}>
            {text.createRole}
          </button>
        </div>
      ) : null}
      <Loaded read={read} rows={6}>
        {({ items }) => (
          <Table
            label={text.tabs.roles}
            columns={COLUMNS}
            count={items.length}
            row={(at) => items[at]}
            id={({ roleId }) => roleId}
            opened={open}
            onOpen={({ roleId }) => show(roleId)}
            fill
          />
        )}
      </Loaded>
      {open === undefined ? null : <OneRole roleId={open === NEW ? null : open} onClose={() => show()} />}
    </>
  );
};
