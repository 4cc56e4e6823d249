// What the URL of this screen says.
import { given, type Search, textOf, textsOf } from "../../api/search.ts";

/** `type` is one or more types or `group.*`, joined by commas; `since` is a length of time. */
export const readEventSearch = (search: Search) =>
  given({
    ...textsOf(search, ["event", "type", "since"]),
    // A word without a key means the subject: most often somebody pastes an id.
    subject: textOf(search["subject"] ?? search["q"]),
  });
export type EventSearch = ReturnType<typeof readEventSearch>;
