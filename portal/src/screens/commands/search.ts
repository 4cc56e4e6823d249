// What the URL of this screen says.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const readCommandSearch = (search: Search) =>
  given({
    command: textOf(search["command"]),
    status: textOf(search["status"]),
    type: textOf(search["type"]),
    createdBy: textOf(search["createdBy"]),
    show: oneOf(search["show"], ["open", "blocked", "ended", "all"]),
  });
export type CommandSearch = ReturnType<typeof readCommandSearch>;
