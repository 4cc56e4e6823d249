// What the URL of this screen says.
import { type Search, textsOf } from "../../api/search.ts";

export const readInviteSearch = (search: Search) => textsOf(search, ["token"]);
export type InviteSearch = ReturnType<typeof readInviteSearch>;
