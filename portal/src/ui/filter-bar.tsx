// One line that filters a list: `status:online tag:roof -tag:canary cam`. It suggests the keys and the values that exist; the list's URL is its only state.
import { type KeyboardEvent, useEffect, useId, useState } from "react";
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
    else found[name] = known.several === true && before !== undefined ? `${before},${value}` : value;
  }
  return found;
};

export const printFilters = (filters: Filters, keys: readonly FilterKey[]): string =>
  [
    ...keys.flatMap(({ key, name, several }) => {
      const value = filters[name];
      if (value === undefined) return [];
      return (several === true ? value.split(",") : [value]).map((each) => `${key}:${each}`);
    }),
    ...(filters[TEXT] === undefined ? [] : [filters[TEXT]]),
  ].join(" ");

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
}

export const FilterBar = ({ label, keys, filters, example = "a name, ", onChange }: FilterBarProps) => {
  const shown = printFilters(filters, keys);
  const [typed, setTyped] = useState(shown);
  const [at, setAt] = useState(-1);
  const [open, setOpen] = useState(false);
  const id = useId();
  const suggestions = open ? suggest(typed, keys).slice(0, MAX_SUGGESTIONS) : [];
  const inUrl = JSON.stringify(filters);
  const [known, setKnown] = useState(inUrl);
  if (known !== inUrl) {
    setKnown(inUrl);
    // The URL changed otherwise: back, a link, "Clear filters".
    if (JSON.stringify(parseFilters(typed, keys)) !== JSON.stringify(parseFilters(shown, keys))) setTyped(shown);
  }
  useEffect(() => {
    const next = parseFilters(typed, keys);
    if (JSON.stringify(next) === JSON.stringify(parseFilters(shown, keys))) return;
    const timer = setTimeout(() => onChange(next), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed, shown, keys, onChange]);

  const take = (suggestion: string | undefined): void => {
    if (suggestion === undefined) return;
    setTyped(typed.replace(/\S*$/, `${suggestion}${suggestion.endsWith(":") ? "" : " "}`));
    setAt(-1);
  };
  const press = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Escape") setOpen(false);
    if (event.key === "Enter" && at >= 0) {
      event.preventDefault();
      take(suggestions[at]);
    }
    if (step === 0 || suggestions.length === 0) return;
    event.preventDefault();
    setAt(Math.max(-1, Math.min(suggestions.length - 1, at + step)));
  };
  return (
    <div className={css["bar"]}>
      <input
        data-filter
        role="combobox"
        aria-label={label}
        aria-expanded={suggestions.length > 0}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={at >= 0 ? `${id}${at}` : undefined}
        autoComplete="off"
        spellCheck={false}
        placeholder={`Filter: ${example}${keys.map(({ key }) => `${key}:`).join(" ")}`}
        value={typed}
        maxLength={400}
        onChange={(event) => {
          setTyped(event.target.value);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={press}
      />
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
};
