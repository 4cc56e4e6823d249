// What the URL of this screen says.
import { given, type Search, textOf } from "../../api/search.ts";

export const readPairSearch = (search: Search) =>
  given({
    code: textOf(search["code"]),
    /** The device that was approved and is being installed. */
    device: textOf(search["device"]),
    /** The enrollment token that is open. */
    token: textOf(search["token"]),
  });
export type PairSearch = ReturnType<typeof readPairSearch>;
