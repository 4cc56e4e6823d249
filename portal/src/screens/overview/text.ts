// The sentences of the overview.
import { numbers } from "../../ui/count.ts";

const percent = new Intl.NumberFormat(undefined, { style: "percent" });

export const text = {
  apps: { title: "Your apps", all: "All apps", open: (name: string) => `Open ${name}`, openWord: "Open" },
  title: "Overview",
  none: "Pair a device, and this page shows how your fleet is doing.",
  nothing: "No device is shared with you yet.",
  notPermitted: "Your role shows no devices. The places beside this page are yours.",
  pair: "Pair a device",
  number: (count: number) => numbers.format(count),
  share: (count: number, total: number) => (total === 0 ? "" : percent.format(count / total)),
  tiles: {
    all: (count: number) => (count === 1 ? "device" : "devices"),
    online: "online",
    offline: "offline",
    provisioning: "never connected",
    open: (count: number) => (count === 1 ? "open command" : "open commands"),
    alerts: (count: number) => (count === 1 ? "open alert" : "open alerts"),
    pastDeadline: (count: number) => (count === 1 ? "overdue command" : "overdue commands"),
  },
  states: { online: "online", offline: "offline", provisioning: "never connected" },
  devices: {
    title: "All devices",
    untagged: "untagged",
    without: (key: string) => `no ${key}`,
    firstOf: (shown: number) => `The ${numbers.format(shown)} most in need of a look are shown.`,
  },
  rate: { title: "Commands ended per second", span: "last 2 minutes", succeeded: "Succeeded", failed: "Failed" },
  offline: { title: "Offline for longest", all: "View all", none: "Every device that has ever connected is online.", noReason: "no reason given" },
  activity: {
    title: "Activity",
    none: "What happens to devices and commands appears here.",
    sampled: "Busy: every failure, some successes",
    pause: "Pause",
    resume: "Resume",
  },
} as const;
