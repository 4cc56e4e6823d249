// Machines that wait for a person: each asked with an enrollment token that needs approval, or somebody has looked up its code.
import { contract, type EnrollmentToken, type PairingRequest, type WaitingMachine } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import type { OpenScope } from "../../core/scope.ts";
import type { KnownMachine } from "../devices/index.ts";
import type { CodeGuesses, FoundCode } from "./code-guesses.ts";
import { comparisonOf } from "./codes.ts";
import { isOpenTo, whyNot } from "./rules.ts";
import { findByCode, type Pairing, pageOfRequests, requestByToken } from "./store/pairings.ts";
import { holdToken } from "./store/tokens.ts";
import type { PairingDeps } from "./types.ts";

/** The machine as a person compares it with the one in front of them. */
export const machineOf = ({ fingerprint, deviceName, platform, initiatorIp, createdAt }: Pairing): PairingRequest["device"] => ({
  fingerprint,
  ...(deviceName === null ? {} : { name: deviceName }),
  ...(platform === null ? {} : { platform }),
  initiatedFrom: initiatorIp,
  initiatedAt: createdAt.toISOString(),
});

/** What the caller learns of the device whose identity the machine would take over. */
export const existingOf = ({ deviceId, fingerprint, status, lastSeen }: KnownMachine) => ({ deviceId, fingerprint, status, lastSeen });

/** What a person is shown of a pairing, beside how old it is. */
export const shownOf = (pairing: Pairing, existing: KnownMachine | undefined): Omit<PairingRequest, "ageSeconds"> => {
  const { pollTokenHash, fingerprint, expiresAt } = pairing;
  return {
    device: machineOf(pairing),
    ...(pollTokenHash === null ? {} : { comparison: comparisonOf(pollTokenHash, fingerprint) }),
    expiresAt: expiresAt.toISOString(),
    ...(existing === undefined ? {} : { existingDevice: { deviceId: existing.deviceId, status: existing.status, lastSeen: existing.lastSeen } }),
  };
};

export const createRequestList =
  ({ db, clock, devices }: PairingDeps): Handlers<typeof contract.pairing>["requests"] =>
  async ({ scope }, query) => {
    const page = await pageOfRequests(db, scope, query, clock.now());
    const fingerprints = page.items.map(({ fingerprint }) => fingerprint);
    const existing = new Map((await devices.withFingerprints(scope, fingerprints)).map((machine) => [machine.fingerprint, machine]));
    const items = page.items.map((pairing): WaitingMachine => {
      const { pairingId: requestId, tokenId, fingerprint } = pairing;
      return { requestId, tokenId, ...shownOf(pairing, existing.get(fingerprint)) };
    });
    return { ...page, items };
  };

export interface Asking {
  readonly token: EnrollmentToken;
  readonly found: FoundCode;
  readonly now: Date;
}

/**
 * Lets the machine wait for a person of its token's tenant; asking again with the same code changes nothing. The token's use is counted at the approval,
 * so a machine that nobody approves uses up none.
 */
export const createRequest =
  ({ db, emit, audit, devices }: PairingDeps, codes: CodeGuesses) =>
  async (call: OpenScope, { token, found: { codeHash, pairing: asking }, now }: Asking): Promise<Pairing> => {
    const { tenantId, tokenId } = token;
    const [existing] = await devices.withFingerprints(token, [asking.fingerprint]);
    // Who may take over the device is the token's word now, and the person's at the approval.
    if (existing !== undefined && isOpenTo(asking, token) && !token.allowRepair && !existing.inRepair)
      throw new AppError("DEVICE_ALREADY_PAIRED", { details: existingOf(existing) });
    const tokenEnd = new Date(token.expiresAt);
    const expiresAt = tokenEnd < asking.expiresAt ? tokenEnd : asking.expiresAt;
    return db.tx(async (tx) => {
      audit.begin(tx);
      if (!(await holdToken(tx, token, tokenId))) throw new AppError("ENROLLMENT_TOKEN_EXHAUSTED", { details: { tokenId } });
      const current = await findByCode(tx, codeHash, now);
      if (current?.status === "pending" && current.tokenId === tokenId) return current;
      const pairing = await requestByToken(tx, token, { now, codeHash, tokenId, expiresAt });
      if (pairing === null) {
        const reason = whyNot(await findByCode(tx, codeHash, now), token);
        if (reason === "PAIRING_CODE_NOT_FOUND") await codes.count(call);
        throw new AppError(reason);
      }
      const { pairingId: requestId, fingerprint, deviceName, platform } = pairing;
      const scope = { tenantId, requestId: call.requestId, ip: call.ip, traceparent: call.traceparent };
      const machine = { deviceName: deviceName ?? undefined, platform: platform ?? undefined, fingerprint };
      const data = { requestId, tokenId, ...machine, expiresAt: expiresAt.toISOString() };
      await emit(tx, [happened(scope, contract.pairing.events.requested, requestId, data)]);
      const actor = { type: "enrollmentToken", id: tokenId, email: null } as const;
      const resource = { type: "pairings", id: requestId };
      await audit.append(tx, { tenantId, actor, action: "pairing.autoActivate", resource, code: "PAIRING_APPROVAL_REQUIRED", call });
      return pairing;
    });
  };
