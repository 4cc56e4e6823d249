// What the URL of one app says: the part that is shown, and the snapshot that is open.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const TABS = ["steps", "logs", "configuration", "secrets", "snapshots"] as const;

export const readOneAppSearch = (search: Search) => given({ tab: oneOf(search["tab"], TABS), snapshot: textOf(search["snapshot"]) });
