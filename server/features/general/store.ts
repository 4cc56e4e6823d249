// Rows of stream tickets: hashes, each good for one use in one minute.
import type { TenantId } from "../../../protocol/index.ts";
import type { SqlTx } from "../../core/events.ts";
import type { StreamTicketOwner } from "../../core/lookups.ts";
import type { SystemScope } from "../../core/scope.ts";

export interface NewTicket {
  readonly hash: Uint8Array;
  readonly userId: string;
  readonly lifeSeconds: number;
}

export const insertTicket = async (sql: SqlTx, { tenantId }: SystemScope, { hash, userId, lifeSeconds }: NewTicket): Promise<Date> => {
  const [row] = await sql.query<{ expires_at: Date }>(
    "insert into stream_tickets (hash, tenant_id, user_id, expires_at) values ($1, $2, $3, now() + make_interval(secs => $4)) returning expires_at",
    [hash, tenantId, userId, lifeSeconds],
  );
  if (row === undefined) throw new Error("an insert answers with its row");
  return row.expires_at;
};

/** Before any tenant is known: the ticket is the credential. The delete is the verdict, so two cannot both redeem it. */
export const takeTicket = async (sql: SqlTx, hash: Uint8Array): Promise<StreamTicketOwner | null> => {
  const [row] = await sql.query<{ tenant_id: TenantId; user_id: string; good: boolean }>(
    "delete from stream_tickets where hash = $1 returning tenant_id, user_id, expires_at > now() as good",
    [hash],
  );
  return row?.good === true ? { tenantId: row.tenant_id, userId: row.user_id } : null;
};

const SWEEP_ROWS = 1_000;

/** True when there may be more. */
export const deleteExpired = async (sql: SqlTx): Promise<boolean> => {
  const rows = await sql.query(
    `delete from stream_tickets where hash in (select hash from stream_tickets where expires_at <= now() limit ${SWEEP_ROWS}) returning 1`,
  );
  return rows.length === SWEEP_ROWS;
};
