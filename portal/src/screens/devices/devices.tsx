// The list of devices: which ones there are, and which are not as they should be.
import type { Device } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useMemo, useState } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { DEVICE_VIEWS, SaveView, searchOf, ViewTabs } from "../../parts/views.tsx";
import { deviceLabel } from "../../ui/device-label.ts";
import { Icon } from "../../ui/icon.tsx";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import { useSelection } from "../../ui/list/selection.ts";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago, exactTime } from "../../ui/time.tsx";
import css from "./devices.module.css";
import { type DeviceSearch, readDeviceSearch, SORTS, STATUSES } from "./search.ts";
import { text } from "./text.ts";

const DeviceBulk = lazy(() => import("./bulk.tsx").then((part) => ({ default: part.DeviceBulk })));
const NoMatch = lazy(() => import("../../parts/no-match.tsx").then((part) => ({ default: part.NoMatch })));
const route = getRouteApi("/devices");

/** Only what is not as it should be has a color. */
const stateOf = ({ status, connection, maintenance, apps }: Device): { readonly status: string; readonly word: string } => {
  if (maintenance?.enabled === true) return { status: "maintenance", word: text.states.maintenance };
  if (status === "online" && (apps?.error ?? 0) > 0) return { status: "degraded", word: text.states.appInError };
  return { status, word: status === "online" && connection.connectivity === "polling" ? text.states.polling : text.states[status] };
};
const noteOf = ({ status, maintenance, apps, offlineReason }: Device): string | undefined => {
  if (maintenance?.enabled === true) return maintenance.until === null ? undefined : text.until(exactTime(maintenance.until));
  if ((apps?.error ?? 0) > 0) return text.inError(apps?.error ?? 0);
  return status === "offline" ? offlineReason : undefined;
};

const Tags = ({ of }: { readonly of: readonly string[] }) => (
  <>
    {of.map((tag) => (
      <span key={tag} className={css["tag"]}>
        {tag}
      </span>
    ))}
  </>
);

const COLUMNS: readonly Column<Device>[] = [
  { title: "Name", width: "minmax(140px, 2fr)", phone: true, cell: (device) => <strong>{deviceLabel(device)}</strong> },
  { title: "State", width: "132px", phone: true, cell: (device) => <Status {...stateOf(device)} /> },
  { title: "Seen", width: AGO_WIDTH, phone: true, cell: ({ lastSeen }) => <Ago at={lastSeen} /> },
  { title: "Tags", width: "minmax(0, 1.6fr)", cell: ({ tags }) => <Tags of={tags} /> },
  { title: "Agent", width: "76px", cell: ({ agentVersion }) => <span className="muted">{agentVersion}</span> },
  { title: "Apps", width: "44px", cell: ({ apps }) => apps?.total },
  { title: "Note", width: "minmax(0, 1fr)", phone: true, cell: (device) => <span className="muted">{noteOf(device)}</span> },
];

/** Filters of the list, as the API takes them. */
const queryOf = ({ tag, notTag, sort, ...same }: DeviceSearch) => ({
  ...same,
  sort: sort ?? "status,name",
  ...(tag === undefined ? {} : { tag: tag.split(",") }),
  ...(notTag === undefined ? {} : { notTag: notTag.split(",") }),
});

/** The values that exist, to suggest, once somebody filters. */
const useFilterKeys = (enabled: boolean): readonly FilterKey[] => {
  const values = (groupBy: "tag" | "version" | "platform") => ({
    ...api.devices.summary.queryOptions({ groupBy }),
    staleTime: 60_000,
    refetchInterval: false as const,
    enabled,
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
      { key: "seenBefore", name: "seenBefore" },
    ];
  }, [tags, versions, platforms]);
};

const MAY_CHANGE: readonly string[] = ["device:update", "device:command", "fleet:write"];

export const DevicesScreen = () => {
  const search = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const [filtering, setFiltering] = useState(false);
  const keys = useFilterKeys(filtering);
  const query = queryOf(search);
  const { sort, ...filters } = search;
  const selection = useSelection(searchOf(search));
  const list = usePages<Device>((page) => api.devices.list.queryOptions({ ...query, page, pageSize: PAGE_SIZE }));
  const go = useCallback((next: DeviceSearch): void => void navigate({ to: "/devices", search: next, replace: true }), [navigate]);
  const setFilters = useCallback((next: Filters) => go(readDeviceSearch({ ...next, ...(sort === undefined ? {} : { sort }) })), [go, sort]);
  const open = ({ deviceId }: Device): void => void navigate({ to: "/devices/$deviceId", params: { deviceId } });
  const pair = may("device:pair") ? (
    <Link to="/pair" data-kind="primary">
      <Icon name="add" /> {text.pair}
    </Link>
  ) : undefined;
  const total = list.read.data === undefined ? undefined : list.count;
  return (
    <Page
      title={text.title}
      fill
      tabs={<ViewTabs of={DEVICE_VIEWS} filters={search} count={total} />}
      beside={<span className="muted">{total === undefined ? "" : text.total(total)}</span>}
      actions={pair}
    >
      <FilterBar
        label={text.filter}
        keys={keys}
        filters={filters}
        onChange={setFilters}
        onNear={() => setFiltering(true)}
        beside={
          <>
            <SaveView of={DEVICE_VIEWS} filters={search} />
            <select aria-label={text.sort} value={sort ?? SORTS[0]} onChange={({ target }) => go(readDeviceSearch({ ...search, sort: target.value }))}>
              {SORTS.map((each) => (
                <option key={each} value={each}>
                  {text.sorts[each]}
                </option>
              ))}
            </select>
          </>
        }
      />
      <FilteredList
        label={text.title}
        columns={COLUMNS}
        list={list}
        id={({ deviceId }) => deviceId}
        nameOf={deviceLabel}
        onOpen={open}
        selection={MAY_CHANGE.some(may) ? selection : undefined}
        filters={search}
        onClear={() => setFilters({})}
        noMatch={text.noMatch}
        reasons={
          <Suspense fallback={null}>
            <NoMatch
              keys={keys}
              filters={filters}
              first={(asked) => api.devices.list.queryOptions({ ...queryOf(readDeviceSearch(asked)), page: 1, pageSize: 1 })}
              onChange={setFilters}
            />
          </Suspense>
        }
        none={text.none}
        action={pair}
      />
      <Suspense fallback={null}>{selection.count(list.count) > 0 ? <DeviceBulk selection={selection} total={list.count} query={query} /> : null}</Suspense>
    </Page>
  );
};
