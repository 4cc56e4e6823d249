// The part of pairing in which a person decides in a browser and the machine fetches its identity by itself.
import { z } from "zod";
import { Tag } from "../../kit/device-selector.ts";
import { DeviceId, ref } from "../../kit/ids.ts";
import { mutation, query } from "../../kit/operation.ts";
import { Code, Fingerprint, PairingActivateResponse, PairingRequest } from "./pairing.ts";

const oneCode = z.strictObject({ code: Code });
const byPerson = { auth: ["user"], permission: "device:pair" } as const;

export const approvalOperations = {
  lookup: query({
    ...byPerson,
    summary: "Look up the machine behind a pairing code",
    rest: ["GET /pairing/lookup"],
    limit: "pairing.lookup",
    input: oneCode,
    output: PairingRequest,
    errors: ["PAIRING_CODE_NOT_FOUND", "PAIRING_CODE_EXPIRED", "PAIRING_ALREADY_ACTIVATED", "PAIRING_REJECTED"],
  }),
  approve: mutation({
    ...byPerson,
    summary: "Approve a machine by its pairing code",
    rest: ["POST /pairing/approve"],
    limit: "pairing.prepare",
    status: 201,
    location: "/devices/{deviceId}",
    input: oneCode.extend({
      name: z.string().trim().min(1).max(100).optional().describe("The device's name. Default: the name that the machine gave itself."),
      tags: z.array(Tag).max(50).default([]).describe("Tags of a new device. A replaced device keeps its own."),
      replaces: ref("dev").optional(),
    }),
    output: z.object({ deviceId: DeviceId, name: z.string().optional(), fingerprint: z.string(), collectUntil: z.iso.datetime() }),
    errors: [
      "PAIRING_CODE_NOT_FOUND",
      "PAIRING_CODE_EXPIRED",
      "PAIRING_ALREADY_ACTIVATED",
      "PAIRING_REJECTED",
      "DEVICE_ALREADY_PAIRED",
      "DEVICE_NOT_FOUND",
      "PLAN_LIMIT_EXCEEDED",
    ],
  }),
  reject: mutation({
    ...byPerson,
    summary: "Reject a machine by its pairing code",
    rest: ["POST /pairing/reject"],
    limit: "pairing.prepare",
    status: 204,
    input: oneCode,
    output: z.null(),
    errors: ["PAIRING_CODE_NOT_FOUND", "PAIRING_CODE_EXPIRED", "PAIRING_ALREADY_ACTIVATED", "PAIRING_REJECTED"],
  }),
  collect: mutation({
    auth: ["public"],
    permission: "public",
    tenancy: "none",
    idempotency: "none",
    summary: "Collect the identity that a person approved",
    rest: ["POST /pairing/collect"],
    limit: "pairing.collect",
    input: z.strictObject({ pairing_code: Code, device_fingerprint: Fingerprint, pollToken: z.string().min(1).max(128) }),
    output: z.object({
      status: z.enum(["pending", "activated", "rejected", "expired"]),
      pollAfterSeconds: z.int(),
      identity: PairingActivateResponse.optional(),
    }),
    errors: ["PAIRING_CODE_NOT_FOUND"],
  }),
};
