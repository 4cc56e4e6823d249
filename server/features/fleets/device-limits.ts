// Fleets as limits: which of them members, keys and invites may be limited to, and what such a limit selects.
import type { FleetSelector } from "../../../protocol/index.ts";
import type { ToLimit } from "../../core/access.ts";
import type { Clients, Tx } from "../../core/database.ts";
import { AppError } from "../../core/errors.ts";
import type { FindLimited } from "../../core/ports/lookups.ts";
import type { SystemScope } from "../../core/scope.ts";
import { findSelectors, holdFleets } from "./store.ts";

export interface Reference {
  readonly type: "invite" | "member" | "apiKey";
  readonly id: string;
}
/** Who is limited to the fleet, at most so many of each kind. */
export type FindReferences = (tx: Tx, scope: SystemScope, fleetId: string, limit: number) => Promise<readonly Reference[]>;
const MAX_REFERENCES = 20;

export type Referring = Readonly<Record<"invites" | "members" | "apiKeys", { readonly limitedTo: FindLimited }>>;

/** Invites first: whoever accepts one meanwhile is found as a member. */
export const createFindReferences =
  ({ invites, members, apiKeys }: Referring): FindReferences =>
  async (...asked) => {
    const found: Reference[] = [];
    for (const [type, { limitedTo }] of [["invite", invites] as const, ["member", members] as const, ["apiKey", apiKeys] as const])
      for (const id of await limitedTo(...asked)) found.push({ type, id });
    return found;
  };

/** Access that came and went with a device's connection would surprise everybody. */
export const followsStatus = (selector: FleetSelector | null | undefined): boolean => (selector?.status ?? null) !== null;

export const createToLimit =
  (outside: Clients): ToLimit =>
  async (tenantId, selector, db = outside) => {
    const selectors = selector.fleetIds.length === 0 ? [] : await findSelectors(db, { tenantId }, selector.fleetIds);
    return { ...selector, rules: selectors.filter((each) => !followsStatus(each)) };
  };

export const holdForLimit = async (tx: Tx, scope: SystemScope, fleetIds: readonly string[]): Promise<void> => {
  const held = await holdFleets(tx, scope, fleetIds);
  const fleetId = fleetIds.find((each) => !held.has(each));
  if (fleetId !== undefined) throw new AppError("FLEET_NOT_FOUND", { details: { fleetId } });
  const message = "follows the status of devices, so nobody can be limited to this fleet";
  const issues = fleetIds.flatMap((each, at) => (followsStatus(held.get(each)) ? [{ path: `selector.fleetIds.${at}`, code: "custom", message }] : []));
  if (issues.length > 0) throw new AppError("VALIDATION_FAILED", { details: { reason: "fleet_follows_status", issues } });
};

/** Call it after the fleet's row is locked: a limit that holds the row has committed by then, and is found. */
export const createRequireUnused =
  (findReferences: FindReferences) =>
  async (tx: Tx, scope: SystemScope, fleetId: string): Promise<void> => {
    const references = await findReferences(tx, scope, fleetId, MAX_REFERENCES);
    if (references.length > 0) throw new AppError("FLEET_IN_USE", { details: { fleetId, references } });
  };
