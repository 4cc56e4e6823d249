// The records of pairing: what a machine requests, what a person sees of it, and the identity that it gets.
import { z } from "zod";
import { DeploymentId, DeviceId, EnrollmentTokenId, PairingRequestId, TenantId } from "../../kit/ids.ts";
import { ProvisionedDevice } from "./provisioned-device.ts";

const Timestamp = z.iso.datetime();
export const Fingerprint = z.string().min(8).max(256);
export const Code = z.string().min(1).max(32).describe("The pairing code, such as K7QM-2XVD. Case and separators do not matter.");

export const PAIRING_STATUSES = ["pending", "activated", "expired", "not_found"] as const;
export const PairingActivateResponse = ProvisionedDevice.extend({
  return_to: z.string().optional(),
  infrastructure_secrets: z.record(z.string(), z.string()).optional(),
});
export type PairingActivateResponse = z.infer<typeof PairingActivateResponse>;

export const TokenApproval = z
  .enum(["none", "required"])
  .describe("`required`: a machine with this token waits until a person approves it. `none`: the token pairs it at once.");
export const EnrollmentToken = z.object({
  tokenId: EnrollmentTokenId,
  tenantId: TenantId,
  name: z.string(),
  maxUses: z.int().nullable(),
  uses: z.int(),
  tags: z.array(z.string()),
  deploymentId: DeploymentId.nullable(),
  allowRepair: z.boolean(),
  approval: TokenApproval,
  createdBy: z.string(),
  expiresAt: Timestamp,
  createdAt: Timestamp,
});
export type EnrollmentToken = z.infer<typeof EnrollmentToken>;

export const Comparison = z.string().describe("Six digits of this pairing. The machine shows them, too; approve only if both are the same.");
export const RequestingMachine = z.object({
  fingerprint: z.string(),
  name: z.string().optional(),
  platform: z.string().optional(),
  initiatedFrom: z.string(),
  initiatedAt: Timestamp,
});
export const PairingRequest = z.object({
  device: RequestingMachine.describe("The machine that requested the code."),
  comparison: Comparison.optional(),
  ageSeconds: z.int().min(0),
  expiresAt: Timestamp,
  existingDevice: z
    .object({ deviceId: DeviceId, name: z.string().optional(), status: z.string(), lastSeen: Timestamp.nullable() })
    .optional()
    .describe("The tenant's device that has this machine's fingerprint. Name it in `replaces` to give its identity to this machine."),
});
export type PairingRequest = z.infer<typeof PairingRequest>;

export const WaitingMachine = PairingRequest.omit({ ageSeconds: true }).extend({
  requestId: PairingRequestId.describe("Names the machine in `POST /pairing/approve` and `POST /pairing/reject`."),
  tokenId: EnrollmentTokenId.nullable().describe("The enrollment token that the machine asked with; null if a person looked up its code."),
});
export type WaitingMachine = z.infer<typeof WaitingMachine>;
