// What the URL of this screen says.
import { given, type Search, textOf } from "../../api/search.ts";

export const readInviteSearch = (search: Search) =>
  given({
    token: textOf(search["token"]),
  });
export type InviteSearch = ReturnType<typeof readInviteSearch>;
