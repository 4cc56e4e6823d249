// The applications that people can install, as cards: what each is, on which devices it runs, and where it is installed.
import type { AppTemplate } from "@mooring/client";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api } from "../../api/client.ts";
import { fromCursor, useCursorList } from "../../api/lists.ts";
import { oneOf } from "../../api/search.ts";
import { NoMatchAmong } from "../../parts/no-match.tsx";
import { numbers } from "../../ui/count.ts";
import { useKeys } from "../../ui/keyboard.ts";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { Empty, Loaded, Page } from "../../ui/parts.tsx";
import { Card } from "./card.tsx";
import css from "./catalogue.module.css";
import { Install } from "./install.tsx";
import { type CatalogueSearch, FITS, readCatalogueSearch, SORTS } from "./search.ts";
import { countCategories, countFitting, matching, sorted } from "./shown.ts";
import { CATEGORIES, categoryText, text } from "./text.ts";

const route = getRouteApi("/catalogue");
/** The most that the gateway gives at once. */
const PAGE_SIZE = 500;

const KEYS: readonly FilterKey[] = [
  { key: "category", name: "category", values: CATEGORIES },
  { key: "runs-on", name: "fits", values: FITS },
];
/** Only where some application is not included does anybody ask for it. */
const KEYS_OF_PLANS: readonly FilterKey[] = [...KEYS, { key: "included", name: "available", values: ["yes", "no"] }];

/** All applications, or nothing until the last page is there. */
const useCatalogue = () => {
  const { count, row, onSight, read } = useCursorList<AppTemplate>(api.apps.templates.infiniteQueryOptions({ pageSize: PAGE_SIZE }, fromCursor));
  useEffect(() => onSight(0, count), [onSight, count]);
  const all = Array.from({ length: count }, (_, index) => row(index)).flatMap((each) => each ?? []);
  return { all, read };
};

interface CategoriesProps {
  readonly all: readonly AppTemplate[];
  readonly search: CatalogueSearch;
}
const Categories = ({ all, search: { category, ...others } }: CategoriesProps) => {
  const { all: total, counts } = countCategories(all, others);
  const chips = [
    { value: undefined, word: text.all, count: total },
    ...CATEGORIES.map((value) => ({ value, word: categoryText([value]), count: counts.get(value) ?? 0 })),
  ];
  return (
    <nav className={css["chips"]} aria-label={text.categories} data-chips>
      {chips
        .filter(({ value, count }) => count > 0 || value === category)
        .map(({ value, word, count }) => (
          <Link
            key={word}
            to="/catalogue"
            search={value === undefined ? others : { ...others, category: value }}
            replace
            className={css["chip"]}
            activeOptions={{ exact: true, includeSearch: true }}
            aria-current={value === category ? "page" : undefined}
          >
            {word} <small>{numbers.format(count)}</small>
          </Link>
        ))}
    </nav>
  );
};

const STEPS: Readonly<Record<string, (columns: number) => number>> = {
  ArrowRight: () => 1,
  ArrowLeft: () => -1,
  ArrowDown: (columns) => columns,
  ArrowUp: (columns) => -columns,
  j: () => 1,
  k: () => -1,
};
interface CardsProps {
  readonly templates: readonly AppTemplate[];
  readonly onInstall: (template: AppTemplate) => void;
}
/** Arrows go from card to card; Enter opens the one that has the focus. */
const Cards = ({ templates, onInstall }: CardsProps) => {
  const grid = useRef<HTMLDivElement>(null);
  const keys = useMemo(() => {
    const move = (step: (columns: number) => number): void => {
      if (grid.current === null) return;
      const cards = [...grid.current.children];
      const at = cards.findIndex((card) => card.contains(document.activeElement));
      const next = at === -1 ? 0 : at + step(getComputedStyle(grid.current).gridTemplateColumns.split(" ").length);
      cards[next]?.querySelector("a")?.focus();
    };
    return Object.fromEntries(Object.entries(STEPS).map(([key, step]) => [key, () => move(step)]));
  }, []);
  useKeys(keys);
  return (
    <div ref={grid} className={css["cards"]}>
      {templates.map((template) => (
        <Card key={template.id} of={template} onInstall={() => onInstall(template)} />
      ))}
    </div>
  );
};

interface FoundProps extends CategoriesProps {
  readonly keys: readonly FilterKey[];
  readonly onChange: (filters: Filters) => void;
  readonly onInstall: (template: AppTemplate) => void;
}
const Found = ({ all, search, keys, onChange, onInstall }: FoundProps) => {
  const templates = sorted(matching(all, search), search.sort);
  if (all.length === 0) return <Empty>{text.none}</Empty>;
  const clear = (
    <>
      <NoMatchAmong keys={keys} filters={search} count={(filters) => matching(all, readCatalogueSearch(filters)).length} onChange={onChange} />
      <button type="button" onClick={() => onChange({})}>
        {text.clear}
      </button>
    </>
  );
  return (
    <>
      <Categories all={all} search={search} />
      {templates.length === 0 ? <Empty action={clear}>{text.noMatch}</Empty> : <Cards templates={templates} onInstall={onInstall} />}
    </>
  );
};

export const CatalogueScreen = () => {
  const given = route.useSearch();
  const navigate = useNavigate();
  const [installing, setInstalling] = useState<AppTemplate | null>(null);
  const { all, read } = useCatalogue();
  const search = useMemo((): CatalogueSearch => {
    const { category, ...others } = given;
    const known = oneOf(category, CATEGORIES);
    return known === undefined ? others : { ...others, category: known };
  }, [given]);
  const { sort, ...filters } = search;
  const go = useCallback((next: CatalogueSearch) => void navigate({ to: "/catalogue", search: next, replace: true }), [navigate]);
  const setFilters = useCallback((next: Filters) => go(readCatalogueSearch({ ...next, sort })), [go, sort]);
  const keys = all.some(({ available }) => !available) ? KEYS_OF_PLANS : KEYS;
  const fitting = all.some(({ fits }) => (fits?.total ?? 0) > 0) ? countFitting(all) : null;
  const { fits: _, ...anywhere } = search;
  return (
    <Page title={text.title} beside={all.length === 0 ? undefined : <span className="muted">{text.total(all.length, fitting)}</span>}>
      <FilterBar
        label={text.filter}
        keys={keys}
        filters={filters}
        onChange={setFilters}
        beside={
          <>
            {fitting === null ? null : (
              <button
                type="button"
                className={css["toggle"]}
                aria-pressed={search.fits === "mine"}
                onClick={() => go(search.fits === "mine" ? anywhere : { ...anywhere, fits: "mine" })}
              >
                {text.fitsMine}
              </button>
            )}
            <select aria-label={text.order} value={sort ?? SORTS[0]} onChange={({ target }) => go(readCatalogueSearch({ ...filters, sort: target.value }))}>
              {SORTS.map((each) => (
                <option key={each} value={each}>
                  {text.sorts[each]}
                </option>
              ))}
            </select>
          </>
        }
      />
      <Loaded read={read} rows={12}>
        {() => <Found all={all} search={search} keys={keys} onChange={setFilters} onInstall={setInstalling} />}
      </Loaded>
      {installing === null ? null : <Install of={installing} onClose={() => setInstalling(null)} />}
    </Page>
  );
};
