// What the URL of this screen says.
import { type Search, textsOf } from "../../api/search.ts";

export const readKeySearch = (search: Search) => textsOf(search, ["key"]);
