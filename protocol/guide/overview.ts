// Guide to the overview.
import type { Guide } from "./guide.ts";
import { AT, device, IDS } from "./records.ts";

const line = (value: number) => Array.from({ length: 48 }, () => value);

export const overview: Guide<"overview"> = {
  get: {
    description:
      "Returns what a start page shows beside `GET /attention`: figures with a line of the last day, groups of devices with the worst first, changes under way, what happened last, and which steps of the set-up are done. Counts and groups are of the devices that the caller sees.",
    input: { groupBy: "site" },
    output: {
      devices: { total: 412, online: 374, offline: 38, provisioning: 0 },
      apps: { total: 1_204, error: 2 },
      commands: { open: 12, overdue: 0 },
      day: {
        until: AT,
        stepSeconds: 1_800,
        online: line(374),
        offline: line(38),
        appsInError: line(2),
        commands: line(900),
        freshBackups: line(1_102),
        lateBackups: line(9),
      },
      groups: {
        key: "site",
        keys: ["site", "model"],
        items: [{ tag: "site:porto", devices: 412, online: 374, offline: 38, provisioning: 0, offlineSince: { first: AT, last: AT } }],
        total: 1,
      },
      changes: [
        {
          kind: "rollout",
          id: "rlt_01J9ZQE2G4J6M8P0R2T4W6Y8A0",
          name: "edge-player 4.2.0",
          status: "paused",
          phase: 2,
          phases: 4,
          done: 51,
          failed: 6,
          total: 521,
        },
      ],
      activity: [
        { type: "device.offline", count: 38, at: AT, subject: null, tag: "site:porto", data: { deviceId: IDS.deviceId, status: "offline" } },
        {
          type: "device.online",
          count: 1,
          at: AT,
          subject: { kind: "device", id: IDS.deviceId, name: device.name },
          tag: null,
          data: { deviceId: IDS.deviceId, status: "online" },
        },
      ],
      setup: { done: ["certificate", "device", "app"], hidden: false },
    },
  },
};
