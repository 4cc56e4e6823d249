// What the URL of the destinations says: which one is open.
import { type Search, textsOf } from "../../api/search.ts";

export const readDestinationSearch = (search: Search) => textsOf(search, ["open"]);
