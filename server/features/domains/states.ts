// The states of a custom domain and the changes between them. A change that is not listed here does not happen.
import type { DomainStatus } from "../../../protocol/index.ts";
import { createStateMachine } from "../../core/structures/state-machine.ts";

const NEXT: Readonly<Record<DomainStatus, readonly DomainStatus[]>> = {
  pending_verification: ["verified", "failed", "expired"],
  verified: ["issuing_certificate", "active", "failed"],
  issuing_certificate: ["active", "failed"],
  active: ["degraded", "failed"],
  degraded: ["active", "failed"],
  failed: ["pending_verification"],
  expired: ["pending_verification"],
};

export const DOMAIN_TARGET = {
  verified: "verified",
  ordered: "issuing_certificate",
  served: "active",
  moved: "degraded",
  lost: "failed",
  timedOut: "expired",
  restarted: "pending_verification",
} as const satisfies Readonly<Record<string, DomainStatus>>;
export type DomainStep = keyof typeof DOMAIN_TARGET;

export const { move: moveDomain, can: canMoveDomain } = createStateMachine<DomainStatus, DomainStep>(NEXT, DOMAIN_TARGET);

/** In these states the name is the tenant's. */
const OWNED: ReadonlySet<string> = new Set<DomainStatus>(["verified", "issuing_certificate", "active", "degraded"]);
export const isOwned = (status: string): boolean => OWNED.has(status);

/** In these states visitors are served. */
const SERVED: ReadonlySet<string> = new Set<DomainStatus>(["active", "degraded"]);
export const isServed = (status: string): boolean => SERVED.has(status);
