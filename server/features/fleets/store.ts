// Rows of fleets.
import type { z } from "zod";
import { Prisma } from "../../../prisma/generated/client.ts";
import { Fleet, FleetSelector, type Page } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { createListing, likeLiteral } from "../../core/rows/listing.ts";
import { given, type RowOf, recordOf } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import { statement } from "../../core/statements.ts";

/** The feature of devices counts them. */
const StoredFleet = Fleet.omit({ deviceCount: true, activeRollouts: true });
export type StoredFleet = z.infer<typeof StoredFleet>;

const selectorOf = (stored: unknown): FleetSelector | null => (stored === null ? null : FleetSelector.parse(stored));
type Row = Omit<RowOf<typeof StoredFleet>, "membership"> & { readonly selector: unknown };
const toFleet = (row: Row): StoredFleet => {
  const selector = selectorOf(row.selector);
  return recordOf(StoredFleet, { ...row, selector, membership: selector === null ? "static" : "dynamic" });
};

/** For the plan. */
export const countFleets = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).fleet.count();

const list = createListing("fleets", { createdAt: { kind: "time" }, name: { kind: "text" } }, { column: "fleetId", kind: "text" });
type FleetsQuery = Parameters<typeof list>[0] & { readonly membership?: Fleet["membership"] | undefined; readonly q?: string | undefined };

/** A page of these fleets only; null: of all. */
export const pageOfFleets = (db: Clients, scope: SystemScope, query: FleetsQuery, among: readonly string[] | null): Promise<Page<StoredFleet>> => {
  const { fleet } = db.for(scope);
  const { membership, q } = query;
  const where = {
    ...(among === null ? {} : { fleetId: { in: [...among] } }),
    ...(membership === undefined ? {} : { selector: membership === "static" ? { equals: Prisma.DbNull } : { not: Prisma.DbNull } }),
    ...(q === undefined ? {} : { name: { contains: likeLiteral(q), mode: "insensitive" as const } }),
  };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => fleet.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => fleet.count({ where }),
    record: toFleet,
  });
};

export const allFleets = async (db: Clients, scope: SystemScope): Promise<readonly StoredFleet[]> => (await db.for(scope).fleet.findMany()).map(toFleet);

export const findFleet = async (db: Clients, scope: SystemScope, fleetId: string): Promise<StoredFleet | null> => {
  const row = await db.for(scope).fleet.findFirst({ where: { fleetId } });
  return row === null ? null : toFleet(row);
};

export interface NewFleet {
  readonly fleetId: string;
  readonly name: string;
  readonly selector: FleetSelector | null;
  readonly createdBy: string;
}
export const insertFleet = async (db: Clients, scope: SystemScope, { selector, ...fleet }: NewFleet): Promise<StoredFleet> =>
  toFleet(await db.for(scope).fleet.create({ data: { ...fleet, selector: selector ?? Prisma.DbNull } }));

export interface FleetChange {
  readonly name?: string | undefined;
  readonly selector?: FleetSelector | undefined;
  readonly updatePolicyId?: string | null | undefined;
  /** Changes nothing unless this is the current version; undefined skips the check. */
  readonly version?: number | undefined;
}

/** Null when the version has moved on or the fleet is gone. */
export const updateFleet = async (db: Clients, scope: SystemScope, fleetId: string, { version, ...change }: FleetChange): Promise<StoredFleet | null> => {
  const where = { fleetId, ...given({ version }) };
  const [row] = await db.for(scope).fleet.updateManyAndReturn({ where, data: { ...given(change), version: { increment: 1 } } });
  return row === undefined ? null : toFleet(row);
};

/** False when the fleet is gone. */
export const deleteFleet = async (db: Clients, scope: SystemScope, fleetId: string): Promise<boolean> =>
  (await db.for(scope).fleet.deleteMany({ where: { fleetId } })).count === 1;

const LOCK_ONE = statement<{ readonly fleet_id: string }>(
  "fleets.lockOne",
  "select f.fleet_id from fleets f where f.tenant_id = $1 and f.fleet_id = $2 for no key update",
);
/** Until the transaction ends, nobody else changes the fleet or its devices. */
export const lockFleet = async (tx: SqlTx, { tenantId }: SystemScope, fleetId: string): Promise<void> => {
  await tx.query(LOCK_ONE, [tenantId, fleetId]);
};

const HOLD = statement<{ readonly fleet_id: string; readonly selector: unknown }>(
  "fleets.hold",
  "select f.fleet_id, f.selector from fleets f where f.tenant_id = $1 and f.fleet_id = any($2::text[]) order by f.fleet_id for share",
);
/** The selectors of those of the fleets that exist, which nobody changes or deletes until the transaction ends. */
export const holdFleets = async (tx: SqlTx, { tenantId }: SystemScope, fleetIds: readonly string[]): Promise<ReadonlyMap<string, FleetSelector | null>> => {
  const rows = await tx.query(HOLD, [tenantId, fleetIds]);
  return new Map(rows.map(({ fleet_id, selector }) => [fleet_id, selectorOf(selector)]));
};

/** The selectors of the dynamic ones among these fleets, in the order of their ids. */
export const findSelectors = async (db: Clients, scope: SystemScope, fleetIds: readonly string[]): Promise<readonly FleetSelector[]> => {
  const where = { fleetId: { in: [...fleetIds] }, selector: { not: Prisma.DbNull } };
  const rows = await db.for(scope).fleet.findMany({ where, orderBy: { fleetId: "asc" }, select: { selector: true } });
  return rows.flatMap(({ selector }) => selectorOf(selector) ?? []);
};
