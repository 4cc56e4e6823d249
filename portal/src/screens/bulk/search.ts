// What the URLs of these screens say.
import { type Search, textsOf } from "../../api/search.ts";

// The screen knows the states, so that the first one loads without them.
export const readBulkSearch = (search: Search) => textsOf(search, ["items"]);
export type BulkSearch = ReturnType<typeof readBulkSearch>;
