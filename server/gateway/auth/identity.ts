// Turns a credential into an identity, and an identity into the scope of one operation.
import { isOfTenant, type TenantId } from "../../../protocol/index.ts";
import { NO_ACCESS, whileImpersonated } from "../../core/access.ts";
import { AppError, type Concerned } from "../../core/errors.ts";
import type { AgentRecord } from "../../core/ports/agent-registry.ts";
import type { ApiKeyLookup, ApiKeyRecord, Memberships, StreamTickets, TenantLookup } from "../../core/ports/lookups.ts";
import type { Access, OpenImpersonation, OpenScope, Principal, TenantFacts, UserPrincipal } from "../../core/scope.ts";
import type { Entry } from "../call/operation-table.ts";
import { isWithin, parseNetworks, type RequestInfo } from "../http/request-info.ts";
import { checkStorable } from "../rest/parse.ts";
import type { Credential } from "./credentials.ts";
import { checkImpersonated, type ImpersonationAuth } from "./impersonation.ts";
import type { SessionAuth } from "./session.ts";

export type Identity =
  | { readonly kind: "none" }
  | ({ readonly kind: "user"; readonly userId: string; readonly email: string | null; readonly claimedTenantId: string | null } & SignIn)
  | { readonly kind: "apiKey"; readonly record: ApiKeyRecord }
  | { readonly kind: "agent"; readonly record: AgentRecord };

/** What only a token or a session can tell of its user. */
type SignIn = Pick<UserPrincipal, "emailVerified" | "authTime" | "session"> & { readonly impersonation?: OpenImpersonation };

/** Public operations ask for no credential. */
export const NOBODY: Promise<Identity> = Promise.resolve({ kind: "none" });

export interface VerifiedToken extends Pick<SignIn, "emailVerified" | "authTime"> {
  readonly userId: string;
  readonly email: string | null;
  readonly tenantId: string | null;
  /** The session that got the token; null for a token of the identity provider. */
  readonly sessionId?: string | null;
}

export interface IdentityDeps {
  readonly verifyToken: (token: string) => Promise<VerifiedToken>;
  readonly sessionAuth: SessionAuth;
  readonly impersonationAuth: ImpersonationAuth;
  readonly apiKeys: ApiKeyLookup;
  readonly proveAgent: (credential: Extract<Credential, { kind: "agent" }>, body: Uint8Array) => Promise<AgentRecord>;
  /** For a call that lasts; the time of its signature does not count any more. */
  readonly recheckAgent: IdentityDeps["proveAgent"];
  readonly tickets: StreamTickets;
  readonly tenants: TenantLookup;
  readonly memberships: Memberships;
  /** The tenant in which a user's calls take place if they name none: the one that they chose, or their only one. */
  readonly defaultTenantOf?: (userId: string) => Promise<string | null>;
  /** Users who run the installation; none unless named. */
  readonly admins?: ReadonlySet<string>;
}

const unauthorized = (reason: string, about?: Concerned): AppError => new AppError("UNAUTHORIZED", { details: { reason }, about });
const forbidden = (details: Record<string, unknown>): AppError => new AppError("FORBIDDEN", { details });

const checkApiKey = (record: ApiKeyRecord | null, headerTenantId: string | null, ip: string): ApiKeyRecord => {
  if (record === null) throw unauthorized("api_key_unknown");
  const about: Concerned = { tenantId: record.tenantId, entityType: "key", entityId: record.keyId };
  if (record.status !== "active") throw unauthorized(`api_key_${record.status}`, about);
  if (headerTenantId !== null && record.tenantId !== headerTenantId) throw new AppError("FORBIDDEN", { details: { reason: "tenant_mismatch" }, about });
  if (record.ipAllowlist.length > 0 && !isWithin(ip, parseNetworks(record.ipAllowlist))) throw new AppError("API_KEY_IP_DENIED", { about });
  return record;
};

const identityOf = (impersonation: OpenImpersonation): Identity => {
  const { userId, tenantId } = impersonation;
  return { kind: "user", userId, email: null, claimedTenantId: tenantId, impersonation };
};

/** Proves the credential. The body matters to agents only: their signature covers its bytes. */
export const createAuthenticate =
  (deps: IdentityDeps) =>
  async (credential: Credential, info: Pick<RequestInfo, "ip">, body: Uint8Array): Promise<Identity> => {
    switch (credential.kind) {
      case "none":
        return { kind: "none" };
      case "bearer": {
        const impersonation = await deps.impersonationAuth.prove(credential.token);
        if (impersonation !== null) return identityOf(impersonation);
        const { userId, email, emailVerified, authTime, tenantId, sessionId } = await deps.verifyToken(credential.token);
        const session = sessionId == null ? undefined : await deps.sessionAuth.require(sessionId);
        return { kind: "user", userId, email, emailVerified, authTime, claimedTenantId: tenantId, session };
      }
      case "session": {
        const proven = await deps.sessionAuth.prove(credential);
        return proven === null ? { kind: "none" } : { kind: "user", ...proven };
      }
      case "apiKey": {
        const record = checkApiKey(await deps.apiKeys.find(credential.key), credential.tenantId, info.ip);
        deps.apiKeys.used(record, info.ip);
        return { kind: "apiKey", record };
      }
      case "agent":
        return { kind: "agent", record: await deps.proveAgent(credential, body) };
    }
  };

/** Proves the credential of a call that lasts again. */
export const createReauthenticate = (deps: IdentityDeps): ReturnType<typeof createAuthenticate> =>
  createAuthenticate({ ...deps, proveAgent: deps.recheckAgent });

/** A browser's stream cannot set headers; it brings a ticket that its user got a moment ago. */
export const createRedeem =
  ({ tickets, sessionAuth, impersonationAuth }: Pick<IdentityDeps, "tickets" | "sessionAuth" | "impersonationAuth">) =>
  async (ticket: string): Promise<Identity> => {
    const owner = await tickets.redeem(ticket);
    if (owner === null) throw unauthorized("ticket_invalid");
    if (owner.impersonationId !== null) return identityOf(await impersonationAuth.require(owner.impersonationId));
    const session = owner.sessionId === null ? undefined : await sessionAuth.require(owner.sessionId);
    return { kind: "user", userId: owner.userId, email: null, claimedTenantId: owner.tenantId, session };
  };

/** Throws once the session or the impersonation of an identity that was proven earlier has ended. */
export const createRecheck =
  ({ sessionAuth, impersonationAuth }: Pick<IdentityDeps, "sessionAuth" | "impersonationAuth">) =>
  async (identity: Identity): Promise<Identity> => {
    if (identity.kind !== "user") return identity;
    const { session, impersonation } = identity;
    if (session !== undefined) await sessionAuth.require(session.sessionId);
    if (impersonation !== undefined) await impersonationAuth.require(impersonation.impersonationId);
    return identity;
  };

/** A user names the tenant in the token, the header or the request, in this order; token and header must agree. */
const tenantOf = (claimed: string | null, header: string | undefined, input: unknown, userId: string): string | null => {
  if (claimed !== null && header !== undefined && claimed !== header) {
    const about: Concerned = { tenantId: claimed, entityType: "user", entityId: userId };
    throw new AppError("FORBIDDEN", { details: { reason: "tenant_mismatch" }, about });
  }
  if (claimed !== null || header !== undefined) return claimed ?? header ?? null;
  const named = typeof input === "object" && input !== null ? (input as Record<string, unknown>) : {};
  const tenantId = named["tenantId"] ?? named["tenant_id"];
  if (typeof tenantId !== "string") return null;
  checkStorable(tenantId);
  return tenantId;
};

const checkPermission = ({ op }: Entry, { role, permissions, limits }: Access): void => {
  const { permission } = op;
  if (permission === "self" || permission === "public" || permission === "platform" || permissions.has(permission)) return;
  const details = { requiredPermission: permission, role };
  throw forbidden(limits.length > 0 && isOfTenant(permission) ? { ...details, reason: "limited_access" } : details);
};

const suspended = ({ status, statusSince, statusReason }: TenantFacts): AppError =>
  new AppError("TENANT_SUSPENDED", { details: { status, since: statusSince?.toISOString(), reason: statusReason ?? undefined } });

const checkTenant = (entry: Entry, tenant: TenantFacts | null, kind: Principal["kind"]): TenantFacts => {
  if (tenant === null || tenant.status === "deleted") throw forbidden({ reason: "not_a_member" });
  const { op } = entry;
  // Agents may still report, so the data is intact when the tenant comes back. A live stream would keep its place for nothing.
  if (tenant.status !== "active" && op.kind !== "query" && kind !== "agent" && op.whileSuspended !== true) throw suspended(tenant);
  return tenant;
};

export interface ScopeRequest {
  readonly entry: Entry;
  readonly identity: Identity;
  readonly info: RequestInfo;
  readonly tenantHeader: string | undefined;
  /** As received; read only for a tenant's name. */
  readonly rawInput: unknown;
}

interface Making {
  readonly base: Pick<OpenScope, "requestId" | "ip" | "traceparent" | "userAgent">;
  readonly within: (tenantId: TenantId, principal: Principal) => Promise<OpenScope>;
}

/** A person may stand in a tenant, in none, or above all. */
const scopeOfUser = async (
  deps: Pick<IdentityDeps, "memberships" | "admins" | "defaultTenantOf">,
  { entry, tenantHeader, rawInput }: Pick<ScopeRequest, "entry" | "tenantHeader" | "rawInput">,
  { userId, email, emailVerified, authTime, claimedTenantId, session, impersonation }: Extract<Identity, { kind: "user" }>,
  { base, within }: Making,
): Promise<OpenScope> => {
  const { op } = entry;
  if (impersonation !== undefined) checkImpersonated(entry, impersonation);
  const impersonator = impersonation === undefined ? undefined : { adminId: impersonation.adminId, impersonation };
  const person = { kind: "user", userId, authTime, session, impersonator } as const;
  const outside: OpenScope = { ...base, tenantId: null, tenant: null, principal: { ...person, email, emailVerified, ...NO_ACCESS } };
  if (op.permission === "platform") {
    if (deps.admins?.has(userId) !== true) throw new AppError("ADMIN_REQUIRED");
    return outside;
  }
  const mayStandOutside = op.tenancy !== "tenant";
  const named = mayStandOutside
    ? (claimedTenantId ?? tenantHeader ?? null)
    : tenantOf(claimedTenantId, tenantHeader, rawInput, impersonation?.adminId ?? userId);
  const tenantId = named ?? (op.tenancy === "none" ? null : ((await deps.defaultTenantOf?.(userId)) ?? null));
  const member = tenantId === null ? null : await deps.memberships.find(tenantId, userId);
  if (mayStandOutside && member === null && impersonation === undefined) return outside;
  if (tenantId === null) throw unauthorized("missing_tenant");
  if (member === null) throw forbidden({ reason: "not_a_member" });
  checkPermission(entry, member);
  const { role, limits } = member;
  const permissions = impersonation === undefined ? member.permissions : whileImpersonated(member.permissions, impersonation.readOnly);
  const verified = { email: email ?? member.email, emailVerified: email !== null && emailVerified };
  return within(member.tenantId, { ...person, ...verified, role, permissions, limits });
};

class OpenQuery implements OpenScope {
  readonly requestId: string;
  readonly traceparent: string | null;
  readonly tenantId = null;
  readonly tenant = null;
  readonly principal = null;
  readonly #info: RequestInfo;

  constructor(info: RequestInfo) {
    this.requestId = info.requestId;
    this.traceparent = info.traceparent;
    this.#info = info;
  }

  get ip(): string {
    return this.#info.ip;
  }

  get userAgent(): string | null {
    return this.#info.userAgent ?? null;
  }
}

/** Checks credential kind, tenant and permission. Throws UNAUTHORIZED without a credential, FORBIDDEN with the wrong one. */
export const createScope =
  (deps: Pick<IdentityDeps, "tenants" | "memberships" | "admins" | "defaultTenantOf">) =>
  async ({ entry, identity, info, tenantHeader, rawInput }: ScopeRequest): Promise<OpenScope> => {
    const { op } = entry;
    // A public query rarely needs its caller's address, and a limit that counts by address reads it before the first await.
    if (op.auth.includes("public") && op.kind === "query") return new OpenQuery(info);
    const { requestId, ip, traceparent, userAgent = null } = info;
    if (op.auth.includes("public")) return { requestId, ip, traceparent, userAgent, tenantId: null, tenant: null, principal: null };
    if (identity.kind === "none") throw unauthorized("missing");
    if (!op.auth.includes(identity.kind)) throw forbidden({ reason: "credential_kind", accepted: op.auth });
    const within = async (tenantId: TenantId, principal: Principal): Promise<OpenScope> => {
      const tenant = checkTenant(entry, await deps.tenants.find(tenantId), principal.kind);
      return { requestId, ip, traceparent, userAgent, tenantId, tenant, principal };
    };
    switch (identity.kind) {
      case "agent": {
        const { agentId, deviceId, deploymentId, tenantId } = identity.record;
        return within(tenantId, { kind: "agent", agentId, deviceId, deploymentId });
      }
      case "apiKey": {
        const { keyId, role, permissions, limits, tenantId } = identity.record;
        checkPermission(entry, identity.record);
        return within(tenantId, { kind: "apiKey", keyId, role, permissions, limits });
      }
      case "user":
        return scopeOfUser(deps, { entry, tenantHeader, rawInput }, identity, { base: { requestId, ip, traceparent, userAgent }, within });
    }
  };
