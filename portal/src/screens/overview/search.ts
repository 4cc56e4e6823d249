// What the URL of the overview says.
import { type Search, textsOf } from "../../api/search.ts";

export const readOverviewSearch = (search: Search) => textsOf(search, ["group"]);
export type OverviewSearch = ReturnType<typeof readOverviewSearch>;
