// Rows of blocked entities, and the number by which nodes learn that they have changed.
import { BlockedEntity, type BlockedType, type Page } from "../../../protocol/index.ts";
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { newId } from "../../core/ids.ts";
import { createListing } from "../../core/rows/listing.ts";
import { type RowOf, recordOf } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import { LOCK, statement } from "../../core/statements.ts";
import type { BlockRow } from "./blocked-set.ts";

type Row = Omit<RowOf<typeof BlockedEntity>, "id"> & { readonly blockedEntityId: string };
const toEntity = ({ blockedEntityId, ...row }: Row): BlockedEntity => recordOf(BlockedEntity, { ...row, id: blockedEntityId });

/** A row whose time is over stays until a job tells of it. */
const inForceAt = (now: Date) => ({ OR: [{ expiresAt: null }, { expiresAt: { gt: now } }] });

export const countBlocked = (db: Clients, scope: SystemScope, now: Date): Promise<number> => db.for(scope).blockedEntity.count({ where: inForceAt(now) });

const list = createListing("security.blocked", { createdAt: { kind: "time" } }, { column: "blockedEntityId", kind: "text" });
type BlockedQuery = Parameters<typeof list>[0] & { readonly entityType?: BlockedType | undefined };

export const pageOfBlocked = (db: Clients, scope: SystemScope, query: BlockedQuery, now: Date): Promise<Page<BlockedEntity>> => {
  const { blockedEntity } = db.for(scope);
  const where = { ...inForceAt(now), ...(query.entityType === undefined ? {} : { entityType: query.entityType }) };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => blockedEntity.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => blockedEntity.count({ where }),
    record: toEntity,
  });
};

/** Until the transaction ends, nobody else blocks anything in this tenant. */
export const lockBlocks = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query(LOCK, [`blocked entities of ${tenantId}`]);
};

export interface NewBlock {
  readonly entityType: BlockedType;
  readonly entityValue: string;
  readonly reason: string | null;
  readonly createdBy: string;
  readonly expiresAt: Date | null;
}

/** Null when it is blocked already. */
export const insertBlock = async (tx: Clients & SqlTx, scope: SystemScope, block: NewBlock, now: Date): Promise<BlockedEntity | null> => {
  const { blockedEntity } = tx.for(scope);
  const { entityType, entityValue } = block;
  await blockedEntity.deleteMany({ where: { entityType, entityValue, expiresAt: { lte: now } } });
  const [row] = await blockedEntity.createManyAndReturn({ data: [{ ...block, blockedEntityId: newId("bke") }], skipDuplicates: true });
  if (row === undefined) return null;
  await tx.query(BUMP);
  return toEntity(row);
};

export const findBlock = async (db: Clients, scope: SystemScope, blockedEntityId: string): Promise<BlockedEntity | null> => {
  const row = await db.for(scope).blockedEntity.findFirst({ where: { blockedEntityId } });
  return row === null ? null : toEntity(row);
};

/** Null when there is none. */
export const deleteBlock = async (tx: Clients & SqlTx, scope: SystemScope, blockedEntityId: string): Promise<BlockedEntity | null> => {
  const { blockedEntity } = tx.for(scope);
  const row = await blockedEntity.findFirst({ where: { blockedEntityId } });
  if (row === null || (await blockedEntity.deleteMany({ where: { blockedEntityId } })).count === 0) return null;
  await tx.query(BUMP);
  return toEntity(row);
};

export const blockedUsers = async (db: Clients, scope: SystemScope, now: Date): Promise<ReadonlySet<string>> =>
  new Set(
    (await db.for(scope).blockedEntity.findMany({ where: { ...inForceAt(now), entityType: "user" }, select: { entityValue: true } })).map(
      ({ entityValue }) => entityValue,
    ),
  );

export interface Expired {
  readonly tenantId: string;
  readonly blockedEntityId: string;
}

export const findExpired = (db: Clients, now: Date, limit: number): Promise<readonly Expired[]> =>
  db.system.blockedEntity.findMany({
    where: { expiresAt: { lte: now } },
    orderBy: { expiresAt: "asc" },
    take: limit,
    select: { tenantId: true, blockedEntityId: true },
  });

const BUMP = statement<{ readonly version: number }>(
  "security.bumpBlocks",
  `insert into blocked_entities_version as v (one, version) values (1, 1) on conflict (one) do update set version = v.version + 1 returning version`,
);
const VERSION = statement<{ readonly version: number }>("security.blocksVersion", "select version from blocked_entities_version");
const LOAD = statement<BlockRow>(
  "security.loadBlocks",
  `select tenant_id as "tenantId", entity_type as "entityType", entity_value as "entityValue", (extract(epoch from expires_at - now()) * 1000)::float8 as "leftMs"
   from blocked_entities where expires_at is null or expires_at > now()`,
);

/** 0 while nothing has ever been blocked. */
export const blocksVersion = async (sql: SqlTx): Promise<number> => (await sql.query(VERSION))[0]?.version ?? 0;
export const loadBlocks = (sql: SqlTx): Promise<readonly BlockRow[]> => sql.query(LOAD);
