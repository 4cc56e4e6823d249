// The apps of the tenant: what runs where, and what is not as it should be.
import type { AppDetails } from "@mooring/client";
import { keepPreviousData } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useMemo } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { given, oneOf } from "../../api/search.ts";
import { useMay } from "../../api/session.ts";
import { APP_CHANGED, APP_NAME, APP_PORTS, APP_STATUS, APP_TYPE } from "../../parts/apps/app-columns.tsx";
import { useDeviceNames } from "../../parts/device-names.ts";
import { APP_VIEWS, SaveView, searchOf, ViewTabs } from "../../parts/views.tsx";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import { useSelection } from "../../ui/list/selection.ts";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { readAppSearch, SORTS } from "./search.ts";
import { STATUSES, text } from "./text.ts";

const AppBulk = lazy(() => import("./bulk.tsx").then((part) => ({ default: part.AppBulk })));
const route = getRouteApi("/apps");

const EITHER = ["true", "false"] as const;
const KEYS: readonly FilterKey[] = [
  { key: "status", name: "status", values: STATUSES },
  { key: "application", name: "appType" },
  { key: "device", name: "deviceId" },
  { key: "drift", name: "drift", values: EITHER },
  { key: "outdated", name: "outdated", values: EITHER },
  { key: "sort", name: "sort", values: SORTS },
];

const either = (word: string | undefined): boolean | undefined => (oneOf(word, EITHER) === undefined ? undefined : word === "true");

export const AppsScreen = () => {
  const search = route.useSearch();
  const navigate = useNavigate();
  const { status: named, drift, outdated, ...others } = search;
  const status = oneOf(named, STATUSES);
  const filters = given({ ...others, status, drift: oneOf(drift, EITHER), outdated: oneOf(outdated, EITHER) });
  const query = { ...others, ...given({ status: status === undefined ? undefined : [status], drift: either(drift), outdated: either(outdated) }) };
  const list = usePages<AppDetails>((page) => api.apps.list.queryOptions({ ...query, page, pageSize: PAGE_SIZE }, { placeholderData: keepPreviousData }));
  const may = useMay();
  const selection = useSelection(searchOf(search));
  const nameOf = useDeviceNames(list);
  const columns = useMemo((): readonly Column<AppDetails>[] => {
    const device: Column<AppDetails> = { title: "Device", cell: ({ deviceId }) => nameOf(deviceId) };
    return [APP_NAME, APP_STATUS, APP_TYPE, device, APP_PORTS, APP_CHANGED];
  }, [nameOf]);
  const setFilters = useCallback((next: Filters) => void navigate({ to: "/apps", search: readAppSearch(next), replace: true }), [navigate]);
  return (
    <Page
      title={text.title}
      fill
      tabs={<ViewTabs of={APP_VIEWS} filters={search} count={list.read.data === undefined ? undefined : list.count} />}
      beside={<span className="muted">{list.read.data === undefined ? "" : text.total(list.count)}</span>}
      actions={<Link to="/catalogue">{text.catalogue}</Link>}
    >
      <FilterBar label={text.filter} keys={KEYS} filters={filters} onChange={setFilters} beside={<SaveView of={APP_VIEWS} filters={search} />} />
      <FilteredList
        label={text.title}
        columns={columns}
        list={list}
        id={({ appId }) => appId}
        nameOf={({ name }) => name}
        onOpen={({ appId }) => void navigate({ to: "/apps/$appId", params: { appId } })}
        selection={may("bulk:write") && (may("app:update") || may("app:delete")) ? selection : undefined}
        filters={filters}
        onClear={() => setFilters({})}
        noMatch={text.noMatch}
        none={text.none}
        action={<Link to="/catalogue">{text.catalogue}</Link>}
      />
      <Suspense fallback={null}>{selection.count(list.count) > 0 ? <AppBulk selection={selection} total={list.count} query={query} /> : null}</Suspense>
    </Page>
  );
};
