// Which applications the catalogue shows, and in which order. The page has all of them, so it answers by itself.
import type { AppTemplate } from "@mooring/client";
import type { CatalogueSearch } from "./search.ts";

const contains = ({ name, tagline, description }: AppTemplate, text: string): boolean =>
  [name, tagline, description].some((part) => part.toLowerCase().includes(text.toLowerCase()));

const canRun = ({ fits }: AppTemplate): boolean => fits !== null && fits.devices > 0;

const matches = (template: AppTemplate, { q, category, fits, available }: CatalogueSearch): boolean =>
  (q === undefined || contains(template, q)) &&
  (category === undefined || template.categories.some((each) => each === category)) &&
  (fits === undefined || canRun(template) === (fits === "mine")) &&
  (available === undefined || template.available === (available === "yes"));

export const matching = (all: readonly AppTemplate[], search: CatalogueSearch): readonly AppTemplate[] => all.filter((each) => matches(each, search));

const byName = (a: AppTemplate, b: AppTemplate): number => a.name.localeCompare(b.name);
export const sorted = (templates: readonly AppTemplate[], sort: CatalogueSearch["sort"]): readonly AppTemplate[] =>
  templates.toSorted(sort === "name" ? byName : (a, b) => b.installedCount - a.installedCount || byName(a, b));

export type Category = AppTemplate["categories"][number];
/** How many of each category there are, whatever category is chosen. */
export const countCategories = (all: readonly AppTemplate[], { category: _, ...search }: CatalogueSearch) => {
  const found = matching(all, search);
  const counts = new Map<Category, number>();
  for (const { categories } of found) for (const each of categories) counts.set(each, (counts.get(each) ?? 0) + 1);
  return { all: found.length, counts };
};

export const countFitting = (all: readonly AppTemplate[]): number => all.filter(canRun).length;
