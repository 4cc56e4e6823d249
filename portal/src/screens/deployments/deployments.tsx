// The deployments of the tenant: what was deployed where, and how that went.
import type { Deployment } from "@mooring/client";
import { keepPreviousData } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { given, oneOf } from "../../api/search.ts";
import { useMay } from "../../api/session.ts";
import { AppStatus } from "../../parts/apps/app-status.tsx";
import { useDeviceNames } from "../../parts/device-names.ts";
import { APP_VIEWS, ViewTabs } from "../../parts/views.tsx";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { readDeploymentSearch, SORTS } from "./search.ts";
import { STATUSES, text } from "./text.ts";

const route = getRouteApi("/deployments");

const KEYS: readonly FilterKey[] = [
  { key: "status", name: "status", values: STATUSES },
  { key: "application", name: "template" },
  { key: "device", name: "deviceId" },
  { key: "sort", name: "sort", values: SORTS },
];

const columnsOf = (nameOf: (deviceId: string) => string): readonly Column<Deployment>[] => [
  { title: "Name", phone: true, cell: ({ name }) => <strong>{name}</strong> },
  { title: "Status", width: "minmax(116px, 0.8fr)", phone: true, cell: ({ status }) => <AppStatus status={status} /> },
  { title: "Application", cell: ({ template, templateVersion }) => (template === null ? text.group : `${template} ${templateVersion}`) },
  { title: "Device", cell: ({ deviceId }) => (deviceId === null ? null : nameOf(deviceId)) },
  { title: "Revision", width: "120px", cell: ({ revision, currentRevision }) => text.revision(revision, currentRevision) },
  { title: "Failure", cell: ({ failure }) => (failure === null ? null : <code title={failure.message}>{failure.reason}</code>) },
  { title: "Changed", width: AGO_WIDTH, cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
];

export const DeploymentsScreen = () => {
  const search = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const { status: named, ...others } = search;
  const status = oneOf(named, STATUSES);
  const filters = given({ ...others, status });
  const list = usePages<Deployment>((page) =>
    api.deployments.list.queryOptions(
      { ...others, ...given({ status: status === undefined ? undefined : [status] }), page, pageSize: PAGE_SIZE },
      { placeholderData: keepPreviousData },
    ),
  );
  const nameOf = useDeviceNames(list);
  const columns = useMemo(() => columnsOf(nameOf), [nameOf]);
  const setFilters = useCallback((next: Filters) => void navigate({ to: "/deployments", search: readDeploymentSearch(next), replace: true }), [navigate]);
  const action = may("deployment:create") && may("app:read") ? <Link to="/catalogue">{text.catalogue}</Link> : undefined;
  return (
    <Page
      title={text.title}
      fill
      tabs={<ViewTabs of={APP_VIEWS} at="/deployments" />}
      beside={<span className="muted">{list.read.data === undefined ? "" : text.total(list.count)}</span>}
      actions={action}
    >
      <FilterBar label={text.filter} keys={KEYS} filters={filters} onChange={setFilters} />
      <FilteredList
        label={text.title}
        columns={columns}
        list={list}
        id={({ deploymentId }) => deploymentId}
        onOpen={({ deploymentId }) => void navigate({ to: "/deployments/$deploymentId", params: { deploymentId } })}
        filters={filters}
        onClear={() => setFilters({})}
        noMatch={text.noMatch}
        none={text.none}
        action={action}
      />
    </Page>
  );
};
