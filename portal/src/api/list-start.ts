// Lists with a cursor, from their beginning: apart from the lists, which the first screen does not need.

/** `cursor` of a list's beginning. */
export const FIRST = "*";

interface CursorPage<R> {
  readonly items: readonly R[];
  readonly nextCursor?: string | undefined;
}

/** All pages of a list, one after another. `read` asks for the page at the cursor. */
export async function* pagesFromStart<R>(read: (cursor: string) => Promise<CursorPage<R>>): AsyncGenerator<readonly R[]> {
  for (let cursor: string | undefined = FIRST; cursor !== undefined; ) {
    const page: CursorPage<R> = await read(cursor);
    yield page.items;
    cursor = page.nextCursor;
  }
}

/** The ids of what such a list has, but these, up to `most`. */
export const idsFromStart = async <R>(
  read: (cursor: string) => Promise<CursorPage<R>>,
  { idOf, but, most }: { readonly idOf: (row: R) => string; readonly but: ReadonlySet<string>; readonly most: number },
): Promise<string[]> => {
  const ids: string[] = [];
  for await (const items of pagesFromStart(read)) {
    ids.push(...items.map(idOf).filter((id) => !but.has(id)));
    if (ids.length >= most) break;
  }
  return ids.slice(0, most);
};
