// The tunnels of the tenant: what each leads to, who may come in, and whether it serves.
import type { TunnelWithActors as Tunnel } from "@mooring/client";
import { keepPreviousData, useMutation } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { api, mooring, queryClient } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { given, oneOf, readNetworkSearch } from "../../api/search.ts";
import { useMay } from "../../api/session.ts";
import { useDeviceNames } from "../../parts/device-names.ts";
import { tunnelState } from "../../parts/network/tunnel-words.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { TunnelForm, type TunnelWishes } from "./form.tsx";
import { STATUSES, text } from "./text.ts";

const route = getRouteApi("/network");
const KEYS: readonly FilterKey[] = [{ key: "status", name: "status", values: STATUSES }];

const make = ({ name, hostname, access, hostHeader, limits, expiresAt, device }: TunnelWishes) => {
  const common = { name, access, hostHeader, limits, ...given({ hostname }) };
  if (device !== undefined) return mooring.tunnels.create.mutate({ ...common, ...device, expiresAt });
  const { name: _, ...config } = common;
  return mooring.tunnels.createGlobal.mutate({ name, config });
};

const Create = ({ onClose }: { readonly onClose: () => void }) => {
  const navigate = useNavigate();
  const create = useMutation({
    mutationFn: make,
    onSuccess: async ({ tunnelId }) => {
      await queryClient.invalidateQueries(api.tunnels.pathFilter());
      await navigate({ to: "/network/tunnels/$tunnelId", params: { tunnelId } });
    },
  });
  return (
    <Dialog title={text.create} open onClose={onClose}>
      <TunnelForm submit={text.create} action={create} onCancel={onClose} onSubmit={(wishes) => create.mutate(wishes)} />
    </Dialog>
  );
};

export const TunnelsScreen = () => {
  const { status: named, q } = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const [creates, setCreates] = useState(false);
  const filters = given({ q, status: oneOf(named, STATUSES) });
  const list = usePages<Tunnel>((page) => api.tunnels.list.queryOptions({ ...filters, page, pageSize: PAGE_SIZE }, { placeholderData: keepPreviousData }));
  const nameOf = useDeviceNames({ ...list, row: (at) => ({ deviceId: list.row(at)?.deviceId ?? null }) });
  const columns = useMemo(
    (): readonly Column<Tunnel>[] => [
      { title: text.name, phone: true, cell: ({ name }) => <strong title={name}>{name}</strong> },
      {
        title: text.state,
        width: "minmax(205px, 0.8fr)",
        phone: true,
        cell: (tunnel) => <Status {...tunnelState(tunnel)} />,
      },
      {
        title: text.address,
        width: "minmax(0, 1.4fr)",
        cell: ({ protocol, hostname, url }) => (protocol === "tcp" ? url : <span title={hostname}>{hostname}</span>),
      },
      { title: text.device, cell: ({ deviceId }) => (deviceId === undefined ? text.connectors : nameOf(deviceId)) },
      { title: text.access, width: "minmax(0, 0.8fr)", cell: (tunnel) => text.openTo(tunnel) },
    ],
    [nameOf],
  );
  const setFilters = useCallback((next: Filters) => void navigate({ to: "/network", search: readNetworkSearch(next), replace: true }), [navigate]);
  const create = may("tunnel:create") ? (
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
        id={({ tunnelId }) => tunnelId}
        onOpen={({ tunnelId }) => void navigate({ to: "/network/tunnels/$tunnelId", params: { tunnelId } })}
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
