// What the URL of an app says: the part that is shown, and the revision or the snapshot that is open. That of a deployment says the same.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const TABS = ["overview", "configuration", "logs", "history", "backups", "secrets"] as const;

/** Tabs that people have kept addresses of. */
const FORMER: ReadonlyMap<unknown, string> = new Map([
  ["steps", "history"],
  ["snapshots", "history"],
  ["revisions", "history"],
  ["change", "configuration"],
]);

export const readOneAppSearch = ({ tab, revision, snapshot }: Search) =>
  given({ tab: oneOf(FORMER.get(tab) ?? tab, TABS), revision: textOf(revision), snapshot: textOf(snapshot) });
