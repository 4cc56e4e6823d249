// The part of pairing in which a person decides in a browser and the machine fetches its identity by itself.
import { z } from "zod";
import { Tag } from "../../kit/device-selector.ts";
import { DeviceId, ref } from "../../kit/ids.ts";
import { mutation, query } from "../../kit/operation.ts";
import { listQuery, paged } from "../../kit/page.ts";
import { Code, Fingerprint, PairingActivateResponse, PairingRequest, WaitingMachine } from "./pairing.ts";

const machine = {
  code: Code.optional(),
  requestId: ref("par").optional().describe("Instead of `code`: a machine of `GET /pairing/requests`, whose code only the machine shows."),
};
const isOne = ({ code, requestId }: { readonly code?: string | undefined; readonly requestId?: string | undefined }): boolean =>
  (code === undefined) !== (requestId === undefined);
const ONE = "give either code or requestId";
const byPerson = { auth: ["user"], permission: "device:pair" } as const;

export const approvalOperations = {
  lookup: query({
    ...byPerson,
    summary: "Look up the machine behind a pairing code",
    rest: ["GET /pairing/lookup"],
    limit: "pairing.lookup",
    input: z.strictObject({ code: Code }),
    output: PairingRequest,
    errors: ["PAIRING_CODE_NOT_FOUND", "PAIRING_CODE_EXPIRED", "PAIRING_ALREADY_ACTIVATED", "PAIRING_REJECTED"],
  }),
  requests: query({
    ...byPerson,
    summary: "List the machines that wait for approval",
    rest: ["GET /pairing/requests"],
    list: "page",
    input: listQuery({ sort: ["initiatedAt"], by: "-initiatedAt" }),
    output: paged(WaitingMachine),
  }),
  approve: mutation({
    ...byPerson,
    summary: "Approve a machine",
    rest: ["POST /pairing/approve"],
    limit: "pairing.prepare",
    status: 201,
    location: "/devices/{deviceId}",
    input: z
      .strictObject({
        ...machine,
        name: z.string().trim().min(1).max(100).optional().describe("The device's name. Default: the name that the machine gave itself."),
        tags: z.array(Tag).max(50).default([]).describe("Tags of a new device, beside those of its enrollment token. A replaced device keeps its own."),
        replaces: ref("dev").optional(),
      })
      .refine(isOne, ONE),
    output: z.object({ deviceId: DeviceId, name: z.string().optional(), fingerprint: z.string(), collectUntil: z.iso.datetime() }),
    errors: [
      "PAIRING_CODE_NOT_FOUND",
      "PAIRING_CODE_EXPIRED",
      "PAIRING_ALREADY_ACTIVATED",
      "PAIRING_REJECTED",
      "ENROLLMENT_TOKEN_EXHAUSTED",
      "DEVICE_ALREADY_PAIRED",
      "DEVICE_NOT_FOUND",
      "PLAN_LIMIT_EXCEEDED",
    ],
  }),
  reject: mutation({
    ...byPerson,
    summary: "Reject a machine",
    rest: ["POST /pairing/reject"],
    limit: "pairing.prepare",
    status: 204,
    input: z.strictObject(machine).refine(isOne, ONE),
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
