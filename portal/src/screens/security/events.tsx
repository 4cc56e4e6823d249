// The security events, the newest first.
import type { SecurityEvent } from "@mooring/client";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { api } from "../../api/client.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { given, oneOf } from "../../api/search.ts";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Status } from "../../ui/status.tsx";
import { WHEN_WIDTH, When } from "../../ui/time.tsx";
import { Entity } from "./entity.tsx";
import { knownType, MEANINGS, TYPES } from "./meanings.ts";
import { readSecuritySearch } from "./search.ts";
import { text } from "./text.ts";
import { SEVERITIES } from "./values.ts";

const route = getRouteApi("/security");

const COLUMNS: readonly Column<SecurityEvent>[] = [
  { title: "When", width: WHEN_WIDTH, phone: true, cell: ({ timestamp }) => <When at={timestamp} /> },
  { title: "Severity", width: "92px", cell: ({ severity }) => <Status status={severity} /> },
  { title: "What", width: "minmax(110px, 3fr)", phone: true, cell: ({ type }) => MEANINGS[type] },
  { title: "About", width: "minmax(100px, 2fr)", cell: ({ details }) => <Entity {...details} /> },
  { title: "From", width: "minmax(70px, 120px)", cell: ({ details: { ipAddress } }) => <span className="mono muted">{ipAddress}</span> },
  { title: "Call", width: "minmax(70px, 1fr)", cell: ({ details: { operation, reason } }) => <code>{operation ?? reason}</code> },
  { title: "Times", width: "56px", phone: true, cell: ({ details: { count } }) => text.number(count) },
];
const KEYS: readonly FilterKey[] = [
  { key: "type", name: "type", values: TYPES },
  { key: "severity", name: "severity", values: SEVERITIES },
];

export const EventList = () => {
  const { type, severity, entityId } = route.useSearch();
  const navigate = useNavigate();
  const query = given({ type, entityId, severity: oneOf(severity, SEVERITIES) });
  const list = useCursorList<SecurityEvent>(api.security.listEvents.infiniteQueryOptions({ ...knownType(query), pageSize: PAGE_SIZE }, fromCursor));
  const setFilters = useCallback(
    ({ q, ...next }: Filters) =>
      void navigate({ to: "/security", search: readSecuritySearch({ ...next, ...(q === undefined ? {} : { entityId: q }), tab: "events" }), replace: true }),
    [navigate],
  );
  const { entityId: q, ...rest } = query;
  return (
    <>
      <FilterBar label={text.filterEvents} example="an address or id, " keys={KEYS} filters={q === undefined ? rest : { ...rest, q }} onChange={setFilters} />
      <FilteredList
        label={text.tabs.events}
        columns={COLUMNS}
        list={list}
        rows={8}
        id={({ id }) => id}
        filters={query}
        onClear={() => setFilters({})}
        noMatch={text.noMatch}
        none={text.noEvents}
      />
    </>
  );
};
