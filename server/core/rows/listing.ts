// Pages of rows that Prisma reads: order, window, cursor and total of a list, from the sort and paging of its query.
import { type ListQuery, type Page, toWindow } from "../../../protocol/index.ts";
import { bindingOf, type CursorColumn, type CursorValue, readCursor, writeCursor } from "./cursor.ts";

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

/** `id` is the unique column that decides between equal rows, in the direction of the first field. */
export const createListing = <F extends string>(name: string, columns: Readonly<Record<F, SortColumn>>, id: SortColumn & { readonly column: string }) => {
  const termOf = (text: string): Term => {
    const field = text.replace("-", "") as F; // as: the contract lets no other field pass
    return { column: field, ...columns[field], descending: text.startsWith("-") };
  };
  const termsOf = (sort: string): readonly Term[] => {
    const terms = sort.split(",").map(termOf);
    return terms.some(({ column }) => column === id.column) ? terms : [...terms, { ...id, descending: terms[0]?.descending ?? false }];
  };
  const columnOf = (row: unknown, { column }: Term): CursorValue => {
    const value = (row as Record<string, CursorValue | bigint>)[column] ?? null;
    return typeof value === "bigint" ? Number(value) : value;
  };

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
      ...(found.length <= limit || end === undefined
        ? {}
        : {
            nextCursor: writeCursor(
              binding,
              terms.map((term) => columnOf(end, term)),
            ),
          }),
    };
  };
};
