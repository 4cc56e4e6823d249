// What the URL of this screen says.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const readMemberSearch = (search: Search) =>
  given({
    tab: oneOf(search["tab"], ["members", "invites", "roles"]),
    q: textOf(search["q"]),
  });
export type MemberSearch = ReturnType<typeof readMemberSearch>;
