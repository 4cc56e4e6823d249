// One line that filters a list: `status:online tag:roof -tag:canary cam`. A filter that is complete becomes a token; the list's URL is the only state.
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { Icon, PageIcon } from "../icon.tsx";
import { useId } from "../use-id.ts";
import css from "./filter-bar.module.css";

export interface FilterKey {
  /** As it is typed, such as `-tag`. */
  readonly key: string;
  /** The parameter of the URL. */
  readonly name: string;
  /** Values to suggest. */
  readonly values?: readonly string[];
  /** Several values are joined by commas; otherwise the last one counts. */
  readonly several?: true;
}

export type Filters = Readonly<Record<string, string | undefined>>;

/** Words without a key are text. */
const TEXT = "q";

export const parseFilters = (typed: string, keys: readonly FilterKey[]): Filters => {
  const found: Record<string, string> = {};
  for (const word of typed.split(/\s+/).filter((each) => each !== "")) {
    const known = keys.find(({ key }) => word.startsWith(`${key}:`));
    const value = known === undefined ? word : word.slice(known.key.length + 1);
    if (value === "") continue;
    const name = known?.name ?? TEXT;
    const before = found[name];
    if (known === undefined) found[name] = before === undefined ? value : `${before} ${value}`;
    else if (known.several !== true || before === undefined) found[name] = value;
    else if (!before.split(",").includes(value)) found[name] = `${before},${value}`;
  }
  return found;
};

export const printFilters = (filters: Filters, keys: readonly FilterKey[]): string =>
  [...tokensOf(filters, keys).map(({ key, value }) => `${key}:${value}`), ...(filters[TEXT] === undefined ? [] : [filters[TEXT]])].join(" ");

export interface Token {
  readonly key: string;
  readonly name: string;
  readonly value: string;
}
/** The filters with a key, each of several values by itself. */
export const tokensOf = (filters: Filters, keys: readonly FilterKey[]): readonly Token[] =>
  keys.flatMap(({ key, name, several }) => {
    const value = filters[name];
    if (value === undefined) return [];
    return (several === true ? value.split(",") : [value]).map((each) => ({ key, name, value: each }));
  });
export const withoutToken = (filters: Filters, { name, value }: Token): Filters => {
  const { [name]: before = "", ...others } = filters;
  const left = before.split(",").filter((each) => each !== value);
  return left.length === 0 || before === value ? others : { ...others, [name]: left.join(",") };
};

const suggest = (typed: string, keys: readonly FilterKey[]): readonly string[] => {
  const word = typed.split(/\s+/).at(-1) ?? "";
  const known = keys.find(({ key }) => word.startsWith(`${key}:`));
  if (known === undefined) return keys.map(({ key }) => `${key}:`).filter((key) => key.startsWith(word));
  const begun = word.slice(known.key.length + 1);
  return (known.values ?? []).filter((value) => value.startsWith(begun) && value !== begun).map((value) => `${known.key}:${value}`);
};

const MAX_SUGGESTIONS = 12;
const PAUSE_MS = 250;

export interface FilterBarProps {
  readonly label: string;
  readonly keys: readonly FilterKey[];
  readonly filters: Filters;
  /** What words without a key are. */
  readonly example?: string;
  readonly onChange: (filters: Filters) => void;
  /** Somebody is about to type: time to read the values. */
  readonly onNear?: (() => void) | undefined;
  /** Buttons at the end of the line. */
  readonly beside?: ReactNode;
}

/** What is typed, and the tokens before it. The URL decides, unless it says the same. */
const useLine = ({ keys, filters, onChange }: FilterBarProps) => {
  const { [TEXT]: words = "", ...ofUrl } = filters;
  const [held, setHeld] = useState<Filters>(ofUrl);
  const [typed, setTyped] = useState(words);
  const whole = (before: Filters, text: string): Filters => parseFilters(`${printFilters(before, keys)} ${text}`, keys);
  const same = (one: Filters, other: Filters): boolean => printFilters(one, keys) === printFilters(other, keys);
  const inUrl = printFilters(filters, keys);
  const [known, setKnown] = useState(inUrl);
  /** What this line has asked for and the URL does not say yet. */
  const [sent, setSent] = useState<readonly string[]>([]);
  if (known !== inUrl) {
    setKnown(inUrl);
    const at = sent.lastIndexOf(inUrl);
    setSent(sent.slice(at === -1 ? sent.length : at + 1));
    // The URL changed otherwise: back, a link, a view, "Clear filters".
    if (at === -1 && !same(whole(held, typed), filters)) {
      setHeld(ofUrl);
      setTyped(words);
    }
  }
  const asked = whole(held, typed);
  const print = printFilters(asked, keys);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `print` says all of `asked`
  useEffect(() => {
    if (print === inUrl) return;
    const timer = setTimeout(() => {
      setSent((before) => [...before, print]);
      onChange(asked);
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [print, inUrl, onChange]);
  /** Complete filters become tokens: all but the last word, which may go on. */
  const type = (text: string, isComplete = false): void => {
    const found = text.split(/\s+/).filter((word) => word !== "");
    const open = isComplete || /\s$/.test(text) ? "" : (found.pop() ?? "");
    const { [TEXT]: rest = "", ...complete } = parseFilters(found.join(" "), keys);
    if (Object.keys(complete).length === 0) {
      setTyped(text);
      return;
    }
    setHeld(whole(held, printFilters(complete, keys)));
    setTyped([rest, open].filter((part) => part !== "").join(" "));
  };
  const remove = (token: Token): void => setHeld(withoutToken(held, token));
  return { tokens: tokensOf(held, keys), typed, type, remove };
};

export const FilterBar = (props: FilterBarProps) => {
  const { label, keys, example = "a name, ", onNear, beside } = props;
  const { tokens, typed, type, remove } = useLine(props);
  const [at, setAt] = useState(-1);
  const [open, setOpen] = useState(false);
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const suggestions = open ? suggest(typed, keys).slice(0, MAX_SUGGESTIONS) : [];

  const take = (suggestion: string): void => {
    type(typed.replace(/\S*$/, suggestion), !suggestion.endsWith(":"));
    setAt(-1);
  };
  const press = (event: KeyboardEvent<HTMLInputElement>): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Escape") setOpen(false);
    const chosen = suggestions[at];
    if (event.key === "Enter") {
      event.preventDefault();
      if (chosen === undefined) type(typed, true);
      else take(chosen);
    }
    const last = tokens.at(-1);
    if (event.key === "Backspace" && last !== undefined && event.currentTarget.selectionEnd === 0) remove(last);
    if (step === 0 || suggestions.length === 0) return;
    event.preventDefault();
    setAt(Math.max(-1, Math.min(suggestions.length - 1, at + step)));
  };
  const bar = (
    <div className={css["bar"]}>
      <div className={css["line"]}>
        <PageIcon name="filter" />
        {tokens.map((token) => (
          <span key={`${token.key}:${token.value}`} className={css["token"]}>
            <span className="cut">
              <span className="muted">{token.key}:</span>
              {token.value}
            </span>
            <button
              type="button"
              aria-label={`Remove the filter ${token.key}:${token.value}`}
              onClick={() => {
                remove(token);
                input.current?.focus();
              }}
            >
              <Icon name="close" />
            </button>
          </span>
        ))}
        <input
          ref={input}
          data-filter
          role="combobox"
          aria-label={label}
          aria-expanded={suggestions.length > 0}
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={at >= 0 ? `${id}${at}` : undefined}
          autoComplete="off"
          spellCheck={false}
          placeholder={`${example}${keys.map(({ key }) => `${key}:`).join(" ")}`}
          value={typed}
          maxLength={400}
          onChange={(event) => {
            type(event.target.value);
            setOpen(true);
          }}
          onFocus={() => {
            setOpen(true);
            onNear?.();
          }}
          onBlur={() => {
            setOpen(false);
            type(typed, true);
          }}
          onKeyDown={press}
        />
      </div>
      <div id={id} role="listbox" aria-label="Suggestions" className={css["suggestions"]} hidden={suggestions.length === 0}>
        {suggestions.map((suggestion, index) => (
          <div
            key={suggestion}
            id={`${id}${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            className={css["suggestion"]}
            // Before the field loses the focus.
            onMouseDown={(event) => {
              event.preventDefault();
              take(suggestion);
            }}
          >
            {suggestion}
          </div>
        ))}
      </div>
    </div>
  );
  return beside === undefined ? (
    bar
  ) : (
    <div className="row">
      {bar}
      {beside}
    </div>
  );
};
