// Pairing in the browser: a person looks a code up, compares the machine, approves or rejects it, and the machine collects its identity by polling.

import { timingSafeEqual } from "node:crypto";
import { contract } from "../../../protocol/index.ts";
import { secondsFromNow } from "../../core/clock.ts";
import type { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { secretHash } from "../../core/ids.ts";
import { userOf } from "../../core/people/user-of.ts";
import { actorOfUser, type TenantScope } from "../../core/scope.ts";
import { createEnrolPaired, withAddresses } from "./activation.ts";
import type { CodeGuesses } from "./code-guesses.ts";
import { existingOf, shownOf } from "./requests.ts";
import { requireApprovals } from "./require-approvals.ts";
import { isOpenTo, POLL_SECONDS, whyNotDecide } from "./rules.ts";
import { approvePairing, findById, findRequest, mayCollect, type Pairing, rejectPairing, showTo } from "./store/pairings.ts";
import { findToken, takeUse } from "./store/tokens.ts";
import type { PairingDeps } from "./types.ts";

// The machine polls every few seconds, so it has long collected by then.
const COLLECT_SECONDS = 900;
// Long enough to repeat a call whose answer was lost.
const COLLECT_AGAIN_SECONDS = 300;

interface Named {
  readonly code?: string | undefined;
  readonly requestId?: string | undefined;
}
type Refusal = ReturnType<typeof whyNotDecide>;
type Approval = Pick<Handlers<typeof contract.pairing>, "lookup" | "approve" | "reject" | "collect">;

export const createApproval = (deps: PairingDeps, codes: CodeGuesses): Approval => ({ ...createDecisions(deps, codes), collect: createCollect(deps, codes) });

const createDecisions = (deps: PairingDeps, codes: CodeGuesses): Omit<Approval, "collect"> => {
  const { db, clock, emit, memberships, devices, flags } = deps;
  const enrolPaired = createEnrolPaired(deps);

  const refuse = async (scope: TenantScope, pairing: Pairing | null, fail: (code: Refusal) => AppError): Promise<AppError> => {
    const reason = whyNotDecide(pairing, scope);
    if (reason === "PAIRING_CODE_NOT_FOUND" && pairing !== null) await codes.count(scope);
    return fail(reason);
  };
  const findOpen = async (scope: TenantScope, { code, requestId }: Named, fail: (code: Refusal) => AppError): Promise<Pairing> => {
    const byCode = code === undefined ? null : ((await codes.find(scope, code))?.pairing ?? null);
    const pairing = requestId === undefined ? byCode : await findRequest(db, scope, requestId, clock.now());
    if (pairing === null || !isOpenTo(pairing, scope)) throw await refuse(scope, pairing, fail);
    return pairing;
  };

  return {
    lookup: async ({ scope, fail }, { code }) => {
      const pairing = await findOpen(scope, { code }, fail);
      await showTo(db, scope, pairing.pairingId);
      const [existing] = await devices.withFingerprints(scope, [pairing.fingerprint]);
      return { ...shownOf(pairing, existing), ageSeconds: Math.max(0, Math.round((clock.now().getTime() - pairing.createdAt.getTime()) / 1_000)) };
    },

    approve: async ({ scope, fail, commit }, { code, requestId, name, tags, replaces }) => {
      await requireApprovals(flags, scope);
      const { userId, email } = userOf(scope);
      const { pairingId, tokenId, fingerprint: asking } = await findOpen(scope, { code, requestId }, fail);
      const [existing] = await devices.withFingerprints(scope, [asking]);
      if (existing === undefined && replaces !== undefined) throw fail("DEVICE_NOT_FOUND", { deviceId: replaces });
      if (existing !== undefined && existing.deviceId !== replaces) throw fail("DEVICE_ALREADY_PAIRED", { ...existingOf(existing), confirmWith: "replaces" });
      const known = email ?? (await memberships.find(scope.tenantId, userId))?.email ?? null;
      const now = clock.now();
      const collectUntil = secondsFromNow(COLLECT_SECONDS, now);
      const approval = { now, pairingId, preparedBy: userId, preparedEmail: known, replacesDeviceId: existing?.deviceId ?? null, collectUntil };
      return commit(async (tx) => {
        // Before the pairing, as revoking does.
        if (tokenId !== null && !(await takeUse(tx, scope, tokenId))) throw fail("ENROLLMENT_TOKEN_EXHAUSTED", { tokenId });
        const token = tokenId === null ? undefined : await findToken(tx, scope, tokenId);
        const pairing = await approvePairing(tx, scope, approval);
        if (pairing === null) throw fail(whyNotDecide(await findById(tx, pairingId, now), scope));
        const replacement = { means: "code", actor: actorOfUser(userId), allowed: pairing.replacesDeviceId } as const;
        const userEmail = (deviceId: string): string => known ?? `device+${deviceId}@${scope.tenant.slug}.invalid`;
        const allTags = [...new Set([...(token?.tags ?? []), ...tags])];
        const made = await enrolPaired(tx, scope, { pairing, tenant: scope.tenant, token, wanted: { name, tags: allTags }, replacement, userEmail });
        const shown = name ?? pairing.deviceName;
        const { device_id: deviceId, fingerprint } = made;
        return { deviceId, ...(shown === null ? {} : { name: shown }), fingerprint, collectUntil: collectUntil.toISOString() };
      });
    },

    reject: async ({ scope, fail, commit }, named) => {
      const { userId } = userOf(scope);
      const { pairingId } = await findOpen(scope, named, fail);
      return commit(async (tx) => {
        const now = clock.now();
        const pairing = await rejectPairing(tx, scope, { now, pairingId, preparedBy: userId });
        if (pairing === null) throw fail(whyNotDecide(await findById(tx, pairingId, now), scope));
        const { fingerprint, deviceName } = pairing;
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
