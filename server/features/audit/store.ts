// Rows of the audit log and the ends of its chains.
import type { Prisma } from "../../../prisma/generated/client.ts";
import type { Page } from "../../../protocol/index.ts";
import { isStorable } from "../../../protocol/kit/bounds.ts";
import { secondsFromNow } from "../../core/clock.ts";
import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { createLongListing } from "../../core/rows/listing.ts";
import { given } from "../../core/rows/records.ts";
import { WALK_ROWS } from "../../core/rows/walk.ts";
import { statement } from "../../core/statements.ts";
import type { SealedRow, SignedChain } from "./chain.ts";

/** Turns the capture on, until the transaction ends. */
export const CAPTURE = statement<{ readonly set_config: string }>("audit.capture", "select set_config('mooring.audit', 'on', true)");

const CAPTURED = statement<{ readonly lines: string; readonly seen: number }>(
  "audit.captured",
  `select coalesce(current_setting('mooring.audit_changes', true), '') as lines, coalesce(nullif(current_setting('mooring.audit_seen', true), ''), '0')::int as seen`,
);
/** What the transaction has changed so far. */
export const readCaptured = async (tx: SqlTx): Promise<{ readonly lines: string; readonly seen: number }> => {
  const [row] = await tx.query(CAPTURED);
  return row ?? { lines: "", seen: 0 };
};

export interface LockedChain extends SignedChain {
  /** When the lock was taken, so that times follow the sequence on all nodes. */
  readonly at: Date;
}

interface ChainRow {
  readonly sequence: number;
  readonly hash: Uint8Array;
  readonly anchor_sequence: number;
  readonly anchor_hash: Uint8Array;
  readonly signature: Uint8Array;
  readonly at: Date;
}

// An update that changes nothing locks the row, and an insert takes the place of one that is not there yet.
const LOCK_CHAIN = statement<ChainRow>(
  "audit.lockChain",
  `insert into audit_chains as c (tenant_id, sequence) values ($1, 0) on conflict (tenant_id) do update set sequence = c.sequence
   returning sequence, hash, anchor_sequence, anchor_hash, signature, date_trunc('milliseconds', clock_timestamp()) as at`,
);
export const lockChain = async (tx: SqlTx, tenantId: string): Promise<LockedChain> => {
  const [row] = await tx.query(LOCK_CHAIN, [tenantId]);
  if (row === undefined) throw new Error("an upsert answers with its row");
  const { anchor_sequence: anchorSequence, anchor_hash: anchorHash, ...same } = row;
  return { ...same, tenantId, anchorSequence, anchorHash };
};

const APPEND = statement(
  "audit.append",
  `with moved as (update audit_chains set sequence = $3, hash = $18, signature = $20 where tenant_id = $2)
   insert into audit_logs (audit_id, tenant_id, sequence, at, actor_type, actor_id, actor_email, ip, user_agent, action, resource_type, resource_id,
     outcome, code, request_id, changes, omitted, hash, previous_hash)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16::jsonb, $17, $18, $19)`,
);
export const appendRow = async (tx: SqlTx, row: SealedRow, signature: Uint8Array): Promise<void> => {
  await tx.query(APPEND, [
    row.auditId,
    row.tenantId,
    row.sequence,
    row.at,
    row.actorType,
    row.actorId,
    row.actorEmail,
    row.ip,
    row.userAgent,
    row.action,
    row.resourceType,
    row.resourceId,
    row.outcome,
    row.code,
    row.requestId,
    JSON.stringify(row.changes),
    row.omitted,
    row.hash,
    row.previousHash,
    signature,
  ]);
};

const toRow = ({ sequence, ...row }: Prisma.AuditLogModel): SealedRow => ({ ...row, sequence: Number(sequence) });

export interface AuditFilter {
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly resource?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

const whereOf = (tenantId: string, { actor, action, resource, from, to }: AuditFilter): Prisma.AuditLogWhereInput => ({
  tenantId,
  ...given({ actorId: actor, action }),
  ...(resource === undefined ? {} : { OR: [{ resourceId: resource }, { resourceType: resource }] }),
  ...(from === undefined && to === undefined ? {} : { at: given({ gte: dateOf(from), lt: dateOf(to) }) }),
});
const dateOf = (text: string | undefined): Date | undefined => (text === undefined ? undefined : new Date(text));

const listLogs = createLongListing("audit-logs", { sequence: { kind: "number" } }, { column: "sequence", kind: "number" });

/** Times follow the sequence but for a database whose clock was set back, by less than this. */
const SET_BACK_S = 3_600;
/** The time itself where the shifted one could not be stored; no record is that old or that new. */
const shifted = (text: string, bySeconds: number): Date => {
  const at = new Date(text);
  const moved = secondsFromNow(bySeconds, at);
  return isStorable(moved.getTime()) ? moved : at;
};
/** The numbers between which all records of that time stand, so that a page does not look for them among all others. */
const withinTimes = async (db: Clients, tenantId: string, { from, to }: AuditFilter): Promise<Prisma.AuditLogWhereInput> => {
  const first = async (at: { readonly gte: Date } | { readonly lt: Date }, order: "asc" | "desc") =>
    (await db.system.auditLog.findFirst({ where: { tenantId, at }, orderBy: { at: order }, select: { sequence: true } }))?.sequence;
  const [lowest, highest] = await Promise.all([
    from === undefined ? undefined : first({ gte: shifted(from, -SET_BACK_S) }, "asc"),
    to === undefined ? undefined : first({ lt: shifted(to, SET_BACK_S) }, "desc"),
  ]);
  return { tenantId, sequence: given({ gte: lowest, lte: highest }) };
};

export const pageOfLogs = async (db: Clients, tenantId: string, query: AuditFilter & Parameters<typeof listLogs>[0]): Promise<Page<SealedRow>> => {
  const within = await withinTimes(db, tenantId, query);
  const where = { AND: [within, whereOf(tenantId, query)] };
  return listLogs(query, {
    owner: tenantId,
    walk: (asked) => db.system.auditLog.findMany({ ...asked, where: { ...within, AND: asked.where }, select: { sequence: true } }),
    isWhole: [query.actor, query.action, query.resource, query.from, query.to].every((filter) => filter === undefined),
    rows: (asked) => db.system.auditLog.findMany({ ...asked, where: { AND: [where, asked.where] } }),
    count: (asked) => db.system.auditLog.count({ where: { AND: [where, asked.where] } }),
    record: toRow,
  });
};

export const findLog = async (db: Clients, tenantId: string, auditId: string): Promise<SealedRow | null> => {
  const row = await db.system.auditLog.findFirst({ where: { tenantId, auditId } });
  return row === null ? null : toRow(row);
};

/** Oldest first, those after a sequence number, and up to another. */
export const logsAfter = async (
  db: Clients,
  tenantId: string,
  { after, upTo, limit, ...filter }: AuditFilter & { readonly after: number; readonly upTo?: number; readonly limit: number },
): Promise<readonly SealedRow[]> => {
  const where = { ...whereOf(tenantId, filter), sequence: given({ gt: after, lte: upTo }) };
  return (await db.system.auditLog.findMany({ where, orderBy: { sequence: "asc" }, take: limit })).map(toRow);
};

/** Some records that match, oldest first, and the number after which others may: null when there are none. */
export const matchesAfter = async (
  db: Clients,
  tenantId: string,
  { after, limit, ...filter }: AuditFilter & { readonly after: number; readonly limit: number },
): Promise<{ readonly rows: readonly SealedRow[]; readonly next: number | null }> => {
  const edge = async (order: "asc" | "desc") =>
    Number((await db.system.auditLog.findFirst({ where: { tenantId }, orderBy: { sequence: order }, select: { sequence: true } }))?.sequence ?? 0);
  const [lowest, highest] = await Promise.all([edge("asc"), edge("desc")]);
  const from = Math.max(after, lowest - 1);
  const rows = await logsAfter(db, tenantId, { ...filter, after: from, upTo: from + WALK_ROWS, limit });
  const reached = rows.length < limit ? from + WALK_ROWS : (rows.at(-1)?.sequence ?? from);
  return { rows, next: reached < highest ? reached : null };
};

export const findChain = async (db: Clients, tenantId: string): Promise<SignedChain | null> => {
  const row = await db.system.auditChain.findFirst({ where: { tenantId } });
  return row === null ? null : { ...row, sequence: Number(row.sequence), anchorSequence: Number(row.anchorSequence) };
};

const LOGGED_TENANTS = statement<{ readonly id: string }>(
  "audit.loggedTenants",
  "select tenant_id as id from audit_chains union select tenant_id from audit_logs order by 1",
);
/** The tenants with an end of a chain and those with records, so that a log whose end was removed is found. */
export const loggedTenants = async (db: SqlTx): Promise<readonly string[]> => (await db.query(LOGGED_TENANTS)).map(({ id }) => id);

// Looks at the first record behind each anchor: what was deleted lies before it.
const FIND_TENANT_WITH_OLD = statement<{ readonly id: string }>(
  "audit.findTenantWithOld",
  `select c.tenant_id as id from audit_chains c
    where c.tenant_id <> all($2::text[])
      and (select a.at from audit_logs a where a.tenant_id = c.tenant_id and a.sequence > c.anchor_sequence order by a.sequence limit 1) < $1::timestamptz limit 1`,
);
/** A tenant whose log begins with records from before that time; null when there is none. */
export const findTenantWithOld = async (db: SqlTx, before: Date, except: readonly string[]): Promise<string | null> =>
  (await db.query(FIND_TENANT_WITH_OLD, [before, except]))[0]?.id ?? null;

/** The newest record of the log's beginning that is as old; undefined when the oldest one is younger. */
export const lastOld = async (
  db: Clients,
  tenantId: string,
  { after, before, limit }: { readonly after: number; readonly before: Date; readonly limit: number },
): Promise<Pick<SealedRow, "sequence" | "hash"> | undefined> => {
  const rows = await db.system.auditLog.findMany({
    where: { tenantId, sequence: { gt: after } },
    orderBy: { sequence: "asc" },
    take: limit,
    select: { sequence: true, hash: true, at: true },
  });
  const young = rows.findIndex(({ at }) => at >= before);
  const last = rows.at(young === -1 ? -1 : young - 1);
  return young === 0 || last === undefined ? undefined : { sequence: Number(last.sequence), hash: last.hash };
};

const ALLOW_DELETE = statement<{ readonly set_config: string }>("audit.allowDelete", "select set_config('mooring.audit_retention', 'on', true)");
const DELETE_UP_TO = statement("audit.deleteUpTo", "delete from audit_logs where tenant_id = $1 and sequence <= $2");
const MOVE_ANCHOR = statement("audit.moveAnchor", "update audit_chains set anchor_sequence = $2, anchor_hash = $3, signature = $4 where tenant_id = $1");
export const deleteUpTo = async (tx: SqlTx, { tenantId, anchorSequence, anchorHash }: SignedChain, signature: Uint8Array): Promise<void> => {
  await tx.query(ALLOW_DELETE);
  await tx.query(DELETE_UP_TO, [tenantId, anchorSequence]);
  await tx.query(MOVE_ANCHOR, [tenantId, anchorSequence, anchorHash, signature]);
};

const SIGN_CHAIN = statement<never>("audit.signChain", "update audit_chains set signature = $2 where tenant_id = $1");
export const signChain = (tx: SqlTx, tenantId: string, signature: Uint8Array): Promise<unknown> => tx.query(SIGN_CHAIN, [tenantId, signature]);

/** What somebody did in these tenants, newest first. */
export const logsOfActor = async (db: Clients, actorId: string, tenantIds: readonly string[], limit: number): Promise<readonly SealedRow[]> => {
  const where = { tenantId: { in: [...tenantIds] }, actorType: "user", actorId };
  return (await db.system.auditLog.findMany({ where, orderBy: [{ at: "desc" }, { auditId: "desc" }], take: limit })).map(toRow);
};
