// What the URLs of these screens say. The page reads its tab itself: every first screen loads this file.
import { type Search, textsOf } from "../../api/search.ts";

export const readRolloutSearch = (search: Search) => textsOf(search, ["tab"]);
export type RolloutSearch = ReturnType<typeof readRolloutSearch>;
