// The sentences of the list of devices.
import { counted } from "../../ui/count.ts";
export const text = {
  title: "Devices",
  filter: "Filter devices",
  total: (count: number) => counted(count, "device"),
  pair: "Pair a device",
  noMatch: "No device matches these filters.",
  none: "Devices appear here once they are paired.",
  states: {
    online: "online",
    offline: "offline",
    provisioning: "never connected",
    maintenance: "maintenance",
    appInError: "app in error",
    polling: "polling",
  },
  until: (at: string) => `until ${at}`,
  inError: (count: number) => `${count} in error`,
  sort: "Order",
  links: { realtime: "socket", polling: "polling", none: "none" },
  sorts: {
    "status,name": "Worst first",
    name: "By name",
    "-createdAt": "Newest first",
    "platform,name": "By platform",
    "agentVersion,name": "By agent version",
    lastSeen: "Longest unseen",
    "-lastSeen": "Seen last",
  },
} as const;
