// Pages of rows that Prisma reads: order, window, cursor and total of a list, from the sort and paging of its query.
import { type ListQuery, type Page, toWindow } from "../../../protocol/index.ts";
import { bindingOf, type CursorColumn, type CursorValue, readCursor, writeCursor } from "./cursor.ts";
import { refuseTooFar, WALK_ROWS } from "./walk.ts";

/** A column to sort by; without a name it is called as its field. */
export interface SortColumn extends CursorColumn {
  readonly column?: string;
}
interface Term extends SortColumn {
  readonly column: string;
  readonly descending: boolean;
}

/** Escapes typed text for LIKE, because Prisma does not. */
export const likeLiteral = (text: string): string => text.replace(/[\\%_]/g, (sign) => `\\${sign}`);

/** Part of Prisma's arguments. The types of the model are checked where the list adds its own conditions. */
type Part = Record<never, never>;
export interface ListArguments {
  readonly where: Part;
  readonly orderBy: Part[];
  readonly take: number;
  readonly skip: number;
}

export interface ListSource<R, T> {
  /** The tenant or the user whose rows they are. */
  readonly owner: string;
  /** A raw statement cannot use `asked.where`, so it gets the same as values: those of the last row before the page. */
  readonly rows: (asked: ListArguments, last: readonly CursorValue[] | null) => Promise<readonly R[]>;
  readonly count: () => Promise<number>;
  readonly record: (row: R) => T;
}
export interface LongSource<R, T> extends Omit<ListSource<R, T>, "rows" | "count"> {
  /** The owner's rows without any filter, as far as the columns of the sort. */
  readonly walk: (asked: ListArguments) => Promise<readonly unknown[]>;
  /** No filter: a page by cursor reads what it answers with and nothing else, so nobody has to know how far it may look. */
  readonly isWhole?: boolean;
  /** `upTo`: the values of the last row that the page may look at. */
  readonly rows: (asked: ListArguments, last: readonly CursorValue[] | null, upTo: readonly CursorValue[] | null) => Promise<readonly R[]>;
  readonly count: (asked: Pick<ListArguments, "where">) => Promise<number>;
}

/** Nulls come last, in both directions. */
const orderOf = (term: Term): Part => {
  const sort = term.descending ? "desc" : "asc";
  return { [term.column]: term.nullable === true ? { sort, nulls: "last" } : sort };
};

const beyond = (term: Term, value: CursorValue): readonly Part[] => {
  if (value === null) return [];
  return [{ [term.column]: { [term.descending ? "lt" : "gt"]: value } }, ...(term.nullable === true ? [{ [term.column]: null }] : [])];
};

/** The rows after these values: beyond the first, or equal in it and beyond the next, and so on. */
const after = (terms: readonly Term[], values: readonly CursorValue[]): Part => {
  const same = (upTo: number) => terms.slice(0, upTo).map(({ column }, at) => ({ [column]: values[at] }));
  const OR = terms.flatMap((term, at) => beyond(term, values[at] ?? null).map((part) => ({ AND: [...same(at), part] })));
  const [first] = terms;
  // Implied by the rest; PostgreSQL begins an index scan here.
  const from = first === undefined || first.nullable === true ? {} : { [first.column]: { [first.descending ? "lte" : "gte"]: values[0] } };
  return { AND: [from, { OR }] };
};

/** The rows up to these values, which are not null. */
const notBeyond = (terms: readonly Term[], values: readonly CursorValue[]): Part => {
  const [first] = terms;
  const upTo = first === undefined ? {} : { [first.column]: { [first.descending ? "gte" : "lte"]: values[0] } };
  return { AND: [upTo, { NOT: after(terms, values) }] };
};

type Columns<F extends string> = Readonly<Record<F, SortColumn>>;
type Id = SortColumn & { readonly column: string };

const orders = <F extends string>(columns: Columns<F>, id: Id) => {
  const termOf = (text: string): Term => {
    const field = text.replace("-", "") as F; // as: the contract lets no other field pass
    return { column: field, ...columns[field], descending: text.startsWith("-") };
  };
  return (sort: string): readonly Term[] => {
    const terms = sort.split(",").map(termOf);
    return terms.some(({ column }) => column === id.column) ? terms : [...terms, { ...id, descending: terms[0]?.descending ?? false }];
  };
};

const valuesOf = (row: unknown, terms: readonly Term[]): readonly CursorValue[] =>
  terms.map(({ column }) => {
    const value = (row as Record<string, CursorValue | bigint>)[column] ?? null;
    return typeof value === "bigint" ? Number(value) : value;
  });

/**
 * A list over rows whose number something bounds for each owner, because a page may read all of them: test/contract/lists.test.ts names what.
 * `id` is the unique column that decides between equal rows, in the direction of the first field.
 */
export const createListing = <F extends string>(name: string, columns: Columns<F>, id: Id) => {
  const termsOf = orders(columns, id);
  return async <R, T>(query: ListQuery<F>, { owner, rows, count, record }: ListSource<R, T>): Promise<Page<T>> => {
    const terms = termsOf(query.sort);
    const binding = bindingOf(name, owner, query);
    const last = readCursor(query.cursor, binding, terms);
    const { limit, offset } = toWindow(query);
    const asked = { where: last === null ? {} : after(terms, last), orderBy: terms.map(orderOf), take: limit + 1, skip: offset };
    const [found, total] = await Promise.all([rows(asked, last), query.cursor === undefined ? count() : undefined]);
    const page = found.slice(0, limit);
    const end = page.at(-1);
    return {
      items: page.map(record),
      ...(total === undefined ? {} : { total }),
      ...(found.length <= limit || end === undefined ? {} : { nextCursor: writeCursor(binding, valuesOf(end, terms)) }),
    };
  };
};

/**
 * A list over rows that nothing bounds, such as a log. A page looks at WALK_ROWS rows at most, in the order of the list, and its cursor stands where it
 * stopped: a filter that matches few rows gives pages with few items, or none, that are not the last. Longer lists are not counted. An index has the
 * columns of each order, none of which is null.
 */
export const createLongListing = <F extends string>(name: string, columns: Columns<F>, id: Id) => {
  const termsOf = orders(columns, id);
  return async <R, T>(query: ListQuery<F>, { owner, walk, isWhole = false, rows, count, record }: LongSource<R, T>): Promise<Page<T>> => {
    const terms = termsOf(query.sort);
    const binding = bindingOf(name, owner, query);
    const last = readCursor(query.cursor, binding, terms);
    const { limit, offset } = toWindow(query);
    const from = last === null ? {} : after(terms, last);
    const orderBy = terms.map(orderOf);
    const needsNoWalk = isWhole && query.cursor !== undefined;
    const [reached] = needsNoWalk ? [] : await walk({ where: from, orderBy, take: 1, skip: WALK_ROWS - 1 });
    const upTo = reached === undefined ? null : valuesOf(reached, terms);
    if (upTo !== null) refuseTooFar(offset);
    const where = upTo === null ? from : { AND: [from, notBeyond(terms, upTo)] };
    const [found, total] = await Promise.all([
      rows({ where, orderBy, take: limit + 1, skip: offset }, last, upTo),
      query.cursor === undefined && upTo === null ? count({ where }) : undefined,
    ]);
    const page = found.slice(0, limit);
    const end = found.length > limit ? valuesOf(page.at(-1), terms) : upTo;
    return { items: page.map(record), ...(total === undefined ? {} : { total }), ...(end === null ? {} : { nextCursor: writeCursor(binding, end) }) };
  };
};
