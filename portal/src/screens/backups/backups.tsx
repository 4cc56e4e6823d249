// The backups of the tenant: which are good, which failed, and why.
import type { Backup } from "@mooring/client";
import { keepPreviousData } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { api } from "../../api/client.ts";
import { PAGE_SIZE, usePages } from "../../api/lists.ts";
import { given, oneOf } from "../../api/search.ts";
import { BACKUP_APP, BACKUP_CREATED, BACKUP_NAME, BACKUP_SIZE, BACKUP_STATUS } from "../../parts/backups/backup-columns.tsx";
import { text as words } from "../../parts/backups/backup-text.ts";
import { useDeviceNames } from "../../parts/device-names.ts";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { readBackupSearch } from "./search.ts";
import { SORTS, STATUSES, TRIGGERS, text } from "./text.ts";

const route = getRouteApi("/backups");

const KEYS: readonly FilterKey[] = [
  { key: "status", name: "status", values: STATUSES },
  { key: "made", name: "trigger", values: TRIGGERS },
  { key: "app", name: "appId" },
  { key: "device", name: "deviceId" },
  { key: "policy", name: "policyId" },
  { key: "destination", name: "destinationId" },
  { key: "sort", name: "sort", values: SORTS },
];

export const BackupsScreen = () => {
  const search = route.useSearch();
  const navigate = useNavigate();
  const { status: named, trigger: reason, sort: order, ...texts } = search;
  const [status, trigger] = [oneOf(named, STATUSES), oneOf(reason, TRIGGERS)];
  const others = { ...texts, ...given({ sort: oneOf(order, SORTS) }) };
  const filters = given({ ...others, status, trigger });
  const list = usePages<Backup>((page) =>
    api.backups.list.queryOptions(
      { ...others, ...given({ status: status === undefined ? undefined : [status], trigger }), page, pageSize: PAGE_SIZE },
      { placeholderData: keepPreviousData },
    ),
  );
  const nameOf = useDeviceNames(list);
  const columns = useMemo((): readonly Column<Backup>[] => {
    const device: Column<Backup> = { title: words.device, cell: ({ deviceId }) => nameOf(deviceId) };
    return [BACKUP_NAME, BACKUP_STATUS, BACKUP_APP, device, BACKUP_SIZE, BACKUP_CREATED];
  }, [nameOf]);
  const setFilters = useCallback((next: Filters) => void navigate({ to: "/backups", search: readBackupSearch(next), replace: true }), [navigate]);
  const apps = (
    <Link to="/apps" data-kind="primary">
      {text.apps}
    </Link>
  );
  return (
    <Page title={text.title} fill beside={<span className="muted">{list.read.data === undefined ? "" : words.total(list.count)}</span>}>
      <FilterBar label={text.filter} keys={KEYS} filters={filters} onChange={setFilters} />
      <FilteredList
        label={text.title}
        columns={columns}
        list={list}
        id={({ backupId }) => backupId}
        onOpen={({ backupId }) => void navigate({ to: "/backups/$backupId", params: { backupId } })}
        filters={filters}
        onClear={() => setFilters({})}
        noMatch={text.noMatch}
        none={text.none}
        action={apps}
      />
    </Page>
  );
};
