// What the URL of this screen says.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const TABS = ["overview", "apps", "commands", "metrics", "backups", "volumes", "network", "settings"] as const;
export type Tab = (typeof TABS)[number];

export const readOneDeviceSearch = (search: Search) =>
  given({
    tab: oneOf(search["tab"], TABS.slice(1)),
    command: textOf(search["command"]),
  });
export type OneDeviceSearch = ReturnType<typeof readOneDeviceSearch>;
