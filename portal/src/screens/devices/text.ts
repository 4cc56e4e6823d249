// The sentences of the list of devices.
import { counted } from "../../ui/count.ts";
export const text = {
  title: "Devices",
  filter: "Filter devices",
  total: (count: number) => counted(count, "device"),
  pair: "Pair a device",
  noMatch: "No device matches these filters.",
  none: "Devices appear here once they are paired.",
  links: { realtime: "socket", polling: "polling", none: "none" },
  sorts: {
    "status,name": "trouble first",
    name: "name",
    "-createdAt": "newest first",
    "platform,name": "platform",
    "agentVersion,name": "agent version",
    lastSeen: "longest unseen",
    "-lastSeen": "seen last",
  },
} as const;
