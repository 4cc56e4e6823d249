// The devices of the overview's squares: read once in large pages, then kept true by events, because reading thousands again for each event would not do.
import type { DeviceStatus, LiveEvent } from "@mooring/client";
import { type InfiniteData, useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo } from "react";
import { mooring, queryClient } from "../../api/client.ts";
import { FIRST } from "../../api/list-start.ts";
import { type ReadAgain, useReadAgain } from "../../api/read-again.ts";

const KEY = ["fleet"] as const;
const PAGE_SIZE = 500;
const MAX_PAGES = 10;
const READ_AGAIN_MS = 500;
/** A fleet of several pages is read again less often. */
const READ_ALL_AGAIN_MS = 10_000;

const readPage = (cursor: string, signal: AbortSignal) =>
  mooring.devices.listPartial.query({ fields: ["name", "hostname", "status", "tags"], sort: "status,name", pageSize: PAGE_SIZE, cursor }, { signal });
type FleetPage = Awaited<ReturnType<typeof readPage>>;
export type FleetDevice = FleetPage["items"][number];

const STATUS_OF: Readonly<Record<string, DeviceStatus>> = { "device.online": "online", "device.offline": "offline" };

/** Patches the states that the events carry. Returns whether there are changes that they do not carry. */
const patch = (events: readonly LiveEvent[]): boolean => {
  const statuses = new Map(events.flatMap(({ type, subjectId }) => (STATUS_OF[type] === undefined ? [] : [[subjectId, STATUS_OF[type]] as const])));
  const known = new Set<string>();
  if (statuses.size > 0)
    queryClient.setQueryData<InfiniteData<FleetPage, string>>(KEY, (data) => {
      if (data === undefined) return data;
      const change = (device: FleetDevice): FleetDevice => {
        const status = statuses.get(device.deviceId);
        if (status === undefined) return device;
        known.add(device.deviceId);
        return { ...device, status };
      };
      return { ...data, pages: data.pages.map((page) => ({ ...page, items: page.items.map(change) })) };
    });
  return known.size < statuses.size || events.some(({ type }) => type.startsWith("device.") && STATUS_OF[type] === undefined);
};

const pagesRead = (): number => queryClient.getQueryData<InfiniteData<FleetPage, string>>(KEY)?.pages.length ?? 0;
const READ_AGAIN: ReadAgain = {
  after: patch,
  reads: [{ queryKey: KEY }],
  waitMs: () => (pagesRead() > 1 ? READ_ALL_AGAIN_MS : READ_AGAIN_MS),
};

export const useFleet = (enabled: boolean) => {
  const read = useInfiniteQuery({
    queryKey: KEY,
    queryFn: ({ pageParam, signal }) => readPage(pageParam, signal),
    initialPageParam: FIRST,
    getNextPageParam: (last: FleetPage, pages) => (pages.length < MAX_PAGES ? last.nextCursor : undefined),
    refetchInterval: 5 * 60_000,
    enabled,
  });
  const { data, error, refetch, hasNextPage, isFetching, fetchNextPage } = read;
  useEffect(() => {
    if (hasNextPage && !isFetching && error === null) void fetchNextPage();
  }, [hasNextPage, isFetching, error, fetchNextPage]);
  useReadAgain(READ_AGAIN);
  const devices = useMemo(() => data?.pages.flatMap(({ items }) => items), [data]);
  return { data: devices, error, refetch };
};
