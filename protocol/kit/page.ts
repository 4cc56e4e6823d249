// Lists: three styles of paging (by page, by offset, by cursor), sorting by fields that the list allows, and the list's own filters.
import { z } from "zod";

/** As `cursor`: begins at the first item. */
export const FIRST = "*";
const MAX_SIZE = 100;
const MAX_CURSOR_SIZE = 500;

const size = (what: string, max: number) =>
  z
    .int()
    .min(1)
    .max(max)
    .optional()
    .describe(max > MAX_SIZE ? `${what}, at most ${MAX_SIZE}, or ${max} with a cursor. Default: 20.` : `${what}. Default: 20.`);
const cursor = z
  .string()
  .min(1)
  .max(4_000)
  .regex(/^[\w*-]+$/)
  .optional()
  .describe(
    `\`${FIRST}\` begins at the first item; then send \`nextCursor\` of the answer before, with the same sort and filters. Items that are added or removed meanwhile do not move the others.`,
  );

const pageFields = (maxSize = MAX_CURSOR_SIZE) => ({
  page: z.int().min(1).max(1_000_000).optional().describe("Page number, from 1."),
  pageSize: size("Items per page", maxSize),
  limit: size("Items to return", maxSize),
  offset: z.int().min(0).max(100_000).optional().describe("Items to skip. Default: 0."),
  cursor,
});

export interface PageQuery {
  readonly page?: number | undefined;
  readonly pageSize?: number | undefined;
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly cursor?: string | undefined;
}

declare const fields: unique symbol;
/** Such as `-createdAt,name`, of these fields only. */
export type Sort<F extends string> = string & { readonly [fields]?: F };
/** The part of a list's input that pages and sorts; every other field is a filter. */
export interface ListQuery<F extends string> extends PageQuery {
  readonly sort: Sort<F>;
}

const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(", ");

const sortOf = <const F extends string>(allowed: readonly F[], alone: readonly F[], first: string) => {
  const combined = allowed.filter((name) => !alone.includes(name));
  const term = `-?(?:${combined.join("|")})`;
  const terms = `${term}(?:,${term}){0,${combined.length - 1}}`;
  return z
    .string()
    .max(200)
    .regex(new RegExp(alone.length === 0 ? `^${terms}$` : `^(?:-?(?:${alone.join("|")})|${terms})$`))
    .refine((text) => {
      const names = text.split(",").map((name) => name.replace("-", ""));
      return new Set(names).size === names.length;
    }, "names a field twice")
    .default(first)
    .describe(
      `Fields to sort by, separated by commas; \`-\` sorts in descending order. One or more of ${listed(combined)}${alone.length === 0 ? "" : `, or only ${listed(alone)}`}.`,
    ) as unknown as z.ZodDefault<z.ZodType<Sort<F>, string>>; // as: the pattern allows these fields only
};

const checkStyle = ({ page, pageSize, limit, offset, cursor }: PageQuery, context: z.core.$RefinementCtx): void => {
  const refuse = (path: keyof PageQuery, message: string, params = {}): void => context.addIssue({ code: "custom", path: [path], message, params });
  const mixed = { reason: "mixed_pagination" };
  if ((page ?? pageSize) !== undefined && (limit ?? offset) !== undefined) refuse("limit", "page and pageSize cannot be combined with limit and offset", mixed);
  if (cursor !== undefined && (page ?? offset) !== undefined) refuse("cursor", "a cursor cannot be combined with page or offset", mixed);
  if (cursor === undefined && (pageSize ?? limit ?? 0) > MAX_SIZE)
    refuse(pageSize === undefined ? "limit" : "pageSize", `must be at most ${MAX_SIZE} without a cursor`);
};

/**
 * Input of a list: paging, sorting by `sort` (by default in the order of `by`) and the list's own filters. It refuses unknown fields, so a typo in a
 * filter never widens the result.
 */
export const listQuery = <const S extends string, F extends z.ZodRawShape = Record<never, never>>({
  sort,
  alone = [],
  by,
  filters = {} as F,
}: {
  readonly sort: readonly S[];
  /** The fields that cannot be combined with others. */
  readonly alone?: readonly NoInfer<S>[];
  readonly by: NoInfer<S> | `-${NoInfer<S>}`;
  readonly filters?: F;
}) =>
  z.strictObject({ ...pageFields(), sort: sortOf<S>(sort, alone, by), ...filters }).superRefine((query, context) => checkStyle(query as PageQuery, context));

/** Input of a list with one order of its own. */
export const orderedQuery = <F extends z.ZodRawShape>(filters: F, maxSize = MAX_CURSOR_SIZE) =>
  z.strictObject({ ...pageFields(maxSize), ...filters }).superRefine((query, context) => checkStyle(query as PageQuery, context));

/** Input of a list that is too long to count: it has one order and is paged by cursor only. */
export const cursorQuery = <F extends z.ZodRawShape>(filters: F) =>
  z.strictObject({
    pageSize: z.int().min(1).max(MAX_CURSOR_SIZE).optional().describe("Items per page. Default: 20."),
    cursor,
    ...filters,
  });

export interface Window {
  readonly limit: number;
  readonly offset: number;
}

export const toWindow = ({ page, pageSize, limit, offset }: PageQuery): Window => {
  const size = pageSize ?? limit ?? 20;
  return { limit: size, offset: page === undefined ? (offset ?? 0) : (page - 1) * size };
};

export interface Page<T> {
  readonly items: T[];
  readonly total?: number;
  readonly nextCursor?: string;
}

/** Output of a list. REST returns the items as `data` and computes `meta.pagination`. */
export const paged = <T extends z.ZodType>(item: T) =>
  z.object({
    items: z.array(item),
    total: z.int().min(0).optional().describe("Absent with a cursor, and in a list that is too long to count."),
    nextCursor: z
      .string()
      .optional()
      .describe("Absent on the last page. A page that looked at many items without a match ends early: it may have few items, or none, and is not the last."),
  });

export const Pagination = z.object({
  page: z.int().optional(),
  pageSize: z.int(),
  total: z.int().optional().describe("This and the numbers of pages and offset are absent with a cursor, and in a list that is too long to count."),
  totalPages: z.int().optional(),
  hasMore: z.boolean(),
  hasNext: z.boolean(),
  hasPrev: z.boolean(),
  limit: z.int(),
  offset: z.int().optional(),
  nextCursor: z.string().nullable(),
});
export type Pagination = z.infer<typeof Pagination>;

/** The fields of both pagination schemas of the interface, and the cursor's. */
export const toPagination = (query: PageQuery, { items, total, nextCursor }: Page<unknown>): Pagination => {
  const { limit, offset } = toWindow(query);
  const count = items.length;
  const next = { nextCursor: nextCursor ?? null, pageSize: limit, limit };
  if (total === undefined) {
    const hasMore = nextCursor !== undefined;
    return { ...next, hasMore, hasNext: hasMore, hasPrev: (query.cursor ?? FIRST) !== FIRST };
  }
  const hasMore = offset + count < total;
  return {
    ...next,
    page: Math.floor(offset / limit) + 1,
    total,
    totalPages: Math.ceil(total / limit),
    hasMore,
    hasNext: hasMore,
    hasPrev: offset > 0,
    offset,
  };
};
