// What the URL of this screen says.
import { given, type Search, textOf } from "../../api/search.ts";

export const readKeySearch = (search: Search) => given({ key: textOf(search["key"]) });
