// The tenant's events as webhooks receive them, newest first, with the chosen one beside the list.
import type { TenantEvent } from "@mooring/client";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { api } from "../../api/client.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { isStored, type ReadAgain, useReadAgain } from "../../api/read-again.ts";
import { given } from "../../api/search.ts";
import { useMay } from "../../api/session.ts";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { fromOf, SPANS } from "../../ui/since.ts";
import { Split } from "../../ui/split.tsx";
import { WHEN_WIDTH, When } from "../../ui/time.tsx";
import { Event } from "./event.tsx";
import { readEventSearch } from "./search.ts";
import { text } from "./text.ts";

const route = getRouteApi("/events");

const COLUMNS: readonly Column<TenantEvent>[] = [
  { title: "When", width: WHEN_WIDTH, phone: true, cell: ({ at }) => <When at={at} /> },
  { title: "Type", phone: true, cell: ({ type }) => <code>{type}</code> },
  { title: "Subject", width: "minmax(0, 1.4fr)", cell: ({ subjectId }) => <span className="mono muted">{subjectId}</span> },
  { title: "Number", width: "90px", cell: ({ sequence }) => sequence },
];
/** Beside an open event. */
const FEWER = COLUMNS.filter(({ phone }) => phone === true);

const MAX_TYPES = 50;
const READ_AGAIN: ReadAgain = { after: isStored, reads: [api.webhooks.listEvents.pathFilter()], waitMs: () => 1_000 };

const useFilterKeys = (): readonly FilterKey[] => {
  const enabled = useMay()("webhook:read");
  const types = useQuery({ ...api.webhooks.eventTypes.queryOptions({}), staleTime: 600_000, refetchInterval: false, enabled }).data;
  return useMemo(() => {
    const groups = [...new Set(types?.items.map(({ group }) => `${group}.*`))];
    return [
      { key: "type", name: "type", values: [...groups, ...(types?.items.map(({ name }) => name) ?? [])], several: true },
      { key: "subject", name: "subject" },
      { key: "since", name: "since", values: SPANS },
    ];
  }, [types]);
};

export const EventsScreen = () => {
  const { event, ...filters } = route.useSearch();
  const { type, subject: subjectId } = filters;
  const navigate = useNavigate();
  const keys = useFilterKeys();
  const since = useMemo(() => fromOf(filters.since), [filters.since]);
  const types = type?.split(",").filter(Boolean).slice(0, MAX_TYPES);
  const list = useCursorList<TenantEvent>({
    ...api.webhooks.listEvents.infiniteQueryOptions({ ...given({ types, subjectId, since }), pageSize: PAGE_SIZE }, fromCursor),
    placeholderData: keepPreviousData,
  });
  useReadAgain(READ_AGAIN);
  const setFilters = useCallback(
    (next: Filters) => void navigate({ to: "/events", search: (before) => readEventSearch({ ...next, event: before.event }), replace: true }),
    [navigate],
  );
  const open = useCallback(
    (eventId?: string): void => void navigate({ to: "/events", search: (before) => readEventSearch({ ...before, event: eventId }) }),
    [navigate],
  );
  const close = useCallback(() => open(), [open]);
  return (
    <Page title={text.title} fill>
      <FilterBar label={text.filter} example="a subject's id, " keys={keys} filters={filters} onChange={setFilters} />
      <Split
        onClose={close}
        detail={event === undefined ? null : <Event key={event} eventId={event} onClose={close} />}
        list={
          <FilteredList
            label={text.title}
            columns={event === undefined ? COLUMNS : FEWER}
            list={list}
            id={({ eventId }) => eventId}
            onOpen={({ eventId }) => open(eventId)}
            opened={event}
            filters={filters}
            onClear={() => setFilters({})}
            noMatch={text.noMatch}
            none={text.none}
          />
        }
      />
    </Page>
  );
};
