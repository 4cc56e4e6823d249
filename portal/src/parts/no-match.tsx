// Which of several filters leaves nothing: what would match without one of them, and the button that removes it.
import { useQueries } from "@tanstack/react-query";
import type { PageOf } from "../api/lists.ts";
import { numbers } from "../ui/count.ts";
import { type FilterKey, type Filters, type Token, tokensOf, withoutToken } from "../ui/list/filter-bar.tsx";

const MOST = 4;

interface NoMatchProps {
  readonly keys: readonly FilterKey[];
  readonly filters: Filters;
  /** The query of the list's first row with other filters. */
  // biome-ignore lint/suspicious/noExplicitAny: the options of a procedure are exact in ways that no function over procedures can name
  readonly first: (filters: Filters) => any;
  readonly onChange: (filters: Filters) => void;
}
export const NoMatch = ({ keys, filters, first, onChange }: NoMatchProps) => {
  const { q } = filters;
  const tokens: readonly Token[] = [...tokensOf(filters, keys), ...(q === undefined ? [] : [{ key: "", name: "q", value: q }])].slice(0, MOST);
  const counts = useQueries({ queries: tokens.map((token) => first(withoutToken(filters, token))) });
  if (tokens.length < 2) return null;
  const found = tokens
    .map((token, at) => ({
      token,
      words: token.key === "" ? token.value : `${token.key}:${token.value}`,
      count: (counts[at]?.data as PageOf<unknown> | undefined)?.total ?? 0,
    }))
    .filter(({ count }) => count > 0);
  return (
    <>
      {found.map(({ token, words, count }) => (
        <div key={words} className="row">
          <span>
            <code>{words}</code> leaves none of {numbers.format(count)}.
          </span>
          <button type="button" onClick={() => onChange(withoutToken(filters, token))}>
            Remove {words}
          </button>
        </div>
      ))}
    </>
  );
};
