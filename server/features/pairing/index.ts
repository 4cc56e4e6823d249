// Pairing: a machine shows a code, a person claims it for a tenant, and the machine becomes a device with a secret.

import { contract } from "../../../protocol/index.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import { AppError } from "../../core/errors.ts";
import { type Handlers, implement } from "../../core/feature.ts";
import { newId, newSecret, secretHash } from "../../core/ids.ts";
import { userOf } from "../../core/people/user-of.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Feature } from "../kit.ts";
import { createActivation } from "./activation.ts";
import { createApproval } from "./approval.ts";
import { type CodeGuesses, createCodeGuesses } from "./code-guesses.ts";
import { comparisonOf, newCode, showCode } from "./codes.ts";
import { createProgressHandlers } from "./progress.ts";
import { createRequestList, existingOf, machineOf } from "./requests.ts";
import { isOpenTo, maySeeIds, POLL_SECONDS, whyNot } from "./rules.ts";
import { deleteOldPairings, expireDue, expireOthers, findByCode, findLatest, insertPairing, lockFingerprint, type Pairing, prepare } from "./store/pairings.ts";
import { countTokens, deleteOldTokens } from "./store/tokens.ts";
import { createEnsureToken, createTokenHandlers } from "./tokens.ts";
import type { PairingDeps } from "./types.ts";

export { pairingLimits } from "./rate-limits.ts";
export { isReturnAllowed } from "./rules.ts";
export type { EnsureToken } from "./tokens.ts";
export type { Failures, PairingDeps, PairingSettings } from "./types.ts";

// Long enough to walk from the device to the portal.
const CODE_SECONDS = 900;
// Long enough to click a link, and expired before anybody finds it in a browser's history.
const TOKEN_SECONDS = 300;

// Two live codes collide once in 25 billion; then we draw again.
const DRAWS = 5;
// Support still finds the installation of last week.
const KEPT_DAYS = 7;
const SWEEP_MS = 60_000;

export interface PairingFeature extends Feature<typeof contract.pairing> {
  readonly jobs: readonly Job[];
  readonly ensureEnrollmentToken: ReturnType<typeof createEnsureToken>;
}

export const createPairing = (deps: PairingDeps): PairingFeature => featureOf(deps, createCodeGuesses(deps));

const keptSince = ({ clock }: PairingDeps): Date => secondsFromNow(-KEPT_DAYS * DAY_SECONDS, clock.now());

const featureOf = (deps: PairingDeps, codes: CodeGuesses): PairingFeature => ({
  handlers: implement(contract.pairing, {
    ...createCodeHandlers(deps, codes),
    ...createActivation(deps, codes),
    ...createApproval(deps, codes),
    requests: createRequestList(deps),
    ...createTokenHandlers(deps),
    ...createProgressHandlers(deps, codes),
  }),
  jobs: [
    { name: "pairing.expire", everyMs: SWEEP_MS, run: () => expireDue(deps.db, deps.clock.now()) },
    { name: "pairing.forget", everyMs: SWEEP_MS, run: () => deleteOldPairings(deps.db, keptSince(deps)) },
    { name: "pairing.forget-tokens", everyMs: SWEEP_MS, run: () => deleteOldTokens(deps.db, keptSince(deps)) },
  ],
  counters: { enrollmentTokens: countTokens },
  ensureEnrollmentToken: createEnsureToken(deps),
});

const createCodeHandlers = (
  { db, clock, memberships, devices, settings }: PairingDeps,
  codes: CodeGuesses,
): Pick<Handlers<typeof contract.pairing>, "initiate" | "prepareActivation" | "status"> => ({
  initiate: async ({ scope }, { device_fingerprint: fingerprint, device_name, platform }) => {
    const pollToken = newSecret();
    const pollTokenHash = secretHash(pollToken);
    const machine = { fingerprint, deviceName: device_name ?? null, platform: platform ?? null };
    const expiresAt = secondsFromNow(CODE_SECONDS, clock.now());
    const about = { ...machine, initiatorIp: scope.ip, pollTokenHash, expiresAt };
    const shownCode = await db.tx(async (tx) => {
      await lockFingerprint(tx, fingerprint);
      await expireOthers(tx, fingerprint);
      for (let draw = 0; draw < DRAWS; draw += 1) {
        const code = newCode();
        if (await insertPairing(tx, { ...about, pairingId: newId("par"), codeHash: secretHash(code) })) return showCode(code);
      }
      throw new AppError("SERVICE_UNAVAILABLE", { retryAfter: 1, details: { reason: "no_free_code" } });
    });
    const portal = new URL("pair", withSlash(settings.portalUrl()));
    portal.searchParams.set("code", shownCode);
    const comparison = comparisonOf(pollTokenHash, fingerprint);
    return { pairing_code: shownCode, expires_at: expiresAt.toISOString(), portal_url: portal.href, pollToken, comparison };
  },

  prepareActivation: async ({ scope, fail, commit }, { pairing_code, tenant_id, replaceExisting }) => {
    if (tenant_id !== scope.tenantId) throw fail("TENANT_NOT_FOUND", { tenantId: tenant_id });
    const { userId, email, role } = userOf(scope);
    const found = await codes.find(scope, pairing_code);
    if (found === null) throw fail("PAIRING_CODE_NOT_FOUND");
    const { codeHash } = found;
    const refuse = async (given: Pairing | null) => {
      const reason = whyNot(given, scope);
      if (reason === "PAIRING_CODE_NOT_FOUND") await codes.count(scope);
      return fail(reason);
    };
    if (!isOpenTo(found.pairing, scope)) throw await refuse(found.pairing);
    const [existing] = await devices.withFingerprints(scope, [found.pairing.fingerprint]);
    if (existing !== undefined && !replaceExisting) throw fail("DEVICE_ALREADY_PAIRED", { ...existingOf(existing), confirmWith: "replaceExisting" });
    const token = newSecret();
    const now = clock.now();
    const tokenEnd = secondsFromNow(TOKEN_SECONDS, now);
    const activationTokenExpiresAt = tokenEnd < found.pairing.expiresAt ? tokenEnd : found.pairing.expiresAt;
    const known = email ?? (await memberships.find(scope.tenantId, userId))?.email ?? null;
    return commit(async (tx) => {
      const pairing = await prepare(tx, scope, {
        now,
        codeHash,
        preparedBy: userId,
        preparedEmail: known,
        preparedRole: role ?? "viewer",
        activationTokenHash: secretHash(token),
        activationTokenExpiresAt,
        replacesDeviceId: existing?.deviceId ?? null,
      });
      if (pairing === null) throw await refuse(await findByCode(tx, codeHash, now));
      return { activation_token: token, expires_at: activationTokenExpiresAt.toISOString(), device: machineOf(pairing) };
    });
  },

  status: async ({ scope }, { device_fingerprint, pairing_code }) => {
    const byCode = pairing_code === undefined ? null : ((await codes.find(scope, pairing_code))?.pairing ?? null);
    const hasCode = byCode !== null && byCode.fingerprint === device_fingerprint;
    if (byCode !== null && !hasCode) await codes.count(scope);
    const pairing = hasCode ? byCode : await findLatest(db, device_fingerprint, clock.now());
    if (pairing === null) return { status: "not_found", pollAfterSeconds: POLL_SECONDS };
    const { tenantId, agentId, deviceId } = pairing;
    // The interface knows four values.
    const status = pairing.status === "rejected" ? "expired" : pairing.status;
    const shown = status === "activated" && tenantId !== null && agentId !== null && deviceId !== null && maySeeIds({ hasCode, ip: scope.ip }, pairing);
    return { status, ...(shown ? { tenant_id: tenantId, agent_id: agentId, device_id: deviceId } : {}), pollAfterSeconds: POLL_SECONDS };
  },
});

const withSlash = (url: string): string => (url.endsWith("/") ? url : `${url}/`);
