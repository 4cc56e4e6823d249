// The list of devices: which ones there are, and which are not as they should be.
import type { Device } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { deviceLabel } from "../../ui/device-label.ts";
import { FilterBar, type FilterKey, type Filters } from "../../ui/filter-bar.tsx";
import { FilteredList } from "../../ui/filtered-list.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import type { Column } from "../../ui/table.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { type DeviceSearch, readDeviceSearch, STATUSES } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/devices");

const COLUMNS: readonly Column<Device>[] = [
  { title: "Name", width: "minmax(140px, 2fr)", phone: true, cell: deviceLabel },
  { title: "Id", width: "90px", cell: ({ deviceId }) => <span className="mono muted">…{deviceId.slice(-8)}</span> },
  { title: "Status", width: "110px", phone: true, cell: ({ status }) => <Status status={status} /> },
  { title: "Link", width: "80px", cell: ({ connection }) => text.links[connection.connectivity] },
  { title: "Last seen", width: AGO_WIDTH, phone: true, cell: ({ lastSeen }) => <Ago at={lastSeen} /> },
  { title: "Platform", cell: ({ platform, arch }) => [platform, arch].filter(Boolean).join(" / ") },
  { title: "Agent", width: "90px", cell: ({ agentVersion }) => agentVersion },
  { title: "Tags", cell: ({ tags }) => tags.join(", ") },
];

/** Filters of the list, as the API takes them. */
const queryOf = ({ tag, notTag, sort, ...same }: DeviceSearch) => ({
  ...same,
  sort: sort ?? "status,name",
  ...(tag === undefined ? {} : { tag: tag.split(",") }),
  ...(notTag === undefined ? {} : { notTag: notTag.split(",") }),
});

/** The values that exist, to suggest. */
const useFilterKeys = (): readonly FilterKey[] => {
  const values = (groupBy: "tag" | "version" | "platform") => ({
    ...api.devices.summary.queryOptions({ groupBy }),
    staleTime: 60_000,
    refetchInterval: false as const,
  });
  const tags = useQuery(values("tag")).data;
  const versions = useQuery(values("version")).data;
  const platforms = useQuery(values("platform")).data;
  return useMemo(() => {
    const known = (counts: typeof tags): readonly string[] => counts?.groups.flatMap(({ value }) => (value === null ? [] : [value])) ?? [];
    return [
      { key: "status", name: "status", values: STATUSES },
      { key: "tag", name: "tag", values: known(tags), several: true },
      { key: "-tag", name: "notTag", values: known(tags), several: true },
      { key: "version", name: "agentVersion", values: known(versions) },
      { key: "platform", name: "platform", values: known(platforms) },
      { key: "link", name: "connectivity", values: Object.keys(text.links) },
      { key: "sort", name: "sort", values: Object.keys(text.sorts) },
    ];
  }, [tags, versions, platforms]);
};

export const DevicesScreen = () => {
  const search = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const keys = useFilterKeys();
  const query = queryOf(search);
  const list = usePages<Device>((page) => api.devices.list.queryOptions({ ...query, page, pageSize: PAGE_SIZE }));
  const setFilters = useCallback((filters: Filters) => void navigate({ to: "/devices", search: readDeviceSearch(filters), replace: true }), [navigate]);
  const open = ({ deviceId }: Device): void => void navigate({ to: "/devices/$deviceId", params: { deviceId } });
  const pair = may("device:pair") ? <Link to="/pair">{text.pair}</Link> : undefined;
  return (
    <Page title={text.title} fill beside={<span className="muted">{list.read.data === undefined ? "" : text.total(list.count)}</span>} actions={pair}>
      <FilterBar label={text.filter} keys={keys} filters={search} onChange={setFilters} />
      <FilteredList
        label={text.title}
        columns={COLUMNS}
        list={list}
        id={({ deviceId }) => deviceId}
        onOpen={open}
        filters={search}
        onClear={() => setFilters({})}
        noMatch={text.noMatch}
        none={text.none}
        action={pair}
      />
    </Page>
  );
};
