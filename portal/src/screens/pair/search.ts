// What the URL of this screen says.
import { given, type Search, textOf } from "../../api/search.ts";

export const readPairSearch = (search: Search) =>
  given({
    code: textOf(search["code"]),
  });
export type PairSearch = ReturnType<typeof readPairSearch>;
