// Lists of any length: pages that are read when they come into sight, and lists that go on from a cursor.
import { type InfiniteData, type QueryKey, type UseInfiniteQueryOptions, type UseQueryOptions, useInfiniteQuery, useQueries } from "@tanstack/react-query";
import { useCallback, useEffect, useState } from "react";
import { queryClient } from "./client.ts";
import { FIRST } from "./list-start.ts";

export const PAGE_SIZE = 100;

export interface PageOf<R> {
  readonly items: readonly R[];
  readonly total?: number | undefined;
  readonly nextCursor?: string | undefined;
}

/** What a `Table` needs of a list, and the read of its first page. */
export interface Listed<R> {
  readonly count: number;
  readonly row: (index: number) => R | undefined;
  readonly onSight: (first: number, last: number) => void;
  /** Rows that a choice spans, also those that are not in sight. */
  readonly between: (first: number, last: number) => Promise<readonly R[]>;
  readonly read: { readonly data: PageOf<R> | undefined; readonly error: unknown; readonly dataUpdatedAt?: number; readonly refetch: () => unknown };
}

const pageOf = (index: number): number => Math.floor(index / PAGE_SIZE) + 1;
const pagesOf = ([first, last]: readonly [number, number]): readonly number[] =>
  Array.from({ length: pageOf(last) - pageOf(first) + 1 }, (_, at) => pageOf(first) + at);

// biome-ignore lint/suspicious/noExplicitAny: the options of a procedure are exact in ways that no function over procedures can name
type Options = any;

/** Reads only the pages in sight. `options` gives the query of a page of PAGE_SIZE rows, from 1. */
export const usePages = <R>(options: (page: number) => Options): Listed<R> => {
  const [sight, setSight] = useState<readonly [number, number]>([0, 0]);
  const onSight = useCallback((first: number, last: number) => setSight([first, last]), []);
  // The first page also has the total.
  const pages = [...new Set([1, ...pagesOf(sight)])];
  const reads = useQueries({ queries: pages.map((page) => options(page) as UseQueryOptions<PageOf<R>>) });
  const [first] = reads;
  const row = (index: number): R | undefined => reads[pages.indexOf(pageOf(index))]?.data?.items[index % PAGE_SIZE];
  const between = async (from: number, to: number): Promise<readonly R[]> => {
    const numbers = pagesOf([from, to]);
    const found: PageOf<R>[] = await Promise.all(numbers.map((page) => queryClient.ensureQueryData<PageOf<R>>(options(page))));
    const skipped = ((numbers[0] ?? 1) - 1) * PAGE_SIZE;
    return found.flatMap(({ items }) => items).slice(from - skipped, to + 1 - skipped);
  };
  const failed = reads.find(({ error }) => error !== null);
  return {
    count: first?.data?.total ?? first?.data?.items.length ?? 0,
    row,
    onSight,
    between,
    read: { data: first?.data, error: failed?.error ?? null, dataUpdatedAt: first?.dataUpdatedAt ?? 0, refetch: () => failed?.refetch() },
  };
};

/** Reads on when the end comes into sight. `options` is the infinite query of a list with a cursor. */
export const useCursorList = <R>(options: Options): Listed<R> => {
  const { data, error, dataUpdatedAt, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery({
    ...(options as UseInfiniteQueryOptions<PageOf<R>, Error, InfiniteData<PageOf<R>>, QueryKey, string>),
    // tRPC would send the direction as a field of the input, which the gateway refuses as unknown.
    queryFn: (context) => options.queryFn({ ...context, direction: undefined }),
  });
  const rows = data?.pages.flatMap(({ items }) => items) ?? [];
  const { length } = rows;
  const onSight = useCallback(
    (_: number, last: number) => {
      if (hasNextPage && !isFetchingNextPage && last >= length - 10) void fetchNextPage();
    },
    [hasNextPage, isFetchingNextPage, fetchNextPage, length],
  );
  // A page ends where the gateway stopped looking, so one without items need not be the last.
  const isLooking = length === 0 && hasNextPage;
  useEffect(() => {
    if (isLooking && !isFetchingNextPage && error === null) void fetchNextPage();
  }, [isLooking, isFetchingNextPage, error, fetchNextPage]);
  return {
    count: length,
    row: (index) => rows[index],
    onSight,
    between: async (from, to) => rows.slice(from, to + 1),
    read: { data: isLooking ? undefined : data?.pages[0], error, dataUpdatedAt, refetch },
  };
};
/** For the options of `useCursorList`. */
export const fromCursor = { initialCursor: FIRST, getNextPageParam: (last: PageOf<unknown>) => last.nextCursor } as const;
