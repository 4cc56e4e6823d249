// Pairing in the browser: a person looks a code up, compares the machine, approves or rejects it, and the machine collects its identity by polling.

import { timingSafeEqual } from "node:crypto";
import { contract, type PairingRequest } from "../../../protocol/index.ts";
import { secondsFromNow } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { secretHash } from "../../core/ids.ts";
import { userOf } from "../../core/people/user-of.ts";
import { actorOfUser, type TenantScope } from "../../core/scope.ts";
import { createEnrolPaired, withAddresses } from "./activation.ts";
import type { CodeGuesses, FoundCode } from "./code-guesses.ts";
import { comparisonOf } from "./codes.ts";
import { isOpenTo, whyNotDecide } from "./rules.ts";
import { approvePairing, findByCode, mayCollect, type Pairing, rejectPairing } from "./store/pairings.ts";
import type { PairingDeps } from "./types.ts";

export const POLL_SECONDS = 6;
// The machine polls every few seconds, so it has long collected by then.
const COLLECT_SECONDS = 900;
// Long enough to repeat a call whose answer was lost.
const COLLECT_AGAIN_SECONDS = 300;

type Refusal = ReturnType<typeof whyNotDecide>;
type Approval = Pick<Handlers<typeof contract.pairing>, "lookup" | "approve" | "reject" | "collect">;

/** The machine as a person compares it with the one in front of them. */
export const machineOf = ({ fingerprint, deviceName, platform, initiatorIp, createdAt }: Pairing): PairingRequest["device"] => ({
  fingerprint,
  ...(deviceName === null ? {} : { name: deviceName }),
  ...(platform === null ? {} : { platform }),
  initiatedFrom: initiatorIp,
  initiatedAt: createdAt.toISOString(),
});

export const createApproval = (deps: PairingDeps, codes: CodeGuesses): Approval => ({ ...createDecisions(deps, codes), collect: createCollect(deps, codes) });

const createDecisions = (deps: PairingDeps, codes: CodeGuesses): Omit<Approval, "collect"> => {
  const { clock, emit, memberships, devices, flags } = deps;
  const enrolPaired = createEnrolPaired(deps);

  const refuse = async (scope: TenantScope, pairing: Pairing | null, fail: (code: Refusal) => AppError): Promise<AppError> => {
    const reason = whyNotDecide(pairing, scope);
    if (reason === "PAIRING_CODE_NOT_FOUND" && pairing !== null) await codes.count(scope);
    return fail(reason);
  };
  const findOpen = async (scope: TenantScope, code: string, fail: (code: Refusal) => AppError): Promise<FoundCode> => {
    const found = await codes.find(scope, code);
    if (found === null || !isOpenTo(found.pairing, scope)) throw await refuse(scope, found?.pairing ?? null, fail);
    return found;
  };

  return {
    lookup: async ({ scope, fail }, { code }) => {
      const { pairing } = await findOpen(scope, code, fail);
      const existing = await devices.withFingerprint(scope, pairing.fingerprint);
      const { pollTokenHash, fingerprint, createdAt, expiresAt } = pairing;
      return {
        device: machineOf(pairing),
        ...(pollTokenHash === null ? {} : { comparison: comparisonOf(pollTokenHash, fingerprint) }),
        ageSeconds: Math.max(0, Math.round((clock.now().getTime() - createdAt.getTime()) / 1_000)),
        expiresAt: expiresAt.toISOString(),
        ...(existing === null ? {} : { existingDevice: { deviceId: existing.deviceId, status: existing.status, lastSeen: existing.lastSeen } }),
      };
    },

    approve: async ({ scope, fail, commit }, { code, name, tags, replaces }) => {
      if (!(await flags.isOn("browserPairing", scope.tenantId)))
        throw new AppError("FORBIDDEN", { details: { reason: "feature_disabled", feature: "browserPairing" } });
      const { userId, email } = userOf(scope);
      const { codeHash, pairing: asked } = await findOpen(scope, code, fail);
      const existing = await devices.withFingerprint(scope, asked.fingerprint);
      if (existing === null && replaces !== undefined) throw fail("DEVICE_NOT_FOUND", { deviceId: replaces });
      if (existing !== null && existing.deviceId !== replaces) throw fail("DEVICE_ALREADY_PAIRED", { ...existing, confirmWith: "replaces" });
      const known = email ?? (await memberships.find(scope.tenantId, userId))?.email ?? null;
      const now = clock.now();
      const collectUntil = secondsFromNow(COLLECT_SECONDS, now);
      const approval = { now, codeHash, preparedBy: userId, preparedEmail: known, replacesDeviceId: existing?.deviceId ?? null, collectUntil };
      return commit(async (tx) => {
        const pairing = await approvePairing(tx, scope, approval);
        if (pairing === null) throw fail(whyNotDecide(await findByCode(tx, codeHash, now), scope));
        const replacement = { means: "code", actor: actorOfUser(userId), allowed: pairing.replacesDeviceId } as const;
        const userEmail = (deviceId: string): string => known ?? `device+${deviceId}@${scope.tenant.slug}.invalid`;
        const made = await enrolPaired(tx, scope, { pairing, tenant: scope.tenant, wanted: { name, tags }, replacement, userEmail });
        const shown = name ?? pairing.deviceName;
        const { device_id: deviceId, fingerprint } = made;
        return { deviceId, ...(shown === null ? {} : { name: shown }), fingerprint, collectUntil: collectUntil.toISOString() };
      });
    },

    reject: async ({ scope, fail, commit }, { code }) => {
      const { userId } = userOf(scope);
      const { codeHash } = await findOpen(scope, code, fail);
      return commit(async (tx) => {
        const now = clock.now();
        const pairing = await rejectPairing(tx, scope, { now, codeHash, preparedBy: userId });
        if (pairing === null) throw fail(whyNotDecide(await findByCode(tx, codeHash, now), scope));
        const { pairingId, fingerprint, deviceName } = pairing;
        const data = { fingerprint, deviceName: deviceName ?? undefined, status: "rejected" };
        await emit(tx, [happened(scope, contract.pairing.events.rejected, pairingId, data)]);
        return null;
      });
    },
  };
};

const isOwnPoll = ({ pollTokenHash, fingerprint }: Pairing, given: { readonly pollToken: string; readonly device_fingerprint: string }): boolean =>
  pollTokenHash !== null && timingSafeEqual(pollTokenHash, secretHash(given.pollToken)) && fingerprint === given.device_fingerprint;

const createCollect =
  ({ db, clock, audit, devices, settings }: PairingDeps, codes: CodeGuesses): Approval["collect"] =>
  async ({ scope: call, fail }, { pairing_code, ...poll }) => {
    const pairing = (await codes.find(call, pairing_code))?.pairing;
    if (pairing === undefined) throw fail("PAIRING_CODE_NOT_FOUND");
    // A bystander who saw the code has no token, and learns as much as from an unknown code.
    if (!isOwnPoll(pairing, poll)) {
      await codes.count(call);
      throw fail("PAIRING_CODE_NOT_FOUND");
    }
    const { pairingId, status, tenantId, deviceId, agentId } = pairing;
    const answer = { status, pollAfterSeconds: POLL_SECONDS };
    if (status !== "activated" || tenantId === null || deviceId === null) return answer;
    return db.tx(async (tx) => {
      audit.begin(tx);
      if (!(await mayCollect(tx, pairingId, COLLECT_AGAIN_SECONDS, clock.now()))) return answer;
      const device = await devices.reissue(tx, { tenantId }, deviceId);
      if (device === null) return answer;
      const actor = { type: "agent", id: agentId ?? "", email: null } as const;
      await audit.append(tx, { tenantId, actor, action: "pairing.collect", resource: { type: "devices", id: deviceId }, code: null, call });
      return { ...answer, identity: withAddresses(device, settings) };
    });
  };
