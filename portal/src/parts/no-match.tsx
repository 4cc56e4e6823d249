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
/** The filters that somebody may remove, each alone. */
const tokensIn = (filters: Filters, keys: readonly FilterKey[]): readonly Token[] => {
  const { q } = filters;
  return [...tokensOf(filters, keys), ...(q === undefined ? [] : [{ key: "", name: "q", value: q }])].slice(0, MOST);
};

export const NoMatch = ({ keys, filters, first, onChange }: NoMatchProps) => {
  const tokens = tokensIn(filters, keys);
  const counts = useQueries({ queries: tokens.map((token) => first(withoutToken(filters, token))) });
  const countOf = (token: Token): number => (counts[tokens.indexOf(token)]?.data as PageOf<unknown> | undefined)?.total ?? 0;
  return <LeavesNone tokens={tokens} countOf={countOf} onRemove={(token) => onChange(withoutToken(filters, token))} />;
};

interface NoMatchAmongProps extends Omit<NoMatchProps, "first"> {
  /** How many match other filters. */
  readonly count: (filters: Filters) => number;
}
/** For a list that the page has read as a whole. */
export const NoMatchAmong = ({ keys, filters, count, onChange }: NoMatchAmongProps) => (
  <LeavesNone
    tokens={tokensIn(filters, keys)}
    countOf={(token) => count(withoutToken(filters, token))}
    onRemove={(token) => onChange(withoutToken(filters, token))}
  />
);

interface LeavesNoneProps {
  readonly tokens: readonly Token[];
  /** What would match without it. */
  readonly countOf: (token: Token) => number;
  readonly onRemove: (token: Token) => void;
}
const LeavesNone = ({ tokens, countOf, onRemove }: LeavesNoneProps) => {
  if (tokens.length < 2) return null;
  const found = tokens
    .map((token) => ({ token, words: token.key === "" ? token.value : `${token.key}:${token.value}`, count: countOf(token) }))
    .filter(({ count }) => count > 0);
  return (
    <>
      {found.map(({ token, words, count }) => (
        <div key={words} className="row">
          <span>
            <code>{words}</code> leaves none of {numbers.format(count)}.
          </span>
          <button type="button" onClick={() => onRemove(token)}>
            Remove {words}
          </button>
        </div>
      ))}
    </>
  );
};
