// What the URL of this screen says.
import { given, type Search, textOf } from "../../api/search.ts";

/** `since` is a length of time, such as `24h` or `7d`, or a date. */
export const readAuditSearch = (search: Search) =>
  given({
    record: textOf(search["record"]),
    actor: textOf(search["actor"]),
    action: textOf(search["action"]),
    // A word without a key means the resource: most often somebody pastes an id.
    resource: textOf(search["resource"] ?? search["q"]),
    since: textOf(search["since"]),
  });
export type AuditSearch = ReturnType<typeof readAuditSearch>;
