// Saved searches of a list as tabs, with those that every list of its kind has, and the button that saves the present one.
import { useQuery } from "@tanstack/react-query";
import { Link, type LinkProps } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { api } from "../api/client.ts";
import { useMay } from "../api/session.ts";
import { numbers } from "../ui/count.ts";
import { PageIcon } from "../ui/icon.tsx";
import type { Filters } from "../ui/list/filter-bar.tsx";
import { Strip, tabClass } from "../ui/tabs.tsx";

const ViewDialog = lazy(() => import("./view-dialog.tsx").then((part) => ({ default: part.ViewDialog })));

export interface ViewPlace {
  /** As the API calls the list. */
  readonly name: string;
  readonly to: NonNullable<LinkProps["to"]>;
  /** What the list shows without a search. */
  readonly plain: string;
  /** Searches that need nobody to save them, by their names. */
  readonly fixed: Readonly<Record<string, Filters>>;
  /** Other screens of the place, at the right end. */
  readonly beside: readonly { readonly to: NonNullable<LinkProps["to"]>; readonly word: string; readonly needs: string }[];
}

export const DEVICE_VIEWS: ViewPlace = {
  name: "devices",
  to: "/devices",
  plain: "All",
  fixed: { Offline: { status: "offline" }, "Never connected": { status: "provisioning" } },
  beside: [{ to: "/fleets", word: "Fleets", needs: "fleet:read" }],
};
export const APP_VIEWS: ViewPlace = {
  name: "apps",
  to: "/apps",
  plain: "All",
  fixed: { "In error": { status: "error" }, Updates: { outdated: "true" }, Drifted: { drift: "true" } },
  beside: [{ to: "/deployments", word: "History", needs: "deployment:read" }],
};
export const COMMAND_VIEWS: ViewPlace = {
  name: "commands",
  to: "/commands",
  plain: "Open",
  fixed: { Blocked: { show: "blocked" }, Failed: { status: "failed,rejected,timed_out,undeliverable" }, All: { show: "all" } },
  beside: [{ to: "/bulk", word: "Bulk jobs", needs: "bulk:read" }],
};

/** The same for the same filters, in whatever order. */
export const searchOf = (filters: Filters): string => {
  const search = new URLSearchParams(Object.entries(filters).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
  search.sort();
  return search.toString();
};
const filtersOf = (search: string): Filters => Object.fromEntries(new URLSearchParams(search));

const MAX_SHOWN = 100;
const useSaved = (place: string) => {
  const enabled = useMay()("view:read");
  const { data } = useQuery({ ...api.views.list.queryOptions({ place, pageSize: MAX_SHOWN }), enabled, staleTime: 60_000, refetchInterval: false });
  return (data?.items ?? []).map((view) => ({ ...view, search: searchOf(filtersOf(view.search)) }));
};

interface ViewTabsProps {
  readonly of: ViewPlace;
  /** What the list shows; none on another screen of the place. */
  readonly filters?: Filters;
  /** The number of rows of the present view. */
  readonly count?: number | undefined;
  /** The address of the other screen. */
  readonly at?: string;
}
export const ViewTabs = ({ of: { name, to, plain, fixed, beside }, filters, count, at }: ViewTabsProps) => {
  const may = useMay();
  const { sort: _, ...unsorted } = filters ?? {};
  const searches = filters === undefined ? [] : [searchOf(filters), searchOf(unsorted)];
  const tabs = [
    { key: "", word: plain, search: "" },
    ...Object.entries(fixed).map(([word, of]) => ({ key: word, word, search: searchOf(of) })),
    ...useSaved(name).map(({ viewId, name: word, search }) => ({ key: viewId as string, word, search })),
  ];
  // An order alone makes no other view.
  const [current] = searches.flatMap((now) => tabs.find(({ search }) => search === now)?.key ?? []);
  return (
    <Strip label="Views" current={current ?? at}>
      {tabs.map(({ key, word, search }) => (
        <Link
          key={key}
          to={to}
          // as: the screen of the list reads it
          search={filtersOf(search) as never}
          className={tabClass}
          activeOptions={{ exact: true, includeSearch: true }}
          aria-current={key === current ? "page" : undefined}
        >
          {word}
          {key === current && count !== undefined ? <small>{numbers.format(count)}</small> : null}
        </Link>
      ))}
      {beside
        .filter(({ needs }) => may(needs))
        .map(({ to: other, word }, index) => (
          <Link key={other} to={other} className={tabClass} data-apart={index === 0 || undefined} aria-current={other === at ? "page" : undefined}>
            {word}
          </Link>
        ))}
    </Strip>
  );
};

/** Saves the present search, or changes the view that it is. */
export const SaveView = ({ of: { name, fixed }, filters }: { readonly of: ViewPlace; readonly filters: Filters }) => {
  const may = useMay();
  const saved = useSaved(name);
  const [isOpen, setIsOpen] = useState(false);
  const search = searchOf(filters);
  const view = saved.find((each) => each.search === search);
  const isPlain = search === "" || Object.values(fixed).some((each) => searchOf(each) === search);
  if (!may("view:write") || (isPlain && view === undefined)) return null;
  return (
    <>
      <button type="button" onClick={() => setIsOpen(true)}>
        <PageIcon name="bookmark" /> {view === undefined ? "Save view" : "Change view"}
      </button>
      <Suspense fallback={null}>
        {isOpen ? <ViewDialog place={name} search={search} view={view} others={saved} onClose={() => setIsOpen(false)} /> : null}
      </Suspense>
    </>
  );
};
