// What the URL of this screen says.
import { given, type Search, textOf } from "../../api/search.ts";

export const readAuditSearch = (search: Search) =>
  given({
    record: textOf(search["record"]),
    actor: textOf(search["actor"]),
    action: textOf(search["action"]),
    resource: textOf(search["resource"]),
    since: textOf(search["since"]),
  });
export type AuditSearch = ReturnType<typeof readAuditSearch>;
