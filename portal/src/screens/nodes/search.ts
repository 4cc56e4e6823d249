// What the URL of this screen says.
import { given, oneOf, type Search } from "../../api/search.ts";

export const TABS = ["nodes", "stuck", "jobs", "announcements", "impersonations"] as const;

export const readNodeSearch = (search: Search) =>
  given({
    tab: oneOf(search["tab"], TABS),
  });
export type NodeSearch = ReturnType<typeof readNodeSearch>;
