// What the URL of the catalogue says: its filters and its order.
import { given, oneOf, type Search, textsOf } from "../../api/search.ts";

/** Applications that some device can run, and those that none can. */
export const FITS = ["mine", "none"] as const;
export const SORTS = ["installed", "name"] as const;

export const readCatalogueSearch = (search: Search) =>
  given({
    // The screen knows the categories, so that the first one loads without them.
    ...textsOf(search, ["q", "category"]),
    fits: oneOf(search["fits"], FITS),
    available: oneOf(search["available"], ["yes", "no"]),
    sort: oneOf(search["sort"], SORTS),
  });
export type CatalogueSearch = ReturnType<typeof readCatalogueSearch>;
