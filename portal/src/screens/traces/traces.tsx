// The traces of the tenant, newest first, by what took part in them, how they ended and how long they took.
import type { TraceSummary } from "@mooring/client";
import { keepPreviousData } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { api } from "../../api/client.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { given } from "../../api/search.ts";
import { numbers } from "../../ui/count.ts";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { AGO_WIDTH, Ago, useNow } from "../../ui/time.tsx";
import { TraceFilters } from "./filters.tsx";
import { readTraceSearch, type TraceSearch } from "./search.ts";
import { text, took } from "./text.ts";

const route = getRouteApi("/traces");

const COLUMNS: readonly Column<TraceSummary>[] = [
  { title: "Began", width: AGO_WIDTH, cell: ({ startTime }) => <Ago at={startTime} /> },
  { title: text.service, width: "minmax(0, 1fr)", cell: ({ rootService }) => rootService },
  { title: text.operation, width: "minmax(0, 1.6fr)", phone: true, cell: ({ rootOperation }) => rootOperation },
  {
    title: text.status,
    width: "90px",
    phone: true,
    cell: ({ errorCount }) => <Status status={errorCount > 0 ? "error" : "ok"} word={errorCount > 0 ? text.errors(errorCount) : "ok"} />,
  },
  { title: "Took", width: "76px", phone: true, cell: ({ durationMs }) => took(durationMs) },
  { title: text.waterfall, width: "70px", cell: ({ spanCount }) => numbers.format(spanCount) },
  { title: "Services", cell: ({ services }) => <span title={services.join(", ")}>{services.join(", ")}</span> },
];

const MINUTE_MS = 60_000;
const READ_AGAIN_MS = 10_000;
/** A little less than the API allows, whose clock may be ahead. */
const LENGTHS = { "15m": 15, "1h": 60, "6h": 360, "24h": 1_430 } as const;

/** Moves on once a minute, so that what is read stays the same question in between. */
const useFrom = (window: TraceSearch["window"]): string => {
  const minute = Math.floor(useNow() / MINUTE_MS);
  return new Date((minute - LENGTHS[window ?? "1h"]) * MINUTE_MS).toISOString();
};

export const TracesScreen = () => {
  const search = route.useSearch();
  const { service, operation, device, status, min, window } = search;
  const navigate = useNavigate();
  const from = useFrom(window);
  const minDurationMs = min === undefined ? undefined : Number(min);
  const list = useCursorList<TraceSummary>({
    ...api.traces.list.infiniteQueryOptions(
      { ...given({ service, operation, deviceId: device, status, minDurationMs }), from, pageSize: PAGE_SIZE },
      fromCursor,
    ),
    placeholderData: keepPreviousData,
    // Spans come without events.
    refetchInterval: READ_AGAIN_MS,
  });
  const setFilters = useCallback(
    (next: Readonly<Record<string, unknown>>) => void navigate({ to: "/traces", search: readTraceSearch(next), replace: true }),
    [navigate],
  );
  return (
    <Page title={text.title} fill>
      <TraceFilters of={search} onChange={setFilters} />
      <FilteredList
        label={text.title}
        columns={COLUMNS}
        list={list}
        id={({ traceId }) => traceId}
        onOpen={({ traceId }) => void navigate({ to: "/traces/$traceId", params: { traceId } })}
        filters={search}
        onClear={() => setFilters({})}
        noMatch={text.noMatch}
        none={text.none}
      />
    </Page>
  );
};
