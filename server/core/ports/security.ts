// What the gateway and the features need of security: a place to note what looks like an attack, and whom to refuse.
import type { SecurityEventType, SecuritySubject, TenantId } from "../../../protocol/index.ts";
import { AppError } from "../errors.ts";
import type { OpenScope, Principal } from "../scope.ts";

/** The tenant of rows that belong to the installation. */
export const INSTALLATION = "-" as TenantId; // as: no tenant has this id

export interface SecuritySignal {
  readonly type: SecurityEventType;
  /** Null when no tenant is known: it concerns the installation. */
  readonly tenantId: string | null;
  readonly entityType: SecuritySubject;
  readonly entityId: string;
  readonly ipAddress?: string | null;
  readonly reason?: string | null;
  readonly operation?: string | null;
}

export interface SecurityWatch {
  /** Counts it in memory; a job writes it down. Never throws and never waits. */
  note(signal: SecuritySignal): void;
}

export const unwatched: SecurityWatch = { note: () => undefined };

/** Who calls, as far as it is known. */
export interface BlockedCaller {
  readonly tenantId: string | null;
  readonly ip: string;
  readonly principal: Pick<Principal, "kind"> & { readonly userId?: string; readonly keyId?: string; readonly deviceId?: string };
}

export interface Blocks {
  /** False while nothing is blocked anywhere: then nobody need be looked up. */
  readonly any: boolean;
  /** Whether the whole installation refuses this address. */
  refusesAddress(ip: string): boolean;
  /** Whether the installation or the tenant that the call acts in refuses this caller or its address. */
  refuses(caller: BlockedCaller): boolean;
  /** Calls back when something more is blocked, after `refuses` knows of it. Returns a function that stops it. */
  onBlocked(listener: () => void): () => void;
}

const never = (): void => undefined;
export const nothingBlocked: Blocks = { any: false, refusesAddress: () => false, refuses: () => false, onBlocked: () => never };

export const entityBlocked = (): AppError => new AppError("ENTITY_BLOCKED");

/** Whether the caller of this scope is refused now, even if it was let in. */
export const isBlocked = ({ tenantId, ip, principal }: OpenScope, blocks: Pick<Blocks, "any" | "refuses">): boolean =>
  blocks.any && principal !== null && blocks.refuses({ tenantId, ip, principal });
