// What the URL of this screen says.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const TABS = ["members", "invites", "roles"] as const;
export type Tab = (typeof TABS)[number];

export const readMemberSearch = (search: Search) =>
  given({
    tab: oneOf(search["tab"], TABS) ?? "members",
    /** The id of the member, invite or role that is open. */
    open: textOf(search["open"]),
  });
export type MemberSearch = ReturnType<typeof readMemberSearch>;
