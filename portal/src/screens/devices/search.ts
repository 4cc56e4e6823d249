// What the URL of the device list says: its filters, each as the API calls it.
import { given, oneOf, type Search, textOf } from "../../api/search.ts";

export const STATUSES = ["online", "offline", "provisioning"] as const;
const SORTS = ["status,name", "name", "-createdAt", "platform,name", "agentVersion,name", "lastSeen", "-lastSeen"] as const;

export const readDeviceSearch = (search: Search) =>
  given({
    q: textOf(search["q"]),
    status: oneOf(search["status"], STATUSES),
    sort: oneOf(search["sort"], SORTS),
    tag: textOf(search["tag"]),
    notTag: textOf(search["notTag"]),
    platform: textOf(search["platform"]),
    agentVersion: textOf(search["agentVersion"]),
    connectivity: oneOf(search["connectivity"], ["realtime", "polling", "none"]),
    seenBefore: textOf(search["seenBefore"]),
  });
export type DeviceSearch = ReturnType<typeof readDeviceSearch>;
