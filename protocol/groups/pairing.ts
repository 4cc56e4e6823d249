// Pairing gives a device its identity and secret; enrollment reports how its installation proceeds. The interface wants snake_case here.
import { z } from "zod";
import { Tag } from "../kit/device-selector.ts";
import { event } from "../kit/event.ts";
import { AgentId, DeviceId, EnrollmentTokenId, PairingRequestId, ref, TenantId } from "../kit/ids.ts";
import { group, mutation, query } from "../kit/operation.ts";
import { listQuery, paged } from "../kit/page.ts";
import { named } from "../records/actor.ts";
import { EnrollmentProgress, EnrollmentStep, InstallCommand, InstallCommands, progressUpdate } from "../records/devices/enrollment.ts";
import {
  Code,
  Comparison,
  EnrollmentToken,
  Fingerprint,
  PAIRING_STATUSES,
  PairingActivateResponse,
  RequestingMachine,
  TokenApproval,
} from "../records/devices/pairing.ts";
import { approvalOperations } from "../records/devices/pairing-approval.ts";

const Timestamp = z.iso.datetime();
const open = { auth: ["public"], permission: "public", tenancy: "none", idempotency: "none" } as const;
const PairingEvent = z.object({ deviceId: DeviceId.optional(), deviceName: z.string().optional(), fingerprint: z.string(), status: z.string() });
const RequestedEvent = z.object({
  requestId: PairingRequestId,
  tokenId: EnrollmentTokenId,
  deviceName: z.string().optional(),
  platform: z.string().optional(),
  fingerprint: z.string(),
  expiresAt: Timestamp,
});
const EnrollmentEvent = z.object({ deviceId: DeviceId, currentStep: EnrollmentStep, error: z.string().optional() });

export const pairing = group({
  tag: "Pairing",
  operations: {
    initiate: mutation({
      ...open,
      summary: "Request a pairing code",
      rest: ["POST /pairing/initiate"],
      limit: "pairing.initiate",
      status: 201,
      input: z.strictObject({
        device_fingerprint: Fingerprint,
        device_name: z.string().min(1).max(100).optional(),
        platform: z.string().min(1).max(64).optional(),
      }),
      output: z.object({
        pairing_code: z.string(),
        expires_at: Timestamp,
        portal_url: z.url(),
        pollToken: z.string().describe("A secret of this machine, for `collect`. Nobody who only sees the code can fetch the identity."),
        comparison: Comparison,
      }),
    }),
    ...approvalOperations,
    prepareActivation: mutation({
      summary: "Claim a pairing code for a tenant",
      rest: ["POST /pairing/prepare-activation", "POST /pairing/prepare"],
      auth: ["user"],
      permission: "device:pair",
      limit: "pairing.prepare",
      status: 201,
      description:
        "The second step of pairing, made by a person in the portal. It claims the code for the tenant and returns an activation token that is valid for 5 minutes. Compare `device` with the machine in front of you before you go on. A code belongs to the first tenant that claims it. If the tenant already has a device with this machine's fingerprint, the response is 409 `DEVICE_ALREADY_PAIRED`, which names that device and when it was last seen; repeat the call with `replaceExisting` to give its identity to this machine.",
      input: z.strictObject({
        pairing_code: Code,
        tenant_id: ref("ten"),
        replaceExisting: z
          .boolean()
          .default(false)
          .describe("Let this machine take over the device that has its fingerprint, which locks out the agent that uses it now."),
      }),
      output: z.object({
        activation_token: z.string(),
        expires_at: Timestamp,
        device: RequestingMachine.describe("The machine that requested the code. Compare it with the machine in front of you before you activate."),
      }),
      errors: ["TENANT_NOT_FOUND", "PAIRING_CODE_NOT_FOUND", "PAIRING_CODE_EXPIRED", "PAIRING_ALREADY_ACTIVATED", "DEVICE_ALREADY_PAIRED"],
    }),
    activate: mutation({
      ...open,
      summary: "Exchange a code and an activation token for the device's identity",
      rest: ["POST /pairing/activate"],
      limit: "pairing.activate",
      status: 201,
      input: z.strictObject({
        pairing_code: Code,
        activation_token: z.string().min(1).max(256),
        user_email: z.email().max(254),
        return_to: z.url().max(2_048).optional(),
      }),
      output: PairingActivateResponse,
      errors: [
        "PAIRING_CODE_NOT_FOUND",
        "PAIRING_CODE_EXPIRED",
        "PAIRING_ALREADY_ACTIVATED",
        "ACTIVATION_TOKEN_INVALID",
        "RETURN_URL_NOT_ALLOWED",
        "PLAN_LIMIT_EXCEEDED",
        "DEVICE_ALREADY_PAIRED",
        "FORBIDDEN",
        "TENANT_SUSPENDED",
      ],
    }),
    status: query({
      ...open,
      summary: "Get the pairing status of a fingerprint",
      rest: ["GET /pairing/status", "GET /pairing/status/{device_fingerprint}"],
      limit: "pairing.status",
      description:
        "Ask again after `pollAfterSeconds`. The response contains ids only if you send the matching `pairing_code`, or within 15 minutes if you ask from the address that requested the code.",
      input: z.strictObject({
        device_fingerprint: z.string().min(1).max(256).describe("The fingerprint that the device sent when it requested its code."),
        pairing_code: Code.optional(),
      }),
      output: z.object({
        status: z.enum(PAIRING_STATUSES),
        tenant_id: TenantId.optional(),
        agent_id: AgentId.optional(),
        device_id: DeviceId.optional(),
        pollAfterSeconds: z.int(),
      }),
    }),
    autoActivate: mutation({
      ...open,
      summary: "Activate with an enrollment token",
      description:
        "Pairs without a person: the install script contains an enrollment token, and `POST /pairing/initiate` returns the code. A token with `approval: required` answers 409 `PAIRING_APPROVAL_REQUIRED`: the machine then waits for a person, who finds it in `GET /pairing/requests`, and collects its identity with `POST /pairing/collect`. If the machine's device already exists, the response is 409 `DEVICE_ALREADY_PAIRED`, unless the token was created with `allowRepair` or the device is in repair. If the response is lost, repeat the call with the same token and code: it returns the same identity until that identity is first used.",
      rest: ["POST /pairing/auto-activate"],
      limit: "pairing.autoActivate",
      status: 201,
      input: z.strictObject({ enrollment_token: z.string().min(1).max(256), pairing_code: Code, user_email: z.email().max(254).optional() }),
      output: PairingActivateResponse,
      errors: [
        "ENROLLMENT_TOKEN_INVALID",
        "ENROLLMENT_TOKEN_EXHAUSTED",
        "PAIRING_CODE_NOT_FOUND",
        "PAIRING_CODE_EXPIRED",
        "PAIRING_ALREADY_ACTIVATED",
        "PAIRING_APPROVAL_REQUIRED",
        "PLAN_LIMIT_EXCEEDED",
        "DEVICE_ALREADY_PAIRED",
        "TENANT_SUSPENDED",
      ],
    }),
    updateProgress: mutation({
      ...open,
      summary: "Report an installation step by pairing code",
      rest: ["PATCH /pairing/{pairingCode}/progress", "PUT /pairing/{pairingCode}/progress"],
      limit: "pairing.progress",
      input: z.object({ pairingCode: Code, ...progressUpdate }),
      output: EnrollmentProgress,
      errors: ["PAIRING_CODE_NOT_FOUND", "INVALID_STATE_TRANSITION"],
    }),
    progress: query({
      summary: "Get an installation's progress by pairing code",
      rest: ["GET /pairing/{pairingCode}/progress"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      limit: "pairing.progress",
      input: z.strictObject({ pairingCode: Code }),
      output: EnrollmentProgress,
      errors: ["PAIRING_CODE_NOT_FOUND"],
    }),
    updateDeviceProgress: mutation({
      summary: "Report an installation step as the agent",
      rest: ["PATCH /devices/{deviceId}/enrollment"],
      auth: ["agent"],
      permission: "self",
      limit: "pairing.deviceProgress",
      idempotency: "none",
      replay: "repeatable",
      input: z.object({ deviceId: ref("dev"), ...progressUpdate }),
      output: EnrollmentProgress,
      errors: ["ENROLLMENT_NOT_FOUND", "INVALID_STATE_TRANSITION"],
    }),
    deviceProgress: query({
      summary: "Get an installation's progress by device",
      rest: ["GET /devices/{deviceId}/enrollment"],
      auth: ["user", "apiKey"],
      permission: "device:read",
      limit: "pairing.deviceProgress",
      input: z.strictObject({ deviceId: ref("dev") }),
      output: EnrollmentProgress,
      errors: ["DEVICE_NOT_FOUND", "ENROLLMENT_NOT_FOUND"],
    }),
    installCommand: query({
      summary: "Get the line that installs the agent",
      rest: ["GET /agent/install-command"],
      auth: ["user", "apiKey"],
      permission: "device:pair",
      input: z.strictObject({}),
      output: InstallCommand,
    }),
    createToken: mutation({
      summary: "Create an enrollment token",
      rest: ["POST /pairing/enrollment-tokens"],
      auth: ["user", "apiKey"],
      permission: "enrollment:write",
      limit: "pairing.tokens",
      status: 201,
      location: "/pairing/enrollment-tokens/{tokenId}",
      input: z.strictObject({
        name: z.string().min(1).max(100),
        expiresInSeconds: z.int().min(60).max(2_592_000).default(86_400),
        maxUses: z.int().min(1).max(1_000).nullable().default(1),
        tags: z.array(Tag).max(50).default([]),
        deploymentId: ref("dep").optional(),
        allowRepair: z
          .boolean()
          .default(false)
          .describe("Let the token also pair machines whose device already exists. Anyone who holds it can then lock their agents out."),
        approval: TokenApproval.default("none"),
      }),
      output: EnrollmentToken.extend({ token: z.string(), installCommand: z.string(), commands: InstallCommands }),
      errors: ["DEPLOYMENT_NOT_FOUND", "PLAN_LIMIT_EXCEEDED"],
    }),
    listTokens: query({
      summary: "List enrollment tokens",
      rest: ["GET /pairing/enrollment-tokens"],
      auth: ["user", "apiKey"],
      permission: "enrollment:write",
      list: "page",
      input: listQuery({ sort: ["createdAt", "name", "expiresAt"], by: "-createdAt" }),
      output: paged(named(EnrollmentToken)),
    }),
    revokeToken: mutation({
      summary: "Revoke an enrollment token",
      rest: ["DELETE /pairing/enrollment-tokens/{tokenId}"],
      auth: ["user", "apiKey"],
      permission: "enrollment:write",
      limit: "pairing.tokens",
      status: 204,
      input: z.strictObject({ tokenId: ref("ent") }),
      output: z.null(),
      errors: ["ENROLLMENT_TOKEN_NOT_FOUND"],
    }),
  },
  events: {
    requested: event("pairing.requested", RequestedEvent, "A machine with an enrollment token asks for a person's approval"),
    activated: event("pairing.activated", PairingEvent, "A device was paired"),
    rejected: event("pairing.rejected", PairingEvent, "A machine that requested a pairing code was rejected"),
    progressed: event("enrollment.progressed", EnrollmentEvent, "An installation reached its next step"),
    completed: event("enrollment.completed", EnrollmentEvent, "An installation finished"),
    failed: event("enrollment.failed", EnrollmentEvent, "An installation failed"),
  },
});
