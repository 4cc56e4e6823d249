// Activation turns a pairing code into a device, with the token that a user prepared or with an enrollment token, in one transaction.

import { connectTo, contract, type EnrollmentToken, type PairingActivateResponse, type TenantId } from "../../../protocol/index.ts";
import type { Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import { happened } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import { secretHash } from "../../core/ids.ts";
import { actorOfUser, type OpenScope, type TenantFacts } from "../../core/scope.ts";
import type { Enrolled, Replacement } from "../devices/index.ts";
import type { CodeGuesses } from "./code-guesses.ts";
import { createRequest } from "./requests.ts";
import { isReturnAllowed, mayActivateAs, POLL_SECONDS, whyNot } from "./rules.ts";
import { activateByToken, activateForTenant, countWrongToken, findByCode, findPairedBy, findPrepared, type Pairing, recordDevice } from "./store/pairings.ts";
import { findGood, takeUse } from "./store/tokens.ts";
import type { PairingDeps, PairingSettings } from "./types.ts";

// A token has 256 bits and nobody types it, so five wrong ones are no typing mistakes.
const WRONG_TOKENS_PER_CODE = 5;

type Activation = Pick<Handlers<typeof contract.pairing>, "activate" | "autoActivate">;

export const createActivation = (deps: PairingDeps, codes: CodeGuesses): Activation => {
  const { db, clock, audit, memberships, tenants, devices, failures, settings } = deps;
  const complete = createCompletion(deps);
  const request = createRequest(deps, codes);

  const activeTenant = async (tenantId: TenantId): Promise<TenantFacts> => {
    const tenant = await tenants.find(tenantId);
    if (tenant === null || tenant.status !== "active") throw new AppError("TENANT_SUSPENDED", { details: { tenantId } });
    return tenant;
  };

  /** The user who prepared the activation; null once that user has left the tenant or may no longer pair devices. */
  const preparer = async ({ tenantId, preparedBy, preparedEmail }: Pairing) => {
    const member = tenantId === null || preparedBy === null ? null : await memberships.find(tenantId, preparedBy);
    return member === null || !member.permissions.has("device:pair")
      ? null
      : { permissions: member.permissions, email: preparedEmail ?? member.email, tenantId: member.tenantId };
  };

  return {
    activate: async ({ scope, fail }, { pairing_code, activation_token, user_email, return_to }) => {
      const found = await codes.find(scope, pairing_code);
      if (found === null) throw fail("PAIRING_CODE_NOT_FOUND");
      const now = clock.now();
      const { codeHash } = found;
      const token = { now, codeHash, tokenHash: secretHash(activation_token) };
      const prepared = await findPrepared(db, token);
      if (prepared === null) {
        const attemptsLeft = await countWrongToken(db, codeHash, WRONG_TOKENS_PER_CODE);
        throw attemptsLeft === null ? fail(whyNot(await findByCode(db, codeHash, now), null)) : fail("ACTIVATION_TOKEN_INVALID", { attemptsLeft });
      }
      const user = await preparer(prepared);
      if (user === null) throw fail("ACTIVATION_TOKEN_INVALID", { reason: "user_may_not_pair" });
      if (!mayActivateAs(user, user_email)) throw fail("FORBIDDEN", { reason: "user_email_mismatch" });
      const tenant = await activeTenant(user.tenantId);
      const hosts = [...settings.returnHosts, ...(tenant.returnHosts ?? [])];
      if (return_to !== undefined && !isReturnAllowed(return_to, { portalUrl: settings.portalUrl(), hosts })) throw fail("RETURN_URL_NOT_ALLOWED");
      return db.tx(async (tx) => {
        audit.begin(tx);
        const pairing = await activateByToken(tx, token);
        if (pairing === null) throw fail(whyNot(await findByCode(tx, codeHash, now), null));
        const replacement = { means: "code", actor: actorOfUser(pairing.preparedBy ?? ""), allowed: pairing.replacesDeviceId } as const;
        const activated = await complete(tx, scope, { pairing, tenant, replacement, userEmail: () => user_email });
        return { ...activated, ...(return_to === undefined ? {} : { return_to }) };
      });
    },

    autoActivate: async ({ scope, fail }, { enrollment_token, pairing_code, user_email }) => {
      const now = clock.now();
      const token = await findGood(db, secretHash(enrollment_token), now);
      if (token === null) {
        const { allowed, retryAfterSeconds, limit, resetAt } = await failures.take(scope.ip);
        if (allowed) throw fail("ENROLLMENT_TOKEN_INVALID");
        throw new AppError("RATE_LIMIT_EXCEEDED", {
          details: { bucket: "pairing.autoActivate.ip", limit, windowSeconds: 60, resetAt: resetAt.toISOString() },
          retryAfter: retryAfterSeconds,
        });
      }
      const found = await codes.find(scope, pairing_code);
      if (found === null) throw fail("PAIRING_CODE_NOT_FOUND");
      const claim = { now, codeHash: found.codeHash, preparedBy: token.tokenId };
      const tenant = await activeTenant(token.tenantId);
      if (token.approval === "required") {
        const { expiresAt } = await request(scope, { token, found, now });
        throw fail("PAIRING_APPROVAL_REQUIRED", { expiresAt: expiresAt.toISOString(), pollAfterSeconds: POLL_SECONDS });
      }
      return db.tx(async (tx) => {
        audit.begin(tx);
        const pairing = await activateForTenant(tx, token, claim);
        if (pairing === null) {
          const deviceId = await findPairedBy(tx, token, claim);
          const again = deviceId === null ? null : await devices.reissue(tx, token, deviceId);
          if (again !== null) return withAddresses(again, settings);
          const reason = whyNot(await findByCode(tx, found.codeHash, now), token);
          if (reason === "PAIRING_CODE_NOT_FOUND") await codes.count(scope);
          throw fail(reason);
        }
        if (!(await takeUse(tx, token, token.tokenId))) throw fail("ENROLLMENT_TOKEN_EXHAUSTED", { tokenId: token.tokenId });
        const replacement = { means: "enrollment_token", actor: token.tokenId, allowed: token.allowRepair ? "any" : "in_repair" } as const;
        const userEmail = (deviceId: string): string => user_email ?? `device+${deviceId}@${tenant.slug}.invalid`;
        return complete(tx, scope, { pairing, tenant, token, replacement, userEmail });
      });
    },
  };
};

interface Claimed {
  readonly pairing: Pairing;
  readonly tenant: TenantFacts;
  readonly token?: EnrollmentToken | undefined;
  /** From the person who approves the machine. */
  readonly wanted?: { readonly name?: string | undefined; readonly tags: readonly string[] };
  readonly replacement: Replacement;
  readonly userEmail: (deviceId: string) => string;
}

/** Uses the transaction's connection only: when many callers race, they hold every connection of the pool. */
export const createEnrolPaired =
  ({ clock, emit, enrol }: Pick<PairingDeps, "clock" | "emit" | "enrol">) =>
  async (tx: Tx, call: OpenScope, { pairing, tenant, token, wanted, replacement, userEmail }: Claimed): Promise<Enrolled> => {
    const { tenantId } = tenant;
    const scope = { tenantId, requestId: call.requestId, ip: call.ip, traceparent: call.traceparent };
    const { fingerprint } = pairing;
    const machine = {
      fingerprint,
      name: wanted?.name ?? pairing.deviceName ?? undefined,
      platform: pairing.platform ?? undefined,
      tags: wanted?.tags ?? token?.tags,
      deploymentId: token?.deploymentId ?? undefined,
    };
    const [device] = await enrol(tx, scope, [machine], replacement);
    if (device === undefined) throw new Error("enrolling one device did not return one device");
    const { device_id: deviceId, agent_id: agentId } = device;
    const paired = { pairingId: pairing.pairingId, deviceId, agentId, userEmail: userEmail(deviceId) };
    await recordDevice(tx, scope, { now: clock.now(), ...paired });
    const data = { deviceId, deviceName: machine.name, fingerprint, status: "activated" };
    await emit(tx, [happened(scope, contract.pairing.events.activated, deviceId, data)]);
    return device;
  };

/** Enrols the machine and writes the audit record, because no `commit` does it for a public operation. */
const createCompletion = (deps: PairingDeps) => {
  const { audit, settings } = deps;
  const enrolPaired = createEnrolPaired(deps);
  return async (tx: Tx, call: OpenScope, claimed: Claimed): Promise<PairingActivateResponse> => {
    const { pairing, tenant, token } = claimed;
    const device = await enrolPaired(tx, call, claimed);
    const actor =
      token === undefined
        ? { type: "user" as const, id: pairing.preparedBy ?? "", email: pairing.preparedEmail }
        : { type: "enrollmentToken" as const, id: token.tokenId, email: null };
    const action = token === undefined ? "pairing.activate" : "pairing.autoActivate";
    const resource = { type: "devices", id: device.device_id };
    await audit.append(tx, { tenantId: tenant.tenantId, actor, action, resource, code: null, call });
    return withAddresses(device, settings);
  };
};

export const withAddresses = (device: Enrolled, settings: PairingSettings): PairingActivateResponse => ({
  ...device,
  connect: connectTo(settings.socketUrl()),
  infrastructure_secrets: {
    TENANT_ID: device.tenant_id,
    DEVICE_ID: device.device_id,
    AGENT_ID: device.agent_id,
    API_URL: settings.publicUrl(),
    SOCKET_URL: settings.socketUrl(),
  },
});
