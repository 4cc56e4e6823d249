// Guide to an agent's operations on its own device.
import type { Guide } from "./guide.ts";
import { AT, IDS, LOG_LINE } from "./records.ts";

const { agentId, appId, deploymentId, deviceId, tenantId } = IDS;

const desired = {
  appId,
  deploymentId,
  name: "Key-value store",
  template: "key-value",
  templateVersion: "1.0.0",
  revision: 1,
  state: "running",
  keepVolumes: false,
  spec: {
    kind: "process",
    program: "key-value",
    environment: { MAX_KEYS: { config: "maxKeys" }, KV_TOKEN: { secret: "KV_TOKEN" } },
    ports: [{ name: "http", protocol: "tcp", config: "port", variable: "PORT" }],
    volumes: [{ name: "data", variable: "DATA_DIR" }],
    health: { http: { port: "http", path: "/health" }, intervalSeconds: 5, timeoutSeconds: 5, retries: 3, startSeconds: 15 },
    stopSeconds: 10,
  },
  config: { port: 8_701, maxKeys: 10_000 },
  secretsVersion: 1,
};
const reported = {
  appId,
  revision: 1,
  state: "running",
  health: "healthy",
  failure: null,
  restarts: 0,
  cpuPercent: 0.4,
  memoryBytes: 52_428_800,
  ports: { http: 8_701 },
};

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
  desiredState: {
    description:
      "Everything that the device should run. Read it at start, and when an answer or a command names a higher version; `If-None-Match` spares the body. Secrets travel apart: `GET /apps/{appId}/secrets`.",
    output: {
      version: 7,
      hash: "9a3f1c0d72b84e65b1f0a4c2d8e6f713",
      apps: [desired],
      tunnels: [{ tunnelId: "tun_01J9ZQ6B8D0F2H4K6M8P0R2T4W", service: "http://127.0.0.1:3000" }],
      carrier: { url: "https://edge.example.org/v1/agent/tunnel" },
      mesh: {
        url: "https://edge.example.org/v1/agent/mesh",
        routes: [
          {
            routeId: "mrt_01J9ZQ6B8D0F2H4K6M8P0R2T4W",
            role: "consumer",
            kind: "subnet",
            network: "192.168.10.0/24",
            domains: [],
            host: null,
            port: null,
            allowPublic: false,
            listenPort: null,
          },
        ],
      },
    },
  },
  reportState: {
    description:
      "Reports every app of the device, at start and whenever one changes. A report of an older version never undoes a newer change. Remove the apps in `ignored`.",
    input: { version: 7, apps: [reported], tunnels: [{ tunnelId: "tun_01J9ZQ6B8D0F2H4K6M8P0R2T4W", state: "up" }] },
    output: { desiredVersion: 7, ignored: [], unusable: [], refused: [] },
  },
  sendLogs: {
    description:
      "Answers `app.logs` and `app.logs.follow`: the lines of the log in chunks of at most 256 KiB, with the app's secrets masked. Send a chunk at least every 15 seconds, also one without lines, and stop when the answer says `watched: false`. A line longer than 16 KiB is cut. Send a chunk again, with the same `n`, if you got no answer. A line that is not understood answers 400 with its number.",
    input: { chunk: `${JSON.stringify({ followId: "flw_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R", n: 1 })}\n${JSON.stringify(LOG_LINE)}\n` },
    output: { watched: true },
  },
  reportEvents: {
    description:
      "Each becomes an event `device.reported`, which webhooks deliver and alert rules can count. With an `Idempotency-Key` you can repeat the call safely.",
    input: { events: [{ type: "disk.smart_failure", severity: "critical", timestamp: AT, details: { disk: "/dev/sda" } }] },
    output: { accepted: 1 },
  },
  latestUpdate: {
    description:
      "`release` is null if the operator offers none. `signed` is the text that the publisher signed: verify `release.signature` over its bytes with the key that you were installed with, and read the release from it. Take it only if it is newer than you are and the package has its size and sum. The gateway never signs: it serves what the publisher signed, with the fields that it does not know.",
    input: { platform: "linux", arch: "x64", channel: "stable" },
    output: {
      release: {
        version: "0.3.0",
        platform: "any",
        arch: "any",
        channel: "stable",
        url: "/v1/agent/updates/packages/mooring-agent-0.3.0.package.json",
        sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        size: 1_482_113,
        mandatory: false,
        minVersion: null,
        signature: "kq3sQnWc0mC7m0D3vX1eJcQd8q0b3r6h2u5yV9xT4aLfZ7gN1pKsB8wEjR6tYoUi2HdMvXzCbQ5nP3lA7fGhAQ",
      },
      signed:
        '{"arch":"any","channel":"stable","mandatory":false,"minVersion":null,"platform":"any","sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","size":1482113,"url":"/v1/agent/updates/packages/mooring-agent-0.3.0.package.json","version":"0.3.0"}',
    },
  },
  updatePackage: {
    description: "The file to which a release's `url` leads: a JSON object with the text of each file of the agent, by path.",
    input: { file: "mooring-agent-0.3.0.package.json" },
    output: '{"package.json":"{\\"version\\":\\"0.3.0\\"}"}',
  },
  reportInventory: {
    description: "Stores what the machine is, for people who look at the device. You can send fields of your own beside the known ones.",
    input: {
      hostname: "nuc-attic",
      platform: "linux",
      arch: "x64",
      osVersion: "Debian 13",
      agentVersion: "1.4.0",
      model: "NUC 13 Pro",
      hardware: { cpuCores: 8, memoryBytes: 17_179_869_184 },
      runtimes: ["compose"],
    },
    output: { deviceId, updatedAt: AT },
  },
};
