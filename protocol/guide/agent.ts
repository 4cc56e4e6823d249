// Guide to an agent's operations on its own device.
import type { Guide } from "./guide.ts";
import { AT, IDS } from "./records.ts";

const { agentId, deploymentId, deviceId, tenantId } = IDS;

export const agent: Guide<"agent"> = {
  me: {
    description: "Call it to check that the agent's secret works, and to correct its clock by `serverTime`.",
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
    description: "Tells the agent how often to send heartbeats and to poll, and where to open its socket. Read it at start.",
    output: {
      heartbeatSeconds: 30,
      pollSeconds: 30,
      socketUrl: "wss://gateway.example.org/v1/agent/connect",
      subprotocol: "mooring-agent.v1",
      features: ["journal.v1", "inflight.v1", "cancel.v1", "handoff.v1", "progress.v1", "signature.v2"],
      maintenance: { enabled: false, until: null },
      logLevel: "info",
      version: "3f1a9c0d72b84e65",
    },
  },
  reportInventory: {
    description: "Stores what the machine is, for people who look at the device. You can send fields of your own beside the known ones.",
    input: { hostname: "nuc-attic", platform: "linux", arch: "x64", osVersion: "Debian 13", agentVersion: "1.4.0" },
    output: { deviceId, updatedAt: AT },
  },
};
