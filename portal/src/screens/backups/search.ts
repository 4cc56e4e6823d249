// What the URL of the list of backups says: its filters. That of one says whether its restore is open.
import { given, type Search, textsOf } from "../../api/search.ts";

/** The screen knows which states and orders there are, so that the first one loads without them. */
export const readBackupSearch = (search: Search) => textsOf(search, ["q", "status", "trigger", "appId", "deviceId", "policyId", "destinationId", "sort"]);

export const readOneBackupSearch = ({ restore }: Search) => given({ restore: restore === true ? true : undefined });
