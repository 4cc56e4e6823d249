// What the URL of this screen says.
import { given, type Search, textOf, textsOf } from "../../api/search.ts";

/** `since` is a length of time, such as `24h` or `7d`, or a date. */
export const readAuditSearch = (search: Search) =>
  given({
    ...textsOf(search, ["record", "actor", "action", "since"]),
    // A word without a key means the resource: most often somebody pastes an id.
    resource: textOf(search["resource"] ?? search["q"]),
  });
export type AuditSearch = ReturnType<typeof readAuditSearch>;
