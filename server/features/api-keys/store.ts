// Rows of API keys. The database has only the hash of a key.

import { Prisma } from "../../../prisma/generated/client.ts";
import { ApiKey, type DeviceSelector, isRole, type KeyId, type Page, type Role, type TenantId } from "../../../protocol/index.ts";
import { storedSelector } from "../../core/access.ts";
import { DAY_SECONDS, secondsFromNow } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { createListing } from "../../core/rows/listing.ts";
import { given, type RowOf, recordOf } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import { LOCK, statement } from "../../core/statements.ts";
import { orNull } from "../../platform/database/db-errors.ts";
import type { MadeKey } from "./keys.ts";

/** A key that has at most so long to live is expiring. */
const EXPIRING_DAYS = 7;

type KeyRow = Omit<RowOf<typeof ApiKey>, "status"> & { readonly role: string; readonly expiresAt: Date | null; readonly revokedAt: Date | null };

const toKey = (row: KeyRow, now: Date, status = statusOf(row, now)): ApiKey =>
  // A role that this release does not know grants the least.
  recordOf(ApiKey, { ...row, selector: storedSelector(row.selector), role: isRole(row.role) ? row.role : "viewer", status });

const statusOf = ({ expiresAt, revokedAt }: Pick<KeyRow, "expiresAt" | "revokedAt">, now: Date): ApiKey["status"] => {
  if (revokedAt !== null) return "revoked";
  if (expiresAt === null || expiresAt > secondsFromNow(EXPIRING_DAYS * DAY_SECONDS, now)) return "active";
  return expiresAt > now ? "expiring" : "expired";
};

const usable = (now: Date) => ({ revokedAt: null, OR: [{ expiresAt: null }, { expiresAt: { gt: now } }] });

/** For the plan: keys that still work. */
export const countKeys = (db: Clients, scope: SystemScope, now: Date): Promise<number> => db.for(scope).apiKey.count({ where: usable(now) });

export interface KeyToReview {
  readonly tenantId: string;
  readonly keyId: string;
  readonly name: string;
  readonly role: string;
  readonly createdBy: string;
  readonly lastUsedAt: Date | null;
}

/** Keys of all tenants that work, the newest first. */
export const findEveryUsableKey = (db: Clients, limit: number, now: Date): Promise<readonly KeyToReview[]> =>
  db.system.apiKey.findMany({
    where: usable(now),
    orderBy: [{ createdAt: "desc" }, { keyId: "desc" }],
    take: limit,
    select: { tenantId: true, keyId: true, name: true, role: true, createdBy: true, lastUsedAt: true },
  });

/** The ids of keys that still work and are limited to the fleet. */
export const findLimitedKeys = async (
  db: Clients,
  scope: SystemScope,
  { fleetId, limit, now }: { readonly fleetId: string; readonly limit: number; readonly now: Date },
): Promise<readonly string[]> => {
  const where = { ...usable(now), selector: { path: ["fleetIds"], array_contains: [fleetId] } };
  return (await db.for(scope).apiKey.findMany({ where, take: limit, select: { keyId: true } })).map(({ keyId }) => keyId);
};

export interface NewKey extends Omit<MadeKey, "apiKey"> {
  readonly keyId: string;
  readonly name: string;
  readonly role: Role;
  readonly scopes: string[];
  readonly selector: DeviceSelector | null;
  readonly ipAllowlist: string[];
  readonly createdBy: string;
  readonly createdAt: Date;
  /** Null: does not expire. */
  readonly expiresInDays: number | null;
}

export const insertKey = async (db: Clients, scope: SystemScope, { expiresInDays, selector, ...key }: NewKey): Promise<ApiKey> => {
  const expiresAt = expiresInDays === null ? null : secondsFromNow(expiresInDays * DAY_SECONDS, key.createdAt);
  return toKey(await db.for(scope).apiKey.create({ data: { ...key, selector: selector ?? Prisma.DbNull, expiresAt } }), key.createdAt);
};

export const findKey = async (db: Clients, scope: SystemScope, keyId: string, now: Date): Promise<ApiKey | null> => {
  const row = await db.for(scope).apiKey.findFirst({ where: { keyId } });
  return row === null ? null : toKey(row, now);
};

const listKeys = createListing(
  "api-keys",
  { createdAt: { kind: "time" }, name: { kind: "text" }, lastUsedAt: { kind: "time", nullable: true }, expiresAt: { kind: "time", nullable: true } },
  { column: "keyId", kind: "text" },
);

export const pageOfKeys = (db: Clients, scope: SystemScope, query: Parameters<typeof listKeys>[0], now: Date): Promise<Page<ApiKey>> => {
  const { apiKey } = db.for(scope);
  return listKeys(query, { owner: scope.tenantId, rows: (asked) => apiKey.findMany(asked), count: () => apiKey.count(), record: (row) => toKey(row, now) });
};

export interface KeyChange {
  readonly name?: string | undefined;
  readonly scopes?: string[] | undefined;
  /** Undefined keeps the limit, null lifts it. */
  readonly selector?: DeviceSelector | null | undefined;
  readonly ipAllowlist?: string[] | undefined;
  readonly version?: number | undefined;
}

/** Changes the key that `where` finds; null when it finds none. */
const change = async (
  db: Clients,
  scope: SystemScope,
  { where, data }: { readonly where: Prisma.ApiKeyWhereUniqueInput; readonly data: Prisma.ApiKeyUncheckedUpdateInput },
  now: Date,
): Promise<ApiKey | null> => {
  const row = await orNull(db.for(scope).apiKey.update({ where, data: { ...data, version: { increment: 1 } } }));
  return row === null ? null : toKey(row, now);
};

/** Null when the version has moved on or the key is gone. */
export const updateKey = (
  db: Clients,
  scope: SystemScope,
  { keyId, version, selector, ...changed }: KeyChange & { readonly keyId: string },
  now: Date,
): Promise<ApiKey | null> => {
  const data = { ...given(changed), ...(selector === undefined ? {} : { selector: selector ?? Prisma.DbNull }) };
  return change(db, scope, { where: given({ keyId, version }), data }, now);
};

// Prisma cannot move a value from one column to another.
const KEEP_PREVIOUS_HASH = statement(
  "apiKeys.keepPreviousHash",
  "update api_keys set previous_hash = hash where tenant_id = $1 and key_id = $2 and revoked_at is null",
);

/** The old key keeps working for the grace period; the key before it stops now. Null when there is no usable key. */
export const replaceKey = async (
  tx: SqlTx & Clients,
  scope: SystemScope,
  { keyId, made, graceSeconds }: { readonly keyId: string; readonly made: Omit<MadeKey, "apiKey">; readonly graceSeconds: number },
  now: Date,
): Promise<ApiKey | null> => {
  await tx.query(KEEP_PREVIOUS_HASH, [scope.tenantId, keyId]);
  return change(tx, scope, { where: { keyId, ...usable(now) }, data: { ...made, previousValidUntil: secondsFromNow(graceSeconds, now) } }, now);
};

export const revokeKey = (db: Clients, scope: SystemScope, keyId: string, now: Date): Promise<ApiKey | null> =>
  change(db, scope, { where: { keyId, revokedAt: null }, data: { revokedAt: now } }, now);

/** Searches all tenants, because the hash is the credential. A key after its grace period counts as revoked. */
export const findByHash = async (db: Clients, hash: Buffer<ArrayBuffer>, now: Date): Promise<ApiKey | null> => {
  const row = await db.system.apiKey.findFirst({ where: { OR: [{ hash }, { previousHash: hash }] } });
  if (row === null) return null;
  const { previousValidUntil } = row;
  const isOver = !hash.equals(row.hash) && (previousValidUntil === null || previousValidUntil <= now);
  return isOver ? toKey(row, now, "revoked") : toKey(row, now);
};

/** Until the transaction ends, every other bootstrap of this tenant waits. */
export const lockBootstrap = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query(LOCK, [`bootstrap key of ${tenantId}`]);
};

export const findUsableNamed = (
  db: Clients,
  scope: SystemScope,
  named: { readonly name: string; readonly createdBy: string },
  now: Date,
): Promise<{ readonly keyId: string; readonly hash: Uint8Array } | null> =>
  db.for(scope).apiKey.findFirst({ where: { ...named, ...usable(now), expiresAt: null }, orderBy: { createdAt: "asc" }, select: { keyId: true, hash: true } });

const untold = (days: number) => ({ revokedAt: null, OR: [{ noticeDays: null }, { noticeDays: { gt: days } }] });

export interface ExpiringKey {
  readonly tenantId: TenantId;
  readonly keyId: KeyId;
  readonly name: string;
  readonly expiresAt: Date;
}

/** Keys of all tenants that end until then and of which no notice of so few days has told. */
export const findExpiring = async (
  db: Clients,
  { days, now, until, limit }: { readonly days: number; readonly now: Date; readonly until: Date; readonly limit: number },
): Promise<readonly ExpiringKey[]> =>
  (await db.system.apiKey.findMany({
    where: { ...untold(days), expiresAt: { gt: now, lte: until } },
    orderBy: { expiresAt: "asc" },
    take: limit,
    select: { tenantId: true, keyId: true, name: true, expiresAt: true },
  })) as readonly ExpiringKey[]; // as: ids of tenants and keys, and the filter wants a time of expiry

export const writeNotice = async (db: Clients, scope: SystemScope, { keyId, days }: { readonly keyId: string; readonly days: number }): Promise<boolean> =>
  (await db.for(scope).apiKey.updateMany({ where: { keyId, ...untold(days) }, data: { noticeDays: days } })).count === 1;

/** When and from where a key was last used. */
export interface Use {
  readonly at: Date;
  readonly ip: string;
}

/** A key that was last used from another address. */
export interface MovedKey {
  readonly tenantId: string;
  readonly keyId: string;
  readonly ip: string;
}

const WRITE_USES = statement<MovedKey & { readonly moved: boolean }>(
  "apiKeys.writeUses",
  `with u as (select * from unnest($1::text[], $2::timestamptz[], $3::text[]) as given(key_id, at, ip)),
   old as (select k.key_id, k.last_used_ip from api_keys k join u on u.key_id = k.key_id
     where k.last_used_at is null or k.last_used_at <= u.at - interval '60 seconds' order by k.key_id for no key update of k)
   update api_keys k set last_used_at = u.at, last_used_ip = u.ip from u join old on old.key_id = u.key_id where k.key_id = u.key_id
   returning k.tenant_id as "tenantId", k.key_id as "keyId", u.ip, coalesce(old.last_used_ip <> u.ip, false) as moved`,
);

/** Writes many uses in one statement and skips a use within a minute of the last one written. Returns the keys that came from another address. */
export const writeUses = async (sql: SqlTx, uses: ReadonlyMap<string, Use>): Promise<readonly MovedKey[]> => {
  const last = [...uses.values()];
  const written = await sql.query(WRITE_USES, [[...uses.keys()], last.map(({ at }) => at), last.map(({ ip }) => ip)]);
  return written.filter(({ moved }) => moved);
};
