// Rows of enrollment tokens: a secret of the install scripts, kept as a hash, counted down in the database.
import type { DeploymentId, EnrollmentToken, Id, TenantId, Window } from "../../../../protocol/index.ts";
import type { SqlTx } from "../../../core/events.ts";
import type { SystemScope } from "../../../core/scope.ts";

type TokenId = Id<"ent">;

interface TokenRow {
  readonly token_id: TokenId;
  readonly tenant_id: TenantId;
  readonly name: string;
  readonly max_uses: number | null;
  readonly uses: number;
  readonly tags: readonly string[];
  readonly deployment_id: DeploymentId | null;
  readonly allow_repair: boolean;
  readonly created_by: string;
  readonly expires_at: Date;
  readonly created_at: Date;
}

const toToken = (row: TokenRow): EnrollmentToken => ({
  tokenId: row.token_id,
  tenantId: row.tenant_id,
  name: row.name,
  maxUses: row.max_uses,
  uses: row.uses,
  tags: [...row.tags],
  deploymentId: row.deployment_id,
  allowRepair: row.allow_repair,
  createdBy: row.created_by,
  expiresAt: row.expires_at.toISOString(),
  createdAt: row.created_at.toISOString(),
});

const COLUMNS = "token_id, tenant_id, name, max_uses, uses, tags, deployment_id, allow_repair, created_by, expires_at, created_at";
const GOOD = "revoked_at is null and expires_at > now()";

/** For the plan: tokens that can still be used. */
export const countTokens = async (sql: SqlTx, { tenantId }: SystemScope): Promise<number> => {
  const [row] = await sql.query<{ live: number }>(
    `select count(*) as live from enrollment_tokens where tenant_id = $1 and ${GOOD} and (max_uses is null or uses < max_uses)`,
    [tenantId],
  );
  return row?.live ?? 0;
};

export interface NewToken {
  readonly tokenId: TokenId;
  readonly hash: Uint8Array;
  readonly name: string;
  readonly maxUses: number | null;
  readonly tags: readonly string[];
  readonly deploymentId: DeploymentId | null;
  readonly allowRepair: boolean;
  readonly createdBy: string;
  readonly lifeSeconds: number;
}

export const insertToken = async (tx: SqlTx, { tenantId }: SystemScope, token: NewToken): Promise<EnrollmentToken> => {
  const [row] = await tx.query<TokenRow>(
    `insert into enrollment_tokens (token_id, tenant_id, hash, name, max_uses, tags, deployment_id, created_by, allow_repair, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + make_interval(secs => $10)) returning ${COLUMNS}`,
    [token.tokenId, tenantId, token.hash, token.name, token.maxUses, token.tags, token.deploymentId, token.createdBy, token.allowRepair, token.lifeSeconds],
  );
  if (row === undefined) throw new Error("an insert answers with its row");
  return toToken(row);
};

export const pageOfTokens = async (sql: SqlTx, { tenantId }: SystemScope, { limit, offset }: Window): Promise<{ items: EnrollmentToken[]; total: number }> => {
  const rows = await sql.query<TokenRow>(
    `select ${COLUMNS} from enrollment_tokens where tenant_id = $1 and revoked_at is null order by created_at desc, token_id desc limit $2 offset $3`,
    [tenantId, limit, offset],
  );
  const [count] = await sql.query<{ total: number }>("select count(*) as total from enrollment_tokens where tenant_id = $1 and revoked_at is null", [tenantId]);
  return { items: rows.map(toToken), total: count?.total ?? 0 };
};

/** False when there is none that is not yet revoked. */
export const revokeToken = async (sql: SqlTx, { tenantId }: SystemScope, tokenId: string): Promise<boolean> =>
  (
    await sql.query("update enrollment_tokens set revoked_at = now() where tenant_id = $1 and token_id = $2 and revoked_at is null returning token_id", [
      tenantId,
      tokenId,
    ])
  ).length === 1;

/** Before any tenant is known: the hash is the credential. */
export const findGood = async (sql: SqlTx, hash: Uint8Array): Promise<EnrollmentToken | null> => {
  const [row] = await sql.query<TokenRow>(`select ${COLUMNS} from enrollment_tokens where hash = $1 and ${GOOD}`, [hash]);
  return row === undefined ? null : toToken(row);
};

/** Takes one use, or nothing when there is none left. The row stays locked, so the count is never overrun. */
export const takeUse = async (tx: SqlTx, { tenantId }: SystemScope, tokenId: string): Promise<boolean> =>
  (
    await tx.query(
      `update enrollment_tokens set uses = uses + 1 where tenant_id = $1 and token_id = $2 and ${GOOD} and (max_uses is null or uses < max_uses) returning token_id`,
      [tenantId, tokenId],
    )
  ).length === 1;

export interface OwnToken {
  readonly tokenId: TokenId;
  readonly hash: Uint8Array;
}

/** The live tokens of a name, with what is needed to recognise them. */
export const findNamed = async (sql: SqlTx, { tenantId }: SystemScope, name: string): Promise<readonly OwnToken[]> =>
  (
    await sql.query<{ token_id: TokenId; hash: Uint8Array }>(
      `select token_id, hash from enrollment_tokens where tenant_id = $1 and name = $2 and ${GOOD} order by created_at desc limit 20`,
      [tenantId, name],
    )
  ).map(({ token_id: tokenId, hash }) => ({ tokenId, hash }));

export const prolong = async (
  sql: SqlTx,
  { tenantId }: SystemScope,
  { tokenId, lifeSeconds }: { readonly tokenId: string; readonly lifeSeconds: number },
): Promise<void> => {
  await sql.query("update enrollment_tokens set expires_at = now() + make_interval(secs => $3) where tenant_id = $1 and token_id = $2", [
    tenantId,
    tokenId,
    lifeSeconds,
  ]);
};

const SWEEP_ROWS = 1_000;

export const deleteOldTokens = async (sql: SqlTx, keptDays: number): Promise<boolean> => {
  const rows = await sql.query(
    `delete from enrollment_tokens where token_id in (
       select token_id from enrollment_tokens where least(revoked_at, expires_at) < now() - make_interval(days => $1) limit ${SWEEP_ROWS}) returning token_id`,
    [keptDays],
  );
  return rows.length === SWEEP_ROWS;
};
