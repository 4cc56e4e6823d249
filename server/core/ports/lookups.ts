// The reads by which the gateway identifies a caller: tenants, memberships, API keys, sessions, stream tickets. Answers may be up to five seconds old.
import type { DeviceId, FleetSelector, KeyId, SessionId, TenantId } from "../../../protocol/index.ts";
import type { Clients } from "../database.ts";
import type { Access, OpenImpersonation, SystemScope, TenantFacts } from "../scope.ts";

export interface TenantLookup {
  find(tenantId: string): Promise<TenantFacts | null>;
  /** What `find` would return without a read; null when it would read. */
  peek(tenantId: string): TenantFacts | null;
  /** The tenants among these that are not active, read without the cache. */
  suspended(tenantIds: readonly string[]): Promise<ReadonlySet<string>>;
}

export interface Membership extends Access {
  readonly tenantId: TenantId;
  readonly email: string | null;
}

export interface Memberships {
  find(tenantId: string, userId: string): Promise<Membership | null>;
  /** Oldest first, at most 100. */
  list(userId: string): Promise<readonly Membership[]>;
}

/** Its access is what both the key and its creator have now. */
export interface ApiKeyRecord extends Access {
  readonly keyId: KeyId;
  readonly tenantId: TenantId;
  /** `revoked` also when the creator is no longer a member. */
  readonly status: "active" | "expired" | "revoked";
  /** CIDR blocks, which the gateway compares; empty allows any address. */
  readonly ipAllowlist: readonly string[];
}

export interface ApiKeyLookup {
  /** Null: no such key. Rejects a key with a wrong checksum as `api_key_malformed` without any read. */
  find(apiKey: string): Promise<ApiKeyRecord | null>;
  /** Notes when and from where the key was last used; a job writes it down. */
  used(key: Pick<ApiKeyRecord, "keyId" | "tenantId">, ip: string): void;
}

export interface SessionRecord {
  readonly sessionId: SessionId;
  readonly userId: string;
  readonly email: string | null;
  readonly emailVerified: boolean;
  /** The only tenant that the session may act in; null: any of the user's. */
  readonly claimedTenantId: string | null;
  readonly csrfTokens: readonly string[];
  readonly signedInAt: Date;
}

/** Null: unknown, ended or expired. To find a session is to use it. */
export interface SessionLookup {
  /** By the secret in its cookie. */
  find(secret: string): Promise<SessionRecord | null>;
  byId(sessionId: string): Promise<SessionRecord | null>;
}

/** Begins the token of an impersonation; no JWT begins so. */
export const IMPERSONATION_TOKEN = "simp_";

/** Null: unknown, ended or expired. Not cached, so the first call after an end is refused on every node. */
export interface ImpersonationLookup {
  find(token: string): Promise<OpenImpersonation | null>;
  byId(impersonationId: string): Promise<OpenImpersonation | null>;
}

export interface StreamTicketOwner {
  readonly tenantId: TenantId;
  readonly userId: string;
  /** Null for a ticket that an access token asked for. */
  readonly sessionId: string | null;
  /** The impersonation that asked for it. */
  readonly impersonationId: string | null;
}

export interface StreamTickets {
  /** A ticket works once. Null when it is unknown, used or expired. */
  redeem(ticket: string): Promise<StreamTicketOwner | null>;
}

/** Devices, as far as the command feature needs them. */
export interface DeviceLookup {
  /** False for a caller who is limited to other devices. */
  isVisible(scope: SystemScope, deviceId: string): Promise<boolean>;
  find(scope: SystemScope, deviceId: string): Promise<{ readonly deviceId: string; readonly status: string; readonly lastSeenAt: Date | null } | null>;
  /** The devices among these that the caller sees. */
  visible(scope: SystemScope, deviceIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** The devices that the selector selects and the caller sees: how many, and the first `limit` of them by id. */
  matching(scope: SystemScope, selector: FleetSelector, limit: number): Promise<Matching>;
}

export interface Matching {
  readonly deviceIds: readonly DeviceId[];
  readonly count: number;
}

/** The ids of what is limited to the fleet, at most so many. */
export type FindLimited = (db: Clients, scope: SystemScope, fleetId: string, limit: number) => Promise<readonly string[]>;
