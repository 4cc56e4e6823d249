// Guide to pairing.
import type { Guide } from "./guide.ts";
import { AT, CODE, connect, enrollmentToken, FINGERPRINT, IDS, LATER, progress, shownWithActors, TOMORROW } from "./records.ts";

const { agentId, deploymentId, deviceId, tenantId, tokenId } = IDS;
const machine = { fingerprint: FINGERPRINT, name: "nuc-attic", platform: "linux", initiatedFrom: "203.0.113.7", initiatedAt: AT };
const commandsWith = (options: string, variables: string) => ({
  linux: `curl -fsSL https://gateway.example.org/install.sh | sudo sh${options}`,
  docker: `curl -fsSL https://gateway.example.org/install.sh | sudo sh${options === "" ? " -s --" : options} --host compose`,
  ownAgent: `MOORING_URL=https://gateway.example.org${variables}`,
});
const withToken = commandsWith(" -s -- --token ent_secret_8Qm2Xv7K4dR6tW1y", "\nMOORING_ENROLLMENT_TOKEN=ent_secret_8Qm2Xv7K4dR6tW1y");
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
      "The first step of pairing. The device requests a code and shows it to a person, who has 15 minutes to confirm it in the portal. A new request with the same fingerprint replaces the code.",
    input: { device_fingerprint: FINGERPRINT, device_name: "nuc-attic", platform: "linux" },
    output: {
      pairing_code: CODE,
      expires_at: AT,
      portal_url: "https://portal.example.org/pair",
      pollToken: "Zk1mQ9rT3xW7yB2cD4fG6hJ5Zk1mQ9rT3xW7yB2cD4f",
      comparison: "418 302",
    },
  },
  requests: {
    description:
      "The machines that wait for the tenant's people: those that asked with a token with `approval: required`, and those whose code somebody of the tenant has looked up. Machines that nobody has looked up belong to no tenant, so no list has them. Live views and webhooks learn of a new one by the event `pairing.requested`.",
    input: { page: 1, pageSize: 20 },
    output: { items: [{ requestId: "par_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R", tokenId, device: machine, comparison: "418 302", expiresAt: TOMORROW }], total: 1 },
  },
  lookup: {
    description:
      "Shows a person which machine requested the code, and claims nothing; from then on `GET /pairing/requests` lists it, too. Compare `comparison` with the digits on the machine, then approve or reject. A wrong code counts as a guess.",
    input: { code: CODE },
    output: {
      device: machine,
      comparison: "418 302",
      ageSeconds: 40,
      expiresAt: TOMORROW,
    },
  },
  approve: {
    description:
      "Makes the machine a device of the tenant; the machine then fetches its identity with `POST /pairing/collect` and nobody carries a token. A machine that asked with an enrollment token takes one of its uses now, and gets its tags and deployment; if none is left, the response is 409 `ENROLLMENT_TOKEN_EXHAUSTED`. If the tenant already has a device with this machine's fingerprint, the response is 409 `DEVICE_ALREADY_PAIRED`, unless `replaces` names that device: then this machine takes over its identity and the agent that uses it now is locked out.",
    input: { code: CODE, name: "attic", tags: ["site:home"] },
    output: { deviceId, name: "attic", fingerprint: FINGERPRINT, collectUntil: TOMORROW },
  },
  reject: { description: "Ends the pairing: the machine learns that it was rejected, and nobody can use the code any more.", input: { code: CODE } },
  collect: {
    description:
      "The machine polls this after `initiate`, every `pollAfterSeconds`, with its code, its fingerprint and the token that only it knows. Once a person has approved it, the response contains `identity`, the same record that `activate` returns. If the response is lost, repeat the call: for 5 minutes, and until the identity is first used, it returns the same identity. `activated` without `identity` means that the time to collect it is over; request a new code.",
    input: { pairing_code: CODE, device_fingerprint: FINGERPRINT, pollToken: "Zk1mQ9rT3xW7yB2cD4fG6hJ5Zk1mQ9rT3xW7yB2cD4f" },
    output: { status: "activated", pollAfterSeconds: 6, identity: activated },
  },
  prepareActivation: {
    input: { pairing_code: CODE, tenant_id: tenantId },
    output: {
      activation_token: "act_5Zk1mQ9rT3xW7yB2cD4fG6hJ",
      expires_at: AT,
      device: machine,
    },
  },
  activate: {
    description:
      "The third step: the device exchanges the code and the activation token for its identity. The response is the only one that contains `shared_secret`; the device signs every later request with it.",
    input: { pairing_code: CODE, activation_token: "act_5Zk1mQ9rT3xW7yB2cD4fG6hJ", user_email: "ana@example.org" },
    output: activated,
  },
  status: {
    input: { device_fingerprint: FINGERPRINT, pairing_code: CODE },
    output: { status: "activated", tenant_id: tenantId, agent_id: agentId, device_id: deviceId, pollAfterSeconds: 5 },
  },
  autoActivate: {
    input: { enrollment_token: "ent_secret_8Qm2Xv7K4dR6tW1y", pairing_code: CODE },
    output: activated,
  },
  updateProgress: {
    description: "The installer reports its steps by pairing code until the device has an identity. Steps only move forward; `failed` may follow any step.",
    input: { pairingCode: CODE, currentStep: "docker_install", stepStatus: "in_progress" },
    output: progress,
  },
  progress: {
    description: "Returns what the installer has reported so far. A portal can show it while somebody waits.",
    input: { pairingCode: CODE },
    output: progress,
  },
  updateDeviceProgress: {
    description: "After pairing, the agent reports the remaining steps with its own id and signature.",
    input: { deviceId, currentStep: "completed", stepStatus: "completed" },
    output: { currentStep: "completed", steps: { docker_install: "completed", enrolling: "completed" }, completedAt: LATER },
  },
  deviceProgress: {
    description: "Returns the same record as the call by pairing code, found by the device that was paired.",
    input: { deviceId },
    output: progress,
  },
  installCommand: {
    description: "The lines for a machine at which somebody sits: each installs the agent, shows a pairing code, and waits until a person approves it.",
    input: {},
    output: { command: commandsWith("", "").linux, commands: commandsWith("", "") },
  },
  createToken: {
    description:
      "For machines that are installed without a person. The response is the only one that contains `token`; run `installCommand` on the machine. A token pairs up to `maxUses` devices until it expires. With `approval: required` each of them waits for a person first (`GET /pairing/requests`), and its use counts when it is approved.",
    input: { name: "install script of the Lisbon site", expiresInSeconds: 86_400, maxUses: 20, tags: ["site:lisbon"] },
    output: {
      ...enrollmentToken,
      deploymentId,
      token: "ent_secret_8Qm2Xv7K4dR6tW1y",
      installCommand: withToken.linux,
      commands: withToken,
    },
  },
  listTokens: {
    description: "Lists the tenant's tokens and their uses, without the tokens themselves.",
    input: { page: 1, pageSize: 20 },
    output: { items: [shownWithActors(enrollmentToken)], total: 1 },
  },
  revokeToken: {
    description: "Invalidates the token. Devices that it has paired keep their identity, and machines that wait with it for approval wait no more.",
    input: { tokenId },
  },
};
