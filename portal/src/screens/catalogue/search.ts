// What the URL of the catalogue says: its filters.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const readCatalogueSearch = (search: Search) =>
  given({
    q: textOf(search["q"]),
    // The screen knows the categories, so that the first one loads without them.
    category: textOf(search["category"]),
    available: oneOf(search["available"], ["yes", "no"]),
  });
