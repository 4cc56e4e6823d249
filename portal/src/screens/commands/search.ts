// What the URL of this screen says.
import { given, oneOf, type Search, textsOf } from "../../api/search.ts";

export const SHOWS = ["open", "blocked", "ended", "all"] as const;

export const readCommandSearch = (search: Search) =>
  given({
    ...textsOf(search, ["command", "status", "type", "createdBy", "deviceId"]),
    show: oneOf(search["show"], SHOWS),
  });
export type CommandSearch = ReturnType<typeof readCommandSearch>;
