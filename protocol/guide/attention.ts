// Guide to what needs attention.
import type { Guide } from "./guide.ts";
import { AT } from "./records.ts";

const rolloutId = "rlt_01J9ZQE2G4J6M8P0R2T4W6Y8A0";

export const attention: Guide<"attention"> = {
  list: {
    description:
      "Lists what needs somebody now, one line for each cause: devices that went offline together, apps in error, rollouts that stopped or wait for an approval, backups that failed, certificates that end, and open alerts on anything else. Only what the caller may see is in it. `action` says where to look, in the words of saved views.",
    output: {
      items: [
        {
          kind: "devices_offline",
          tone: "bad",
          count: 38,
          since: AT,
          subject: { kind: "tag", id: "site:porto", name: "site:porto" },
          names: ["till-1", "till-2", "till-3"],
          params: {},
          action: { place: "devices", id: null, search: "status=offline&tag=site%3Aporto" },
        },
        {
          kind: "rollout_approval",
          tone: "info",
          count: 1,
          since: AT,
          subject: { kind: "rollout", id: rolloutId, name: "agent 0.3.1" },
          names: ["agent 0.3.1"],
          params: { phase: 3, phases: 4, failed: 0, total: 412 },
          action: { place: "rollouts", id: rolloutId, search: "" },
        },
      ],
    },
  },
};
