// What the URL of this screen says.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const SHOWS = ["open", "blocked", "ended", "all"] as const;

export const readCommandSearch = (search: Search) =>
  given({
    command: textOf(search["command"]),
    status: textOf(search["status"]),
    type: textOf(search["type"]),
    createdBy: textOf(search["createdBy"]),
    deviceId: textOf(search["deviceId"]),
    show: oneOf(search["show"], SHOWS),
  });
export type CommandSearch = ReturnType<typeof readCommandSearch>;
