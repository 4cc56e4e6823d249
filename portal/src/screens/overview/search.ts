// What the URL of the overview says.
import { given, type Search, textOf } from "../../api/search.ts";

export const readOverviewSearch = (search: Search) => given({ group: textOf(search["group"]) });
export type OverviewSearch = ReturnType<typeof readOverviewSearch>;
