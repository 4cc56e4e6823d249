// What the URL of this screen says.
import { given, type Search, textOf } from "../../api/search.ts";

/** `type` is one or more types or `group.*`, joined by commas; `since` is a length of time. */
export const readEventSearch = (search: Search) =>
  given({
    event: textOf(search["event"]),
    type: textOf(search["type"]),
    // A word without a key means the subject: most often somebody pastes an id.
    subject: textOf(search["subject"] ?? search["q"]),
    since: textOf(search["since"]),
  });
export type EventSearch = ReturnType<typeof readEventSearch>;
