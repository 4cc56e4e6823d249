// What the URL of this screen says.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const readOneDeviceSearch = (search: Search) =>
  given({
    tab: oneOf(search["tab"], ["commands", "apps", "metrics", "settings"]),
    command: textOf(search["command"]),
  });
export type OneDeviceSearch = ReturnType<typeof readOneDeviceSearch>;
