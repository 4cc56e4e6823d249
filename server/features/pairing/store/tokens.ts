// Rows of enrollment tokens. The database has only their hash and counts their uses.
import { EnrollmentToken, type Page } from "../../../../protocol/index.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing } from "../../../core/rows/listing.ts";
import { type RowOf, recordOf } from "../../../core/rows/records.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { statement } from "../../../core/statements.ts";

const toToken = (row: RowOf<typeof EnrollmentToken>): EnrollmentToken => recordOf(EnrollmentToken, row);

const good = (now: Date) => ({ revokedAt: null, expiresAt: { gt: now } });

const COUNT_LIVE = statement<{ readonly live: number }>(
  "tokens.countLive",
  "select count(*) as live from enrollment_tokens where tenant_id = $1 and revoked_at is null and expires_at > now() and (max_uses is null or uses < max_uses)",
);

/** For the plan: usable tokens. Raw SQL, because Prisma's count cannot compare two columns. */
export const countTokens = async (db: SqlTx, { tenantId }: SystemScope): Promise<number> => {
  const [row] = await db.query(COUNT_LIVE, [tenantId]);
  return row?.live ?? 0;
};

export interface NewToken {
  readonly tokenId: string;
  readonly hash: Uint8Array<ArrayBuffer>;
  readonly name: string;
  readonly maxUses: number | null;
  readonly tags: string[];
  readonly deploymentId: string | null;
  readonly allowRepair: boolean;
  readonly approval: EnrollmentToken["approval"];
  readonly createdBy: string;
  readonly expiresAt: Date;
}

export const insertToken = async (db: Clients, scope: SystemScope, token: NewToken): Promise<EnrollmentToken> =>
  toToken(await db.for(scope).enrollmentToken.create({ data: token }));

const listTokens = createListing(
  "enrollment-tokens",
  { createdAt: { kind: "time" }, name: { kind: "text" }, expiresAt: { kind: "time" } },
  { column: "tokenId", kind: "text" },
);

export const pageOfTokens = (db: Clients, scope: SystemScope, query: Parameters<typeof listTokens>[0]): Promise<Page<EnrollmentToken>> => {
  const { enrollmentToken } = db.for(scope);
  const where = { revokedAt: null };
  return listTokens(query, {
    owner: scope.tenantId,
    rows: (asked) => enrollmentToken.findMany({ ...asked, where: { ...where, ...asked.where } }),
    count: () => enrollmentToken.count({ where }),
    record: toToken,
  });
};

/** False when there is no such token or it was revoked before. */
export const revokeToken = async (db: Clients, scope: SystemScope, tokenId: string, revokedAt: Date): Promise<boolean> =>
  (await db.for(scope).enrollmentToken.updateMany({ where: { tokenId, revokedAt: null }, data: { revokedAt } })).count === 1;

/** Searches all tenants, because the hash is the credential. */
export const findGood = async (db: Clients, hash: Uint8Array<ArrayBuffer>, now: Date): Promise<EnrollmentToken | null> => {
  const row = await db.system.enrollmentToken.findFirst({ where: { hash, ...good(now) } });
  return row === null ? null : toToken(row);
};

const HOLD = statement<{ readonly token_id: string }>(
  "tokens.hold",
  `select token_id from enrollment_tokens
     where tenant_id = $1 and token_id = $2 and revoked_at is null and expires_at > now() and (max_uses is null or uses < max_uses) for no key update`,
);

/** Keeps the token from being revoked until the transaction ends; false when it pairs nobody any more. */
export const holdToken = async (tx: SqlTx, { tenantId }: SystemScope, tokenId: string): Promise<boolean> =>
  (await tx.query(HOLD, [tenantId, tokenId])).length === 1;

const TAKE_USE = statement<{ readonly token_id: string }>(
  "tokens.takeUse",
  `update enrollment_tokens set uses = uses + 1
     where tenant_id = $1 and token_id = $2 and revoked_at is null and expires_at > now() and (max_uses is null or uses < max_uses) returning token_id`,
);

/** Takes one use; false when none is left. Locks the row until the transaction ends, so uses never exceed the maximum. */
export const takeUse = async (tx: SqlTx, { tenantId }: SystemScope, tokenId: string): Promise<boolean> =>
  (await tx.query(TAKE_USE, [tenantId, tokenId])).length === 1;

/** The token whose use was taken. */
export const findToken = async (db: Clients, scope: SystemScope, tokenId: string): Promise<EnrollmentToken> =>
  toToken(await db.for(scope).enrollmentToken.findFirstOrThrow({ where: { tokenId } }));

export interface OwnToken {
  readonly tokenId: string;
  readonly hash: Uint8Array;
}

/** The usable tokens of a name, with their hashes. */
export const findNamed = (db: Clients, scope: SystemScope, name: string, now: Date): Promise<readonly OwnToken[]> =>
  db.for(scope).enrollmentToken.findMany({ where: { name, ...good(now) }, orderBy: { createdAt: "desc" }, take: 20, select: { tokenId: true, hash: true } });

export const prolong = async (
  db: Clients,
  scope: SystemScope,
  { tokenId, expiresAt }: { readonly tokenId: string; readonly expiresAt: Date },
): Promise<void> => {
  await db.for(scope).enrollmentToken.updateMany({ where: { tokenId }, data: { expiresAt } });
};

const SWEEP_ROWS = 1_000;

/** True when there may be more. */
export const deleteOldTokens = async (db: Clients, before: Date): Promise<boolean> => {
  const old = { lt: before };
  const { count } = await db.system.enrollmentToken.deleteMany({ where: { OR: [{ revokedAt: old }, { expiresAt: old }] }, limit: SWEEP_ROWS });
  return count === SWEEP_ROWS;
};
