// Pairing, explained.
import type { Guide } from "./guide.ts";
import { AT, CODE, connect, enrollmentToken, FINGERPRINT, IDS, LATER, progress } from "./records.ts";

const { agentId, deploymentId, deviceId, tenantId, tokenId } = IDS;
const activated = {
  device_id: deviceId,
  agent_id: agentId,
  tenant_id: tenantId,
  shared_secret: "c2VjcmV0LW9mLXRoaXMtZGV2aWNlLW9ubHk",
  fingerprint: FINGERPRINT,
  connect,
};

export const pairing: Guide<"pairing"> = {
  initiate: {
    description:
      "The first step of pairing, made by the device. It shows the code to a person, who has 15 minutes to confirm it in the portal. Asking again with the same fingerprint replaces the code.",
    input: { device_fingerprint: FINGERPRINT, device_name: "nuc-attic", platform: "linux" },
    output: { pairing_code: CODE, expires_at: AT, portal_url: "https://portal.example.org/pair" },
  },
  prepareActivation: {
    description:
      "The second step, made by a person in the portal: it claims the code for a tenant and returns the activation token, which is good for 5 minutes. Compare `device` with the machine in front of you before you go on.",
    input: { pairing_code: CODE, tenant_id: tenantId },
    output: {
      activation_token: "act_5Zk1mQ9rT3xW7yB2cD4fG6hJ",
      expires_at: AT,
      device: { fingerprint: FINGERPRINT, name: "nuc-attic", platform: "linux", initiatedFrom: "203.0.113.7", initiatedAt: AT },
    },
  },
  activate: {
    description:
      "The third step: exchanges code and activation token for the device's identity. `shared_secret` is shown this once; the device signs every later request with it.",
    input: { pairing_code: CODE, activation_token: "act_5Zk1mQ9rT3xW7yB2cD4fG6hJ", user_email: "ana@example.org" },
    output: activated,
  },
  status: {
    input: { device_fingerprint: FINGERPRINT, pairing_code: CODE },
    output: { status: "activated", tenant_id: tenantId, agent_id: agentId, device_id: deviceId, pollAfterSeconds: 5 },
  },
  autoActivate: {
    description:
      "Pairs without a person: an install script brings an enrollment token that somebody created beforehand. The code comes from `POST /pairing/initiate`.",
    input: { enrollment_token: "ent_secret_8Qm2Xv7K4dR6tW1y", pairing_code: CODE },
    output: activated,
  },
  updateProgress: {
    description: "Before the device has an identity, its installer reports by pairing code. Steps go forward; `failed` may follow any of them.",
    input: { pairingCode: CODE, currentStep: "docker_install", stepStatus: "in_progress" },
    output: progress,
  },
  progress: {
    description: "What the installer has reported so far, for the portal to show while somebody waits.",
    input: { pairingCode: CODE },
    output: progress,
  },
  updateDeviceProgress: {
    description: "Once it is paired, the agent reports the remaining steps under its own id and signature.",
    input: { deviceId, currentStep: "completed", stepStatus: "completed" },
    output: { currentStep: "completed", steps: { docker_install: "completed", enrolling: "completed" }, completedAt: LATER },
  },
  deviceProgress: {
    description: "The same record as by pairing code, found by the device that came out of it.",
    input: { deviceId },
    output: progress,
  },
  createToken: {
    description:
      "For machines that are installed without a person. `token` is shown this once; `installCommand` is the line to run on the machine. A token is good for `maxUses` devices until it expires.",
    input: { name: "install script of the Lisbon site", expiresInSeconds: 86_400, maxUses: 20, tags: ["site:lisbon"] },
    output: {
      ...enrollmentToken,
      deploymentId,
      token: "ent_secret_8Qm2Xv7K4dR6tW1y",
      installCommand: "curl -fsSL https://gateway.example.org/install.sh | sh -s -- --token ent_secret_8Qm2Xv7K4dR6tW1y",
    },
  },
  listTokens: {
    description: "The tokens themselves are not shown again, only what became of them.",
    input: { page: 1, pageSize: 20 },
    output: { items: [enrollmentToken], total: 1 },
  },
  revokeToken: {
    description: "The token pairs nothing more. Devices that it has paired keep their identity.",
    input: { tokenId },
  },
};
