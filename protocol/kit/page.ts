// Two styles of paging, by page or by offset; both become a window.
import { z } from "zod";

const pageFields = {
  page: z.int().min(1).max(1_000_000).optional().describe("Page number, from 1."),
  pageSize: z.int().min(1).max(100).optional().describe("Items per page. Default: 20."),
  limit: z.int().min(1).max(100).optional().describe("Items to return. Default: 20."),
  offset: z.int().min(0).max(100_000).optional().describe("Items to skip. Default: 0."),
};

export interface PageQuery {
  readonly page?: number | undefined;
  readonly pageSize?: number | undefined;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
}

/** Input of a list: paging and the list's own filters. It refuses unknown fields, so a typo in a filter never widens the result. */
export const listQuery = <F extends z.ZodRawShape>(filters: F) =>
  z.strictObject({ ...pageFields, ...filters }).superRefine((query, context) => {
    const { page, pageSize, limit, offset } = query as PageQuery;
    const pageStyle = page !== undefined || pageSize !== undefined;
    if (pageStyle && (limit !== undefined || offset !== undefined))
      context.addIssue({
        code: "custom",
        path: ["limit"],
        message: "page and pageSize cannot be combined with limit and offset",
        params: { reason: "mixed_pagination" },
      });
  });

export interface Window {
  readonly limit: number;
  readonly offset: number;
}

export const toWindow = ({ page, pageSize, limit, offset }: PageQuery): Window => {
  const size = pageSize ?? limit ?? 20;
  return { limit: size, offset: page === undefined ? (offset ?? 0) : (page - 1) * size };
};

/** Output of a list. REST returns the items as `data` and computes `meta.pagination`. */
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

/** The fields of both pagination schemas of the interface. */
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
