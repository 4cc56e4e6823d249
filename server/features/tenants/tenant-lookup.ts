// Finds tenants and members for the transports and the other features. Caches them for a moment.

import type { ToLimit } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import type { Membership, Memberships, TenantLookup } from "../../core/ports/lookups.ts";
import type { TenantFacts } from "../../core/scope.ts";
import { createCached } from "../../core/structures/cached.ts";
import { findFacts, findMembership, findSuspended, listMemberships } from "./store/tenants.ts";

// A removed member or a suspended tenant keeps its access on other nodes for up to this long; an open stream, which asks now and then, for twice as long.
const CACHE_MS = 2_500;
// Never occurs in a tenant id, so two pairs never share a cache key.
const SEPARATOR = "\u0000";

interface TenantLookupDeps {
  readonly db: Clients;
  readonly clock: Clock;
  readonly toLimit: ToLimit;
}

export const createTenantLookup = ({ db, clock, toLimit }: TenantLookupDeps) => {
  const facts = createCached<TenantFacts>({ load: (tenantId) => findFacts(db, tenantId), clock, ttlMs: CACHE_MS });
  const members = createCached<Membership>({
    load: (key) => {
      const end = key.indexOf(SEPARATOR);
      return findMembership(db, toLimit, { tenantId: key.slice(0, end), userId: key.slice(end + 1) });
    },
    clock,
    ttlMs: CACHE_MS,
  });
  const lookup: TenantLookup = { find: facts.get, peek: facts.peek, suspended: (tenantIds) => findSuspended(db, tenantIds) };
  const memberships: Memberships = {
    find: (tenantId, userId) => members.get(`${tenantId}${SEPARATOR}${userId}`),
    list: (userId) => listMemberships(db, toLimit, userId),
  };
  return {
    lookup,
    memberships,
    forgetTenant: (tenantId: string) => facts.forget([tenantId]),
    /** After a change of a role, which any member may have, or of a fleet, which any may be limited to. */
    forgetMembers: members.forgetAll,
    forgetMember: (tenantId: string, userId: string) => members.forget([`${tenantId}${SEPARATOR}${userId}`]),
  };
};
