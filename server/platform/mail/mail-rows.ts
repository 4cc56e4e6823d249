// The rows of outgoing mail: orders, leases, outcomes.

import type { Clients } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import type { MailDelivery } from "../../core/ports/mail.ts";
import { statement } from "../../core/statements.ts";

export interface LeasedMail {
  readonly mailId: string;
  readonly recipient: string;
  readonly content: Buffer<ArrayBuffer>;
  /** This one included. It also fences the lease: whoever leases the mail next counts one more. */
  readonly attempts: number;
}

// Leased by the database's clock; nodes skip the rows that another one is leasing.
const LEASE = statement<{ readonly mail_id: string; readonly recipient: string; readonly content: Buffer; readonly attempts: number }>(
  "mails.lease",
  `update mails set attempts = attempts + 1, next_attempt_at = now() + make_interval(secs => $1)
    where mail_id in (select mail_id from mails where status = 'queued' and next_attempt_at <= now() order by next_attempt_at limit $2 for update skip locked)
   returning mail_id, recipient, content, attempts`,
);

export const leaseMails = async (sql: SqlTx, leaseSeconds: number, limit: number): Promise<readonly LeasedMail[]> =>
  (await sql.query(LEASE, [leaseSeconds, limit])).map(({ mail_id, content, ...same }) => ({
    ...same,
    mailId: mail_id,
    content: content as LeasedMail["content"],
  })); // as: the driver allocates it

export interface NewMail {
  readonly mailId: string;
  readonly tenantId: string | null;
  readonly recipient: string;
  readonly content: Uint8Array<ArrayBuffer>;
}

export const insertMail = async (db: Clients, mail: NewMail): Promise<void> => {
  await db.system.mail.createMany({ data: [mail] });
};

export const deleteQueued = async (db: Clients, mailId: string): Promise<void> => {
  await db.system.mail.deleteMany({ where: { mailId, status: "queued" } });
};

/** The rest is for the holder of the lease alone. */
const held = ({ mailId, attempts }: LeasedMail) => ({ mailId, attempts, status: "queued" });

export const markSent = async (db: Clients, mail: LeasedMail, sentAt: Date): Promise<void> => {
  await db.system.mail.updateMany({ where: held(mail), data: { status: "sent", sentAt, content: null, lastError: null } });
};

export const markFailed = async (db: Clients, mail: LeasedMail, lastError: string): Promise<void> => {
  await db.system.mail.updateMany({ where: held(mail), data: { status: "failed", content: null, lastError } });
};

export const postpone = async (db: Clients, mail: LeasedMail, lastError: string, nextAttemptAt: Date): Promise<void> => {
  await db.system.mail.updateMany({ where: held(mail), data: { lastError, nextAttemptAt } });
};

export const findDeliveries = async (db: Clients, mailIds: readonly string[]): Promise<ReadonlyMap<string, MailDelivery>> => {
  const select = { mailId: true, status: true, attempts: true, lastError: true } as const;
  const rows = await db.system.mail.findMany({ where: { mailId: { in: [...mailIds] } }, select });
  return new Map(rows.map(({ mailId, status, ...same }) => [mailId, { ...same, status: status as MailDelivery["status"] }])); // as: the column holds nothing else
};

/** How many mails have each status. */
export const countMails = async (db: Clients): Promise<ReadonlyMap<string, number>> => {
  const groups = await db.system.mail.groupBy({ by: ["status"], _count: true });
  return new Map(groups.map(({ status, _count }) => [status, _count as unknown as number])); // as: `_count: true` counts rows
};

/** When the oldest queued mail was ordered. */
export const oldestQueued = async (db: Clients): Promise<Date | null> =>
  (await db.system.mail.findFirst({ where: { status: "queued" }, orderBy: { nextAttemptAt: "asc" }, select: { createdAt: true } }))?.createdAt ?? null;

export interface StuckMail {
  readonly mailId: string;
  readonly tenantId: string | null;
  readonly attempts: number;
  readonly lastError: string | null;
  readonly createdAt: Date;
}

/** Oldest first: those that were given up, or those that have waited since then. */
export const findStuckMails = (db: Clients, which: { readonly failed: true } | { readonly queuedBefore: Date }, limit: number): Promise<readonly StuckMail[]> =>
  db.system.mail.findMany({
    where: "failed" in which ? { status: "failed" } : { status: "queued", createdAt: { lt: which.queuedBefore } },
    orderBy: { createdAt: "asc" },
    take: limit,
    select: { mailId: true, tenantId: true, attempts: true, lastError: true, createdAt: true },
  });

const SWEEP_ROWS = 1_000;

/** True when there may be more. */
export const deleteOldMails = async (db: Clients, before: Date): Promise<boolean> => {
  const where = { createdAt: { lte: before }, status: { not: "queued" } };
  return (await db.system.mail.deleteMany({ where, limit: SWEEP_ROWS })).count === SWEEP_ROWS;
};
