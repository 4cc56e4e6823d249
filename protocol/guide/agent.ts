// What agents ask about themselves, explained.
import type { Guide } from "./guide.ts";
import { AT, IDS } from "./records.ts";

const { agentId, deploymentId, deviceId, tenantId } = IDS;

export const agent: Guide<"agent"> = {
  me: {
    description: "Proves that the agent's secret works, and gives it the time to correct its clock by.",
    output: {
      agentId,
      deviceId,
      tenantId,
      deploymentId,
      serverTime: AT,
      limits: { requestsPerMinute: 100, heartbeatsPerMinute: 60, maxOutputBytes: 65_536 },
    },
  },
  config: {
    description: "Read it at start and whenever `version` changes.",
    output: {
      heartbeatSeconds: 30,
      pollSeconds: 30,
      socketUrl: "wss://gateway.example.org/v1/agent/connect",
      subprotocol: "mooring-agent.v1",
      features: ["poll", "progress"],
      maintenance: { enabled: false, until: null },
      logLevel: "info",
      version: "3f1a9c",
    },
  },
  reportInventory: {
    description: "Shown with the device in the portal. Fields of your own are welcome beside the known ones.",
    input: { hostname: "nuc-attic", platform: "linux", arch: "x64", osVersion: "Debian 13", agentVersion: "1.4.0" },
    output: { deviceId, updatedAt: AT },
  },
};
