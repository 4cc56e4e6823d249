// The records that all examples share: one tenant, one device, one command.
import { ACTOR_FIELDS } from "../records/actor.ts";

export const AT = "2026-11-21T09:30:00.000Z";
export const LATER = "2026-11-21T09:30:02.000Z";
export const TOMORROW = "2026-11-22T09:30:00.000Z";

export const IDS = {
  agentId: "agt_01J9ZQ4F0X7A1B3C5D7E9G1H3J",
  appId: "app_01J9ZQ5H2K4M6P8R0T3W5Y7A9C",
  commandId: "cmd_01J9ZQ7C5V0B8N3M6K2H4G1F9D",
  deploymentId: "dep_01J9ZQ2K7R4T6W8Y0A3C5E7G9J",
  deviceId: "dev_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R",
  keyId: "key_01J9ZQ8M4P2R6T8W0Y3A5C7E9G",
  sessionId: "ses_01J9ZQC6W8Y0A2C4E6G8J0M2P4",
  requestId: "req_01J9ZQB2N4Q6S8V0X1Z3C5E7G9",
  tenantId: "ten_01J9ZQ1B3D5F7H9K0M2P4R6T8W",
  tokenId: "ent_01J9ZQ9V1X3Z5B7D9F0H2K4M6P",
  nodeId: "node-a",
  userId: "auth0|66f1c2",
} as const;

export const actor = { kind: "user", id: `user:${IDS.userId}`, name: "ada@example.com", deleted: false };

/** The example as a read shows it: with the actor beside each id of one. */
export const shownWithActors = <R extends object>(record: R) => ({
  ...record,
  ...Object.fromEntries(
    Object.entries(record).flatMap(([name, id]) => {
      const field = new Map<string, string>(Object.entries(ACTOR_FIELDS)).get(name);
      return field === undefined ? [] : [[field, id === null ? null : { ...actor, id }]];
    }),
  ),
});

const { agentId, commandId, deploymentId, deviceId, keyId, tenantId, tokenId, nodeId, userId } = IDS;

export const FINGERPRINT = "sha256:9f86d081884c7d65";
export const CODE = "K7QM-2XVD";

/** Tells a new agent where to open its socket. */
export const connect = { url: "wss://gateway.example.org/v1/agent/connect", coldStartMs: 30_000 };

export const device = {
  deviceId,
  tenantId,
  deploymentId,
  agentId,
  fingerprint: FINGERPRINT,
  status: "online",
  createdAt: AT,
  updatedAt: LATER,
  version: 3,
  lastSeen: LATER,
  lastHeartbeatAt: LATER,
  name: "attic",
  hostname: "nuc-attic",
  platform: "linux",
  arch: "x64",
  agentVersion: "1.4.0",
  model: "NUC 13 Pro",
  hardware: { cpuCores: 8, memoryBytes: 17_179_869_184, diskBytes: 512_110_190_592 },
  runtimes: ["compose"],
  tags: ["site:home"],
  metrics: { cpu: 12.5, memory: 40, disk: 70 },
  addresses: [{ kind: "lan", address: "192.168.1.20" }],
  connection: { connectivity: "realtime", nodeId, since: AT, epoch: 7 },
};

export const queuedCommand = {
  commandId,
  tenantId,
  deviceId,
  type: "restart-app",
  payload: { appId: "app_01J9ZQ5H2K4M6P8R0T3W5Y7A9C" },
  requiresAck: true,
  issuedAt: AT,
  status: "queued",
  lane: "app_01J9ZQ5H2K4M6P8R0T3W5Y7A9C",
  priority: 5,
  attempts: 0,
  maxAttempts: 10,
  notBefore: AT,
  expiresAt: TOMORROW,
  deadlineAt: TOMORROW,
  executionTimeoutSeconds: 300,
  sentAt: null,
  acknowledgedAt: null,
  startedAt: null,
  finishedAt: null,
  ack: null,
  outputTruncated: false,
  progress: null,
  failureCode: null,
  cancelRequestedAt: null,
  late: false,
  createdBy: `user:${userId}`,
  traceparent: null,
};
export const succeeded = {
  ...queuedCommand,
  status: "succeeded",
  attempts: 1,
  deadlineAt: null,
  sentAt: AT,
  acknowledgedAt: AT,
  startedAt: AT,
  finishedAt: LATER,
  ack: { status: "succeeded", output: { restartedInMs: 1_840 }, at: LATER },
};

export const tenant = {
  tenantId,
  name: "Acme",
  slug: "acme",
  plan: "starter",
  status: "active",
  createdAt: AT,
  updatedAt: AT,
  version: 1,
  durableObjectId: tenantId,
  deploymentCount: 1,
  appCount: 0,
  tunnelCount: 0,
};

export const apiKey = {
  keyId,
  tenantId,
  name: "backup script",
  role: "operator",
  prefix: "svk_",
  last4: "x7Qd",
  status: "active",
  scopes: [],
  selector: null,
  ipAllowlist: ["203.0.113.0/24"],
  createdBy: userId,
  createdAt: AT,
  updatedAt: AT,
  version: 1,
  expiresAt: "2027-02-19T09:30:00.000Z",
  lastUsedAt: null,
  lastUsedIp: null,
};

export const enrollmentToken = {
  tokenId,
  tenantId,
  name: "install script of the Lisbon site",
  maxUses: 20,
  uses: 0,
  tags: ["site:lisbon"],
  deploymentId,
  allowRepair: false,
  approval: "none" as const,
  createdBy: `user:${userId}`,
  expiresAt: TOMORROW,
  createdAt: AT,
};

export const progress = {
  currentStep: "docker_install",
  steps: { preflight_check: "completed", docker_install: "in_progress" },
};

export const LOG_LINE = { at: AT, stream: "stdout", text: "listening on port 8701" };
