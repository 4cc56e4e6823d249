// A code becomes a device: with the token that a user prepared, or with an enrollment token. Everything happens in one transaction or not at all.
import { connectTo, contract, type EnrollmentToken, type PairingActivateResponse, permits, type TenantId } from "../../../protocol/index.ts";
import { AppError } from "../../core/errors.ts";
import type { SqlTx } from "../../core/events.ts";
import type { Handlers } from "../../core/feature.ts";
import type { OpenScope, TenantFacts } from "../../core/scope.ts";
import { hashOf, readCode } from "./codes.ts";
import { isReturnAllowed, mayActivateAs } from "./rules.ts";
import { activateByToken, activateForTenant, countWrongToken, findByCode, findPrepared, type Pairing, recordDevice } from "./store/pairings.ts";
import { findGood, takeUse } from "./store/tokens.ts";
import type { PairingDeps } from "./types.ts";

// A token has 256 bits; five wrong ones are not a slip of the finger.
const WRONG_TOKENS_PER_CODE = 5;

type Activation = Pick<Handlers<typeof contract.pairing>, "activate" | "autoActivate">;

/** Why a code cannot be used. */
export const whyNot = (pairing: Pairing | null) => {
  if (pairing === null) return "PAIRING_CODE_NOT_FOUND" as const;
  return pairing.status === "activated" ? ("PAIRING_ALREADY_ACTIVATED" as const) : ("PAIRING_CODE_EXPIRED" as const);
};

export const createActivation = (deps: PairingDeps): Activation => {
  const { db, memberships, tenants, failures, settings } = deps;
  const complete = createCompletion(deps);

  const activeTenant = async (tenantId: TenantId): Promise<TenantFacts> => {
    const tenant = await tenants.find(tenantId);
    if (tenant === null || tenant.status !== "active") throw new AppError("TENANT_SUSPENDED", { details: { tenantId } });
    return tenant;
  };

  /** The user whom the token stands for. Who has left the tenant, or may no longer pair, no longer vouches for a device. */
  const preparer = async ({ tenantId, preparedBy, preparedEmail }: Pairing) => {
    const member = tenantId === null || preparedBy === null ? null : await memberships.find(tenantId, preparedBy);
    return member === null || !permits(member.role, "device:pair")
      ? null
      : { role: member.role, email: preparedEmail ?? member.email, tenantId: member.tenantId };
  };

  return {
    activate: async ({ scope, fail }, { pairing_code, activation_token, user_email, return_to }) => {
      if (return_to !== undefined && !isReturnAllowed(return_to, { portalUrl: settings.portalUrl(), hosts: settings.returnHosts }))
        throw fail("RETURN_URL_NOT_ALLOWED");
      const code = readCode(pairing_code);
      if (code === null) throw fail("PAIRING_CODE_NOT_FOUND");
      const [codeHash, tokenHash] = [hashOf(code), hashOf(activation_token)];
      const prepared = await findPrepared(db, codeHash, tokenHash);
      if (prepared === null) {
        const attemptsLeft = await countWrongToken(db, codeHash, WRONG_TOKENS_PER_CODE);
        throw attemptsLeft === null ? fail(whyNot(await findByCode(db, codeHash))) : fail("ACTIVATION_TOKEN_INVALID", { attemptsLeft });
      }
      const user = await preparer(prepared);
      if (user === null) throw fail("ACTIVATION_TOKEN_INVALID", { reason: "user_may_not_pair" });
      if (!mayActivateAs(user, user_email)) throw fail("FORBIDDEN", { reason: "user_email_mismatch" });
      const tenant = await activeTenant(user.tenantId);
      return db.sqlTx(async (tx) => {
        const pairing = await activateByToken(tx, codeHash, tokenHash);
        if (pairing === null) throw fail(whyNot(await findByCode(tx, codeHash)));
        const activated = await complete(tx, scope, { pairing, tenant, userEmail: () => user_email });
        return { ...activated, ...(return_to === undefined ? {} : { return_to }) };
      });
    },

    autoActivate: async ({ scope, fail }, { enrollment_token, pairing_code, user_email }) => {
      const token = await findGood(db, hashOf(enrollment_token));
      if (token === null) {
        const { allowed, retryAfterSeconds, limit, resetAt } = await failures.take(scope.ip);
        if (allowed) throw fail("ENROLLMENT_TOKEN_INVALID");
        throw new AppError("RATE_LIMIT_EXCEEDED", {
          details: { bucket: "pairing.autoActivate.ip", limit, windowSeconds: 60, resetAt: resetAt.toISOString() },
          retryAfter: retryAfterSeconds,
        });
      }
      const code = readCode(pairing_code);
      if (code === null) throw fail("PAIRING_CODE_NOT_FOUND");
      const codeHash = hashOf(code);
      const tenant = await activeTenant(token.tenantId);
      return db.sqlTx(async (tx) => {
        if (!(await takeUse(tx, token, token.tokenId))) throw fail("ENROLLMENT_TOKEN_EXHAUSTED", { tokenId: token.tokenId });
        const pairing = await activateForTenant(tx, token, { codeHash, preparedBy: token.tokenId });
        if (pairing === null) throw fail(whyNot(await findByCode(tx, codeHash)));
        return complete(tx, scope, { pairing, tenant, token, userEmail: (deviceId) => user_email ?? `device+${deviceId}@${tenant.slug}.invalid` });
      });
    },
  };
};

interface Claimed {
  readonly pairing: Pairing;
  readonly tenant: TenantFacts;
  readonly token?: EnrollmentToken;
  readonly userEmail: (deviceId: string) => string;
}

/** Runs inside the transaction and on its connection alone: a hundred racers hold every connection of the pool. */
const createCompletion =
  ({ emit, enrol, settings }: PairingDeps) =>
  async (tx: SqlTx, call: OpenScope, { pairing, tenant, token, userEmail }: Claimed): Promise<PairingActivateResponse> => {
    const { tenantId } = tenant;
    const scope = { tenantId, requestId: call.requestId, ip: call.ip, traceparent: call.traceparent };
    const { fingerprint } = pairing;
    const [device] = await enrol(tx, scope, [
      {
        fingerprint,
        name: pairing.deviceName ?? undefined,
        platform: pairing.platform ?? undefined,
        tags: token?.tags,
        deploymentId: token?.deploymentId ?? undefined,
      },
    ]);
    if (device === undefined) throw new Error("enrolling one device answers with one");
    const { device_id: deviceId, agent_id: agentId } = device;
    await recordDevice(tx, scope, { pairingId: pairing.pairingId, deviceId, agentId, userEmail: userEmail(deviceId) });
    await emit(tx, [{ scope, event: contract.pairing.events.activated, subjectId: deviceId, data: { deviceId, fingerprint, status: "activated" } }]);
    const infrastructure_secrets = {
      TENANT_ID: tenantId,
      DEVICE_ID: deviceId,
      AGENT_ID: agentId,
      API_URL: settings.publicUrl(),
      SOCKET_URL: settings.socketUrl(),
    };
    return { ...device, connect: connectTo(settings.socketUrl()), infrastructure_secrets };
  };
