// What the URL of the device list says: its filters, each as the API calls it.
import { given, oneOf, type Search, textsOf } from "../../api/search.ts";

export const STATUSES = ["online", "offline", "provisioning"] as const;
export const SORTS = ["status,name", "name", "-createdAt", "platform,name", "agentVersion,name", "lastSeen", "-lastSeen"] as const;

export const readDeviceSearch = (search: Search) =>
  given({
    ...textsOf(search, ["q", "tag", "notTag", "platform", "agentVersion", "seenBefore"]),
    status: oneOf(search["status"], STATUSES),
    sort: oneOf(search["sort"], SORTS),
    connectivity: oneOf(search["connectivity"], ["realtime", "polling", "none"]),
  });
export type DeviceSearch = ReturnType<typeof readDeviceSearch>;
