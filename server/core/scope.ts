// The scope of a call: its caller and its tenant. Every read of a tenant's rows needs one.
import type { AgentId, DeploymentId, DeviceId, DeviceSelector, FleetSelector, KeyId, Permission, TenantId } from "../../protocol/index.ts";

/** A selector, with the selectors of those of its fleets that are dynamic. */
export interface DeviceLimit extends DeviceSelector {
  readonly rules: readonly FleetSelector[];
}

export interface Access {
  /** The key of a built-in role or of one of the tenant's own. */
  readonly role: string;
  /** What a call may need. A limited caller has no permission that concerns the tenant as a whole. */
  readonly permissions: ReadonlySet<Permission>;
  /** A device has to match each of these. Empty: all devices. */
  readonly limits: readonly DeviceLimit[];
}

/** The session in which a person calls. */
export interface SignedInSession {
  readonly sessionId: string;
  readonly signedInAt: Date;
  /** False: by an access token or a stream ticket that the session got. */
  readonly byCookie: boolean;
}

/** An impersonation that goes on. */
export interface OpenImpersonation {
  readonly impersonationId: string;
  readonly tenantId: TenantId;
  /** The member in whose name the administrator acts. */
  readonly userId: string;
  readonly adminId: string;
  readonly readOnly: boolean;
  readonly expiresAt: Date;
}

/** The administrator of the installation who acts in the user's name. */
export interface Impersonator {
  readonly adminId: string;
  /** Null for work that goes on after the call that ordered it. */
  readonly impersonation: OpenImpersonation | null;
}

export interface UserPrincipal extends Omit<Access, "role"> {
  readonly kind: "user";
  readonly userId: string;
  readonly email: string | null;
  /** The token, or the sign-in of the session, says so of its own address. Absent: no. */
  readonly emailVerified?: boolean | undefined;
  /** When the user signed in, in Unix seconds, if the token tells. */
  readonly authTime?: number | null | undefined;
  /** None for an access token of the identity provider or of the command line. */
  readonly session?: SignedInSession | undefined;
  readonly impersonator?: Impersonator | undefined;
  /** From the membership row; null outside of a tenant. */
  readonly role: string | null;
}

export interface ApiKeyPrincipal extends Access {
  readonly kind: "apiKey";
  readonly keyId: KeyId;
}

export interface AgentPrincipal {
  readonly kind: "agent";
  readonly agentId: AgentId;
  readonly deviceId: DeviceId;
  readonly deploymentId: DeploymentId;
}

export type Principal = UserPrincipal | ApiKeyPrincipal | AgentPrincipal;

/** A number replaces the plan's or the class's figure, null lifts it. */
export type Overrides = Readonly<Record<string, number | null>>;

export interface TenantFacts {
  readonly tenantId: TenantId;
  readonly slug: string;
  readonly plan: string;
  /** Only `active` allows changes. */
  readonly status: string;
  readonly statusSince?: Date;
  /** Why an administrator suspended the tenant. */
  readonly statusReason?: string | null;
  /** Hosts that `return_to` may name, by the tenant's own settings. */
  readonly returnHosts?: readonly string[];
  readonly limitOverrides: Overrides;
  /** Keys are bucket names of protocol/kit/limits.ts; "*" stands for every bucket. */
  readonly rateLimitOverrides: Overrides;
}

interface CallFacts {
  readonly requestId: string;
  /** The caller's address; behind trusted proxies the forwarded one. */
  readonly ip: string;
  readonly traceparent: string | null;
  /** As the caller names its program. */
  readonly userAgent?: string | null;
}

export interface TenantScope extends CallFacts {
  readonly tenantId: TenantId;
  readonly tenant: TenantFacts;
  readonly principal: Principal;
}

export interface OpenScope extends CallFacts {
  readonly tenantId: TenantId | null;
  readonly tenant: TenantFacts | null;
  readonly principal: Principal | null;
}

/** One tenant's rows. Background work has no caller; a caller may be limited to some devices, so hand a call's scope on as it is. */
export type SystemScope = Pick<TenantScope, "tenantId"> & Partial<CallFacts> & { readonly principal?: Principal | null };

const USER = "user:";
export const actorOfUser = (userId: string): string => `${USER}${userId}`;

// No user's id makes a text that begins so, and the escaped administrator holds no colon: nobody can pass for another by a name of their own.
const IMPERSONATED = /^admin:([^:]*):user:/;
/** Names both: the administrator who acts, and the member in whose name. */
const actorOfImpersonator = (adminId: string, userId: string): string => `admin:${encodeURIComponent(adminId)}:${USER}${userId}`;
/** Null for an actor whom nobody impersonates. */
export const adminIdOf = (actor: string): string | null => {
  const [, adminId] = IMPERSONATED.exec(actor) ?? [];
  return adminId === undefined ? null : decodeURIComponent(adminId);
};

/** The user in whose name something was done; null for an actor who is no user. */
export const userIdOf = (actor: string): string | null => {
  const named = actor.replace(IMPERSONATED, USER);
  return named.startsWith(USER) ? named.slice(USER.length) : null;
};

/** Whose something is that people make for themselves alone: the member's, whoever acts in the member's name. */
export const ownerOf = (principal: Principal | null): string => (principal?.kind === "user" ? actorOfUser(principal.userId) : actorOf(principal));

/** The caller's name in rows and logs. */
export const actorOf = (principal: Principal | null): string => {
  if (principal === null) return "system";
  if (principal.kind === "user") {
    const { userId, impersonator } = principal;
    return impersonator === undefined ? actorOfUser(userId) : actorOfImpersonator(impersonator.adminId, userId);
  }
  return principal.kind === "apiKey" ? principal.keyId : principal.agentId;
};
