// The mesh routes of the tenant: what each leads to, through which device, and whether somebody has to approve it.
import type { MeshRouteWithActors as MeshRoute } from "@mooring/client";
import { keepPreviousData, useMutation } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { api, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { given, oneOf, readNetworkSearch } from "../../api/search.ts";
import { useMay } from "../../api/session.ts";
import { useDeviceNames } from "../../parts/device-names.ts";
import { meshRouteState, meshTargetText } from "../../parts/network/mesh-words.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { MeshRouteForm } from "./form.tsx";
import { APPROVALS, STATUSES, text } from "./text.ts";

const route = getRouteApi("/network/routes");
const KEYS: readonly FilterKey[] = [
  { key: "status", name: "status", values: STATUSES },
  { key: "approval", name: "approval", values: APPROVALS },
];

const Create = ({ onClose }: { readonly onClose: () => void }) => {
  const navigate = useNavigate();
  const create = useMutation(
    api.meshRoutes.create.mutationOptions({
      onSuccess: async ({ routeId }) => {
        await queryClient.invalidateQueries(api.meshRoutes.pathFilter());
        await navigate({ to: "/network/routes/$routeId", params: { routeId } });
      },
    }),
  );
  return (
    <Dialog title={text.create} open onClose={onClose}>
      <MeshRouteForm submit={text.create} action={create} onCancel={onClose} onSubmit={(wishes) => create.mutate(wishes)} />
    </Dialog>
  );
};

export const MeshRoutesScreen = () => {
  const { status, approval, q } = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const [creates, setCreates] = useState(false);
  const filters = given({ q, status: oneOf(status, STATUSES), approval: oneOf(approval, APPROVALS) });
  const list = usePages<MeshRoute>((page) =>
    api.meshRoutes.list.queryOptions({ ...filters, page, pageSize: PAGE_SIZE }, { placeholderData: keepPreviousData }),
  );
  const nameOf = useDeviceNames({ ...list, row: (at) => ({ deviceId: list.row(at)?.activeRouter ?? null }) });
  const columns = useMemo(
    (): readonly Column<MeshRoute>[] => [
      { title: text.name, phone: true, cell: ({ name }) => <strong title={name}>{name}</strong> },
      { title: text.state, width: "minmax(170px, 0.8fr)", phone: true, cell: (each) => <Status {...meshRouteState(each)} /> },
      { title: text.leads, cell: (each) => <span title={meshTargetText(each)}>{meshTargetText(each)}</span> },
      { title: text.router, cell: ({ activeRouter }) => (activeRouter === null ? text.noRouter : nameOf(activeRouter)) },
      { title: text.since, width: AGO_WIDTH, cell: ({ since }) => <Ago at={since} /> },
    ],
    [nameOf],
  );
  const setFilters = useCallback((next: Filters) => void navigate({ to: "/network/routes", search: readNetworkSearch(next), replace: true }), [navigate]);
  const create = may("mesh:create") ? (
    <button type="button" data-kind="primary" onClick={() => setCreates(true)}>
      {text.create}
    </button>
  ) : undefined;
  const isEmpty = list.count === 0 && Object.keys(filters).length === 0;
  return (
    <Page
      title={text.title}
      fill
      beside={<span className="muted">{list.read.data === undefined ? "" : text.total(list.count)}</span>}
      actions={isEmpty ? undefined : create}
    >
      <FilterBar label={text.filter} keys={KEYS} filters={filters} onChange={setFilters} />
      <FilteredList
        label={text.title}
        columns={columns}
        list={list}
        rows={6}
        id={({ routeId }) => routeId}
        onOpen={({ routeId }) => void navigate({ to: "/network/routes/$routeId", params: { routeId } })}
        filters={filters}
        onClear={() => setFilters({})}
        noMatch={text.noMatch}
        none={text.none}
        action={create}
      />
      {creates ? <Create onClose={() => setCreates(false)} /> : null}
    </Page>
  );
};
