// What the URL of this screen says.
import { given, type Search, textsOf } from "../../api/search.ts";

export const readPairSearch = (search: Search) =>
  given({
    /** The device that was approved and is being installed. */
    /** The enrollment token that is open. */
    ...textsOf(search, ["code", "device", "token"]),
  });
export type PairSearch = ReturnType<typeof readPairSearch>;
