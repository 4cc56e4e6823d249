// What the URL of this screen says.
import { given, oneOf, type Search } from "../../api/search.ts";

export const readNodeSearch = (search: Search) =>
  given({
    tab: oneOf(search["tab"], ["nodes", "stuck", "jobs"]),
  });
export type NodeSearch = ReturnType<typeof readNodeSearch>;
