// What the URL of the catalogue says: its filters.
import { given, oneOf, type Search, textsOf } from "../../api/search.ts";

export const readCatalogueSearch = (search: Search) =>
  given({
    // The screen knows the categories, so that the first one loads without them.
    ...textsOf(search, ["q", "category"]),
    available: oneOf(search["available"], ["yes", "no"]),
  });
