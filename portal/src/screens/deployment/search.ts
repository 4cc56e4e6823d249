// What the URL of one deployment says: the part that is shown, and the revision that is open.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const TABS = ["steps", "logs", "change", "revisions"] as const;

export const readOneDeploymentSearch = (search: Search) => given({ tab: oneOf(search["tab"], TABS), revision: textOf(search["revision"]) });
