// Rows of API keys. The key itself is never here, only its hash.
import { type ApiKey, isRole, type KeyId, type Role, type TenantId, type Window } from "../../../protocol/index.ts";
import type { SqlTx } from "../../core/events.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { MadeKey } from "./keys.ts";

interface KeyRow {
  readonly key_id: KeyId;
  readonly tenant_id: TenantId;
  readonly name: string;
  readonly role: string;
  readonly prefix: string;
  readonly last4: string;
  readonly status: ApiKey["status"];
  readonly ip_allowlist: readonly string[];
  readonly created_by: string;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly version: number;
  readonly expires_at: Date | null;
  readonly last_used_at: Date | null;
}

// A role that this release does not know grants the least.
const toRole = (role: string): Role => (isRole(role) ? role : "viewer");

const toKey = (row: KeyRow): ApiKey => ({
  keyId: row.key_id,
  tenantId: row.tenant_id,
  name: row.name,
  role: toRole(row.role),
  prefix: row.prefix,
  last4: row.last4,
  status: row.status,
  ipAllowlist: [...row.ip_allowlist],
  createdBy: row.created_by,
  createdAt: row.created_at.toISOString(),
  updatedAt: row.updated_at.toISOString(),
  version: row.version,
  expiresAt: row.expires_at?.toISOString() ?? null,
  lastUsedAt: row.last_used_at?.toISOString() ?? null,
});

const STATUS = "case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired' else 'active' end";
const COLUMNS = `key_id, tenant_id, name, role, prefix, last4, ${STATUS} as status, ip_allowlist, created_by, created_at, updated_at, version, expires_at, last_used_at`;
const USABLE = "revoked_at is null and (expires_at is null or expires_at > now())";

/** For the plan: keys that still open something. */
export const countKeys = async (sql: SqlTx, { tenantId }: SystemScope): Promise<number> => {
  const [row] = await sql.query<{ usable: number }>(`select count(*) as usable from api_keys where tenant_id = $1 and ${USABLE}`, [tenantId]);
  return row?.usable ?? 0;
};

export interface NewKey extends Omit<MadeKey, "apiKey"> {
  readonly keyId: KeyId;
  readonly name: string;
  readonly role: Role;
  readonly ipAllowlist: readonly string[];
  readonly createdBy: string;
  /** Null: does not expire. */
  readonly expiresInDays: number | null;
}

export const insertKey = async (tx: SqlTx, { tenantId }: SystemScope, key: NewKey): Promise<ApiKey> => {
  const [row] = await tx.query<KeyRow>(
    `insert into api_keys (key_id, tenant_id, name, role, prefix, last4, hash, ip_allowlist, created_by, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + make_interval(days => $10)) returning ${COLUMNS}`,
    [key.keyId, tenantId, key.name, key.role, key.prefix, key.last4, key.hash, key.ipAllowlist, key.createdBy, key.expiresInDays],
  );
  if (row === undefined) throw new Error("an insert answers with its row");
  return toKey(row);
};

export const findKey = async (sql: SqlTx, { tenantId }: SystemScope, keyId: string): Promise<ApiKey | null> => {
  const [row] = await sql.query<KeyRow>(`select ${COLUMNS} from api_keys where tenant_id = $1 and key_id = $2`, [tenantId, keyId]);
  return row === undefined ? null : toKey(row);
};

export const pageOfKeys = async (sql: SqlTx, { tenantId }: SystemScope, { limit, offset }: Window): Promise<{ items: ApiKey[]; total: number }> => {
  const rows = await sql.query<KeyRow>(`select ${COLUMNS} from api_keys where tenant_id = $1 order by created_at desc, key_id desc limit $2 offset $3`, [
    tenantId,
    limit,
    offset,
  ]);
  const [count] = await sql.query<{ total: number }>("select count(*) as total from api_keys where tenant_id = $1", [tenantId]);
  return { items: rows.map(toKey), total: count?.total ?? 0 };
};

export interface KeyChange {
  readonly name?: string | undefined;
  readonly ipAllowlist?: readonly string[] | undefined;
  readonly version?: number | undefined;
}

/** Null when the version has moved on or the key is gone. */
export const updateKey = async (tx: SqlTx, { tenantId }: SystemScope, keyId: string, { name, ipAllowlist, version }: KeyChange): Promise<ApiKey | null> => {
  const [row] = await tx.query<KeyRow>(
    `update api_keys set name = coalesce($3, name), ip_allowlist = coalesce($4::text[], ip_allowlist), version = version + 1, updated_at = now()
     where tenant_id = $1 and key_id = $2 and version = coalesce($5, version) returning ${COLUMNS}`,
    [tenantId, keyId, name ?? null, ipAllowlist ?? null, version ?? null],
  );
  return row === undefined ? null : toKey(row);
};

/** The old key stays good for the grace; one that was itself in its grace ends now. Null when there is no usable key. */
export const replaceKey = async (
  tx: SqlTx,
  { tenantId }: SystemScope,
  { keyId, made, graceSeconds }: { readonly keyId: string; readonly made: MadeKey; readonly graceSeconds: number },
): Promise<ApiKey | null> => {
  const [row] = await tx.query<KeyRow>(
    `update api_keys set previous_hash = hash, previous_valid_until = now() + make_interval(secs => $6), hash = $3, prefix = $4, last4 = $5, version = version + 1, updated_at = now()
     where tenant_id = $1 and key_id = $2 and ${USABLE} returning ${COLUMNS}`,
    [tenantId, keyId, made.hash, made.prefix, made.last4, graceSeconds],
  );
  return row === undefined ? null : toKey(row);
};

export const revokeKey = async (tx: SqlTx, { tenantId }: SystemScope, keyId: string): Promise<ApiKey | null> => {
  const [row] = await tx.query<KeyRow>(
    `update api_keys set revoked_at = now(), version = version + 1, updated_at = now() where tenant_id = $1 and key_id = $2 and revoked_at is null returning ${COLUMNS}`,
    [tenantId, keyId],
  );
  return row === undefined ? null : toKey(row);
};

/** Before any tenant is known: the hash is the credential. A key whose grace is over counts as revoked. */
export const findByHash = async (sql: SqlTx, hash: Uint8Array): Promise<ApiKey | null> => {
  const [row] = await sql.query<KeyRow>(
    `select ${COLUMNS.replace(STATUS, `case when hash <> $1 and coalesce(previous_valid_until <= now(), true) then 'revoked' else ${STATUS} end`)}
     from api_keys where hash = $1 or previous_hash = $1`,
    [hash],
  );
  return row === undefined ? null : toKey(row);
};

/** One bootstrap at a time in this tenant, until the transaction ends. */
export const lockBootstrap = async (tx: SqlTx, { tenantId }: SystemScope): Promise<void> => {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('bootstrap key of ' || $1, 0))", [tenantId]);
};

export const findUsableNamed = async (
  sql: SqlTx,
  { tenantId }: SystemScope,
  { name, createdBy }: { readonly name: string; readonly createdBy: string },
): Promise<{ keyId: KeyId; hash: Buffer } | null> => {
  const [row] = await sql.query<{ key_id: KeyId; hash: Buffer }>(
    `select key_id, hash from api_keys where tenant_id = $1 and name = $2 and created_by = $3 and expires_at is null and ${USABLE} order by created_at limit 1`,
    [tenantId, name, createdBy],
  );
  return row === undefined ? null : { keyId: row.key_id, hash: row.hash };
};

/** Many at once; a use within a minute of the last written one is not worth a write. */
export const writeUses = async (sql: SqlTx, uses: ReadonlyMap<string, Date>): Promise<void> => {
  await sql.query(
    `update api_keys k set last_used_at = u.at from unnest($1::text[], $2::timestamptz[]) as u(key_id, at)
     where k.key_id = u.key_id and (k.last_used_at is null or k.last_used_at <= u.at - interval '60 seconds')`,
    [[...uses.keys()], [...uses.values()]],
  );
};
