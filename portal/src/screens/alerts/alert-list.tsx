// The alerts, the newest first, with the chosen one beside the list.
import type { Alert } from "@mooring/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { api } from "../../api/client.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { useMay } from "../../api/session.ts";
import { gatewayNow } from "../../ui/clock.ts";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Split } from "../../ui/split.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago } from "../../ui/time.tsx";
import { AlertPanel } from "./alert.tsx";
import { queryOf, SEVERITIES, STATUSES } from "./query.ts";
import { readAlertSearch } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/alerts");

/** Why an alert that is not over is quiet. */
export const quietWord = ({ status, silenced, flapping, snoozedUntil }: Alert): string | null => {
  if (status === "resolved") return null;
  if (snoozedUntil !== null && Date.parse(snoozedUntil) > gatewayNow()) return text.snoozed;
  return silenced ? text.silenced : flapping ? text.flapping : null;
};

const COLUMNS: readonly Column<Alert>[] = [
  { title: "Severity", width: "92px", phone: true, cell: ({ severity }) => <Status status={severity} /> },
  { title: "Alert", width: "minmax(120px, 3fr)", phone: true, cell: ({ title }) => title },
  { title: "Still true", width: "90px", cell: ({ activeCount, targetCount }) => text.of(activeCount, targetCount) },
  { title: "State", width: "112px", cell: ({ status }) => <Status status={status} /> },
  { title: "Quiet", width: "118px", cell: (alert) => <span className="muted">{quietWord(alert)}</span> },
  { title: "Began", width: AGO_WIDTH, phone: true, cell: ({ startedAt }) => <Ago at={startedAt} /> },
];
const FEWER = COLUMNS.filter(({ title, phone }) => phone === true || title === "State");

const MAX_RULES = 100;
const useFilterKeys = (): readonly FilterKey[] => {
  const enabled = useMay()("alert_rule:read");
  const rules = useQuery({ ...api.alerts.listRules.queryOptions({ pageSize: MAX_RULES }), enabled, staleTime: 60_000 }).data?.items;
  return useMemo(
    () => [
      { key: "status", name: "status", values: STATUSES, several: true },
      { key: "severity", name: "severity", values: SEVERITIES, several: true },
      { key: "rule", name: "ruleId", values: rules?.map(({ ruleId }) => ruleId) ?? [] },
      { key: "device", name: "deviceId" },
    ],
    [rules],
  );
};

export const AlertList = () => {
  const { open, tab: _, ...filters } = route.useSearch();
  const navigate = useNavigate();
  const keys = useFilterKeys();
  const query = queryOf(filters);
  const list = useCursorList<Alert>(api.alerts.list.infiniteQueryOptions({ ...query, pageSize: PAGE_SIZE }, fromCursor));
  const setFilters = useCallback((next: Filters) => void navigate({ to: "/alerts", search: readAlertSearch(next), replace: true }), [navigate]);
  const show = useCallback(
    (alertId?: string): void => void navigate({ to: "/alerts", search: (before) => readAlertSearch({ ...before, open: alertId }) }),
    [navigate],
  );
  const close = useCallback(() => show(), [show]);
  return (
    <>
      <FilterBar label={text.filter} example="" keys={keys} filters={filters} onChange={setFilters} />
      <Split
        onClose={close}
        detail={open === undefined ? null : <AlertPanel key={open} alertId={open} onClose={close} />}
        list={
          <FilteredList
            label={text.title}
            columns={open === undefined ? COLUMNS : FEWER}
            list={list}
            rows={8}
            id={({ alertId }) => alertId}
            onOpen={({ alertId }) => show(alertId)}
            opened={open}
            filters={filters}
            onClear={() => setFilters({})}
            noMatch={text.noMatch}
            none={text.none}
            action={
              <button type="button" onClick={() => setFilters({ status: STATUSES.join(",") })}>
                {text.showAll}
              </button>
            }
          />
        }
      />
    </>
  );
};
