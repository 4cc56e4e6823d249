// Two styles of paging in the query, one window behind them.
import { z } from "zod";

/** Page style: page from 1, pageSize 1..100 (20). Offset style: limit 1..100 (20), offset up to 100,000. Not both. */
const pageFields = {
  page: z.int().min(1).max(1_000_000).optional().describe("1-indexed page"),
  pageSize: z.int().min(1).max(100).optional().describe("items per page, default 20"),
  limit: z.int().min(1).max(100).optional().describe("items to return, default 20"),
  offset: z.int().min(0).max(100_000).optional().describe("items to skip, default 0"),
};

export interface PageQuery {
  readonly page?: number | undefined;
  readonly pageSize?: number | undefined;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
}

/** A list's input: paging plus the list's own filters. Unknown keys are refused, so that a typo never widens a result. */
export const listQuery = <F extends z.ZodRawShape>(filters: F) =>
  z.strictObject({ ...pageFields, ...filters }).superRefine((query, context) => {
    const { page, pageSize, limit, offset } = query as PageQuery;
    const pageStyle = page !== undefined || pageSize !== undefined;
    if (pageStyle && (limit !== undefined || offset !== undefined))
      context.addIssue({ code: "custom", path: ["limit"], message: "page and offset style cannot be mixed", params: { reason: "mixed_pagination" } });
  });

export interface Window {
  readonly limit: number;
  readonly offset: number;
}

/** Both styles mean a window. */
export const toWindow = ({ page, pageSize, limit, offset }: PageQuery): Window => {
  const size = pageSize ?? limit ?? 20;
  return { limit: size, offset: page === undefined ? (offset ?? 0) : (page - 1) * size };
};

/** What a list operation returns; the REST door lifts items to `data` and computes the rest. */
export const paged = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), total: z.int().min(0) });

export const Pagination = z.object({
  page: z.int(),
  pageSize: z.int(),
  total: z.int(),
  totalPages: z.int(),
  hasMore: z.boolean(),
  hasNext: z.boolean(),
  hasPrev: z.boolean(),
  limit: z.int(),
  offset: z.int(),
});
export type Pagination = z.infer<typeof Pagination>;

/** All names of both pagination schemas of the interface, in one object. */
export const toPagination = ({ limit, offset }: Window, total: number, count: number): Pagination => {
  const hasMore = offset + count < total;
  return {
    page: Math.floor(offset / limit) + 1,
    pageSize: limit,
    total,
    totalPages: Math.ceil(total / limit),
    hasMore,
    hasNext: hasMore,
    hasPrev: offset > 0,
    limit,
    offset,
  };
};
