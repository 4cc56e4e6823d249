// The applications that people can install, and which of them the tenant's plan includes.
import type { AppTemplate } from "@mooring/client";
import { keepPreviousData } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";
import { api } from "../../api/client.ts";
import { fromCursor, PAGE_SIZE, useCursorList } from "../../api/lists.ts";
import { given, oneOf } from "../../api/search.ts";
import { FilterBar, type FilterKey, type Filters } from "../../ui/list/filter-bar.tsx";
import { FilteredList } from "../../ui/list/filtered-list.tsx";
import type { Column } from "../../ui/list/table.tsx";
import { Page } from "../../ui/parts.tsx";
import { Status } from "../../ui/status.tsx";
import { readCatalogueSearch } from "./search.ts";
import { CATEGORIES, categoryText, text } from "./text.ts";

const route = getRouteApi("/catalogue");

const KEYS: readonly FilterKey[] = [
  { key: "category", name: "category", values: CATEGORIES },
  { key: "included", name: "available", values: ["yes", "no"] },
];

const COLUMNS: readonly Column<AppTemplate>[] = [
  { title: "Name", width: "minmax(0, 1fr)", phone: true, cell: ({ name }) => <strong>{name}</strong> },
  { title: "What it is", width: "minmax(0, 2fr)", cell: ({ tagline }) => <span title={tagline}>{tagline}</span> },
  { title: "Category", width: "minmax(0, 1fr)", cell: ({ categories }) => categoryText(categories) },
  { title: "Version", width: "110px", cell: ({ version }) => version },
  { title: "Memory", width: "90px", cell: ({ requirements }) => text.memory(requirements.memoryMB) },
  {
    title: "Plan",
    width: "130px",
    phone: true,
    cell: ({ available, minPlan }) => <Status status={available ? "ok" : "blocked"} word={available ? text.included : text.needs(minPlan)} />,
  },
];

export const CatalogueScreen = () => {
  const search = route.useSearch();
  const navigate = useNavigate();
  const { q, available } = search;
  const category = oneOf(search.category, CATEGORIES);
  const filters = given({ q, category, available });
  const list = useCursorList<AppTemplate>({
    ...api.apps.templates.infiniteQueryOptions(
      { ...given({ q, category, available: available === undefined ? undefined : available === "yes" }), pageSize: PAGE_SIZE },
      fromCursor,
    ),
    placeholderData: keepPreviousData,
    refetchInterval: false,
  });
  const setFilters = useCallback((filters: Filters) => void navigate({ to: "/catalogue", search: readCatalogueSearch(filters), replace: true }), [navigate]);
  return (
    <Page title={text.title} fill>
      <FilterBar label={text.filter} keys={KEYS} filters={filters} onChange={setFilters} />
      <FilteredList
        label={text.title}
        columns={COLUMNS}
        list={list}
        id={({ id }) => id}
        onOpen={({ id }) => void navigate({ to: "/catalogue/$templateId", params: { templateId: id } })}
        filters={filters}
        onClear={() => setFilters({})}
        noMatch={text.noMatch}
        none={text.none}
      />
    </Page>
  );
};
