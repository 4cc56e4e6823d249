// The security alerts, the newest first, with the chosen one beside the list.
import type { SecurityAlert } from "@mooring/client";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { api } from "../../api/client.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { given, oneOf } from "../../api/search.ts";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Split } from "../../ui/split.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { AlertPanel } from "./alert.tsx";
import { Entity } from "./entity.tsx";
import { knownType, MEANINGS, TYPES } from "./meanings.ts";
import { readSecuritySearch } from "./search.ts";
import { text } from "./text.ts";
import { SEVERITIES, STATUSES } from "./values.ts";

const route = getRouteApi("/security");

const COLUMNS: readonly Column<SecurityAlert>[] = [
  { title: "Severity", width: "92px", phone: true, cell: ({ severity }) => <Status status={severity} /> },
  { title: "What", width: "minmax(120px, 3fr)", phone: true, cell: ({ type }) => MEANINGS[type] },
  { title: "About", width: "minmax(100px, 2fr)", cell: ({ entityType, entityId }) => <Entity entityType={entityType} entityId={entityId} /> },
  { title: "Times", width: "64px", cell: ({ count }) => text.number(count) },
  { title: "State", width: "124px", cell: ({ status }) => <Status status={status} /> },
  { title: "Last", width: AGO_WIDTH, phone: true, cell: ({ lastEventAt }) => <Ago at={lastEventAt} /> },
];
const FEWER = COLUMNS.filter(({ title, phone }) => phone === true || title === "State");

const KEYS: readonly FilterKey[] = [
  { key: "status", name: "status", values: STATUSES },
  { key: "severity", name: "severity", values: SEVERITIES },
  { key: "type", name: "type", values: TYPES },
];

export const AlertList = () => {
  const { open, tab: _, entityId: __, status, severity, ...texts } = route.useSearch();
  const filters = { ...texts, ...given({ status: oneOf(status, STATUSES), severity: oneOf(severity, SEVERITIES) }) };
  const navigate = useNavigate();
  const list = useCursorList<SecurityAlert>(api.security.listAlerts.infiniteQueryOptions({ ...knownType(filters), pageSize: PAGE_SIZE }, fromCursor));
  const setFilters = useCallback((next: Filters) => void navigate({ to: "/security", search: readSecuritySearch(next), replace: true }), [navigate]);
  const show = useCallback(
    (alertId?: string): void => void navigate({ to: "/security", search: (before) => readSecuritySearch({ ...before, open: alertId }) }),
    [navigate],
  );
  const close = useCallback(() => show(), [show]);
  return (
    <>
      <FilterBar label={text.filter} example="" keys={KEYS} filters={filters} onChange={setFilters} />
      <Split
        onClose={close}
        detail={open === undefined ? null : <AlertPanel key={open} alertId={open} onClose={close} />}
        list={
          <FilteredList
            label={text.tabs.alerts}
            columns={open === undefined ? COLUMNS : FEWER}
            list={list}
            rows={8}
            id={({ id }) => id}
            onOpen={({ id }) => show(id)}
            opened={open}
            filters={filters}
            onClear={() => setFilters({})}
            noMatch={text.noMatch}
            none={text.noAlerts}
          />
        }
      />
    </>
  );
};
