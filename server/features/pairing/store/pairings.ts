// Rows of pairings: one per attempt, found by the hash of its code.
import type { Prisma } from "../../../../prisma/generated/client.ts";
import type { AgentId, DeviceId, EnrollmentToken, Page, TenantId, WaitingMachine } from "../../../../protocol/index.ts";
import { secondsFromNow } from "../../../core/clock.ts";
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { createListing } from "../../../core/rows/listing.ts";
import type { SystemScope } from "../../../core/scope.ts";
import { LOCK, statement } from "../../../core/statements.ts";
import { orNull } from "../../../platform/database/db-errors.ts";

export type StoredStatus = "pending" | "activated" | "rejected" | "expired";

const omit = { codeHash: true, activationTokenHash: true, attempts: true, preparedRole: true } as const;
type PairingRow = Prisma.Result<Prisma.PairingDelegate, { omit: typeof omit }, "findFirstOrThrow">;

const RECENT_SECONDS = 900;

const toPairing = ({ activatedAt, ...row }: PairingRow, now: Date) => ({
  ...row,
  pairingId: row.pairingId as WaitingMachine["requestId"],
  tokenId: row.tokenId as WaitingMachine["tokenId"],
  tenantId: row.tenantId as TenantId | null,
  deviceId: row.deviceId as DeviceId | null,
  agentId: row.agentId as AgentId | null,
  replacesDeviceId: row.replacesDeviceId as DeviceId | null,
  // A code past its time is expired even before the job has written so.
  status: row.status === "pending" && row.expiresAt <= now ? "expired" : (row.status as StoredStatus),
  activatedRecently: activatedAt !== null && activatedAt > secondsFromNow(-RECENT_SECONDS, now),
});
export type Pairing = Readonly<ReturnType<typeof toPairing>>;

const live = (now: Date) => ({ status: "pending", expiresAt: { gt: now } });
/** A code belongs to the first tenant that claimed it. */
const open = ({ tenantId }: SystemScope, now: Date) => ({ ...live(now), OR: [{ tenantId: null }, { tenantId }] });

/** Decides races in one statement: the first caller changes the pairing that `where` finds, every later one gets null. */
const change = async (db: Clients, where: Prisma.PairingWhereUniqueInput, data: Prisma.PairingUncheckedUpdateInput, now: Date): Promise<Pairing | null> => {
  const row = await orNull(db.system.pairing.update({ where, data, omit }));
  return row === null ? null : toPairing(row, now);
};

const found = async (row: Promise<PairingRow | null>, now: Date): Promise<Pairing | null> => {
  const pairing = await row;
  return pairing === null ? null : toPairing(pairing, now);
};

type Hash = Uint8Array<ArrayBuffer>;

/** Until the transaction ends, every other pairing of this machine waits to begin. */
export const lockFingerprint = async (tx: SqlTx, fingerprint: string): Promise<void> => {
  await tx.query(LOCK, [`pairing of ${fingerprint}`]);
};

export const expireOthers = async (db: Clients, fingerprint: string): Promise<void> => {
  await db.system.pairing.updateMany({ where: { fingerprint, status: "pending" }, data: { status: "expired" } });
};

export interface NewPairing {
  readonly pairingId: string;
  readonly codeHash: Hash;
  readonly fingerprint: string;
  readonly deviceName: string | null;
  readonly platform: string | null;
  readonly initiatorIp: string;
  readonly pollTokenHash: Hash;
  readonly expiresAt: Date;
}

/** False when the code is in use. */
export const insertPairing = async (db: Clients, pairing: NewPairing): Promise<boolean> => {
  const { count } = await db.system.pairing.createMany({ data: [pairing], skipDuplicates: true });
  if (count === 0) return false;
  await db.system.enrollment.create({ data: { pairingId: pairing.pairingId } });
  return true;
};

export const findByCode = (db: Clients, codeHash: Hash, now: Date): Promise<Pairing | null> =>
  found(db.system.pairing.findFirst({ where: { codeHash }, omit }), now);

export const findById = (db: Clients, pairingId: string, now: Date): Promise<Pairing | null> =>
  found(db.system.pairing.findFirst({ where: { pairingId }, omit }), now);

/** The machine, if it is among those that the tenant's people see wait, or was. */
export const findRequest = (db: Clients, { tenantId }: SystemScope, pairingId: string, now: Date): Promise<Pairing | null> =>
  found(db.system.pairing.findFirst({ where: { pairingId, shownTo: tenantId }, omit }), now);

const listRequests = createListing("pairing-requests", { initiatedAt: { column: "createdAt", kind: "time" } }, { column: "pairingId", kind: "text" });

/** The machines that wait: they asked with a token of the tenant, or somebody of the tenant has looked up their code. */
export const pageOfRequests = (db: Clients, scope: SystemScope, query: Parameters<typeof listRequests>[0], now: Date): Promise<Page<Pairing>> => {
  const where = { shownTo: scope.tenantId, ...open(scope, now) };
  return listRequests(query, {
    owner: scope.tenantId,
    rows: (asked) => db.system.pairing.findMany({ ...asked, where: { AND: [where, asked.where] }, omit }),
    count: () => db.system.pairing.count({ where }),
    record: (row) => toPairing(row, now),
  });
};

/** Lists a machine whose code was looked up, unless it is in a list already. */
export const showTo = async (db: Clients, { tenantId }: SystemScope, pairingId: string): Promise<void> => {
  await db.system.pairing.updateMany({ where: { pairingId, shownTo: null }, data: { shownTo: tenantId } });
};

export interface TokenRequest {
  readonly now: Date;
  readonly codeHash: Hash;
  readonly tokenId: EnrollmentToken["tokenId"];
  readonly expiresAt: Date;
}

/** Claims the machine for its token's tenant. Null when the code is not live or belongs to another tenant. */
export const requestByToken = (db: Clients, scope: SystemScope, { now, codeHash, ...request }: TokenRequest): Promise<Pairing | null> =>
  change(db, { codeHash, ...open(scope, now) }, { ...request, tenantId: scope.tenantId, shownTo: scope.tenantId }, now);

/** Ends the waiting of the machines that asked with this token: it has been revoked. */
export const expireRequestsOf = async (db: Clients, scope: SystemScope, tokenId: string): Promise<void> => {
  await db.for(scope).pairing.updateMany({ where: { tokenId, status: "pending" }, data: { status: "expired" } });
};

export const findLatest = (db: Clients, fingerprint: string, now: Date): Promise<Pairing | null> =>
  found(db.system.pairing.findFirst({ where: { fingerprint }, orderBy: [{ createdAt: "desc" }, { pairingId: "desc" }], omit }), now);

export interface Preparation {
  readonly now: Date;
  readonly codeHash: Hash;
  readonly preparedBy: string;
  readonly preparedEmail: string | null;
  readonly preparedRole: string;
  readonly activationTokenHash: Hash;
  readonly activationTokenExpiresAt: Date;
  /** The device that the user agreed to replace. */
  readonly replacesDeviceId: DeviceId | null;
}

/** Preparing again replaces the activation token, so the earlier one stops working. Null when the code is not live or belongs to another tenant. */
export const prepare = (db: Clients, scope: SystemScope, { now, codeHash, ...preparation }: Preparation): Promise<Pairing | null> =>
  // From here on a person's token pairs it, and not the one that it asked with.
  change(db, { codeHash, ...open(scope, now) }, { ...preparation, tenantId: scope.tenantId, tokenId: null }, now);

export interface PreparedToken {
  readonly now: Date;
  readonly codeHash: Hash;
  readonly tokenHash: Hash;
}

/** The token is bound to code, tenant and user, because preparing again makes another. */
const preparedFor = ({ now, codeHash, tokenHash }: PreparedToken) => ({
  ...live(now),
  codeHash,
  activationTokenHash: tokenHash,
  activationTokenExpiresAt: { gt: now },
});

/** The live pairing that this token was made for. */
export const findPrepared = (db: Clients, token: PreparedToken): Promise<Pairing | null> =>
  found(db.system.pairing.findFirst({ where: preparedFor(token), omit }), token.now);

const activated = (now: Date) => ({ status: "activated", activatedAt: now, activationTokenHash: null });

export const activateByToken = (db: Clients, token: PreparedToken): Promise<Pairing | null> => change(db, preparedFor(token), activated(token.now), token.now);

export interface Approval {
  readonly now: Date;
  readonly pairingId: string;
  readonly preparedBy: string;
  readonly preparedEmail: string | null;
  readonly replacesDeviceId: DeviceId | null;
  readonly collectUntil: Date;
}

/** Null when the code is not live or belongs to another tenant. */
export const approvePairing = (db: Clients, scope: SystemScope, { now, pairingId, ...approval }: Approval): Promise<Pairing | null> =>
  change(db, { pairingId, ...open(scope, now) }, { ...activated(now), ...approval, tenantId: scope.tenantId }, now);

/** Null when the code is not live or belongs to another tenant. */
export const rejectPairing = (
  db: Clients,
  scope: SystemScope,
  { now, pairingId, preparedBy }: Omit<Claim, "codeHash"> & { readonly pairingId: string },
): Promise<Pairing | null> =>
  change(db, { pairingId, ...open(scope, now) }, { status: "rejected", preparedBy, tenantId: scope.tenantId, activationTokenHash: null }, now);

/** Whether the approved identity may still be collected. The first call leaves `againSeconds` for more, because its answer may get lost. */
export const mayCollect = async (db: Clients, pairingId: string, againSeconds: number, now: Date): Promise<boolean> => {
  const again = secondsFromNow(againSeconds, now);
  await db.system.pairing.updateMany({ where: { pairingId, collectUntil: { gt: again } }, data: { collectUntil: again } });
  return (await db.system.pairing.count({ where: { pairingId, collectUntil: { gt: now } } })) === 1;
};

interface Claim {
  readonly now: Date;
  readonly codeHash: Hash;
  readonly preparedBy: string;
}

/** Activates by enrollment token, without a user. */
export const activateForTenant = (db: Clients, scope: SystemScope, { now, codeHash, preparedBy }: Claim): Promise<Pairing | null> =>
  change(db, { codeHash, ...open(scope, now) }, { ...activated(now), preparedBy, tenantId: scope.tenantId }, now);

/** The device that this token has already paired with this code, until the code expires: the first answer may have been lost. */
export const findPairedBy = async (db: Clients, scope: SystemScope, { now, ...claim }: Claim): Promise<DeviceId | null> => {
  const where = { ...live(now), ...claim, status: "activated" };
  return (await found(db.for(scope).pairing.findFirst({ where, omit }), now))?.deviceId ?? null;
};

const COUNT_WRONG_TOKEN = statement<{ readonly attempts: number }>(
  "pairings.countWrongToken",
  `update pairings set attempts = attempts + 1, status = case when attempts + 1 >= $2 then 'expired' else status end
   where code_hash = $1 and status = 'pending' and expires_at > now() returning attempts`,
);

/** Counts a wrong token and returns the attempts left; the last one expires the code. Null, and nothing counted, when the code is not live. */
export const countWrongToken = async (sql: SqlTx, codeHash: Hash, allowed: number): Promise<number | null> => {
  const [row] = await sql.query(COUNT_WRONG_TOKEN, [codeHash, allowed]);
  return row === undefined ? null : Math.max(0, allowed - row.attempts);
};

export interface Paired {
  readonly now: Date;
  readonly pairingId: string;
  readonly deviceId: DeviceId;
  readonly agentId: AgentId;
  readonly userEmail: string;
}

/** Links the pairing and its enrollment to the device. An older pairing of the device can no longer fetch its identity, which is now another machine's. */
export const recordDevice = async (db: Clients, scope: SystemScope, { now, pairingId, deviceId, agentId, userEmail }: Paired): Promise<void> => {
  const { pairing, enrollment } = db.for(scope);
  await pairing.updateMany({ where: { deviceId, expiresAt: { gt: now } }, data: { expiresAt: now } });
  await pairing.updateMany({ where: { deviceId, collectUntil: { gt: now } }, data: { collectUntil: null } });
  await pairing.updateMany({ where: { pairingId }, data: { deviceId, agentId, preparedEmail: userEmail } });
  await enrollment.updateMany({ where: { deviceId }, data: { deviceId: null } });
  await db.system.enrollment.update({ where: { pairingId }, data: { tenantId: scope.tenantId, deviceId } });
};

const SWEEP_ROWS = 1_000;

/** True when there may be more. */
export const expireDue = async (db: Clients, now: Date): Promise<boolean> => {
  const where = { status: "pending", expiresAt: { lte: now } };
  const { count } = await db.system.pairing.updateMany({ where, data: { status: "expired" }, limit: SWEEP_ROWS });
  return count === SWEEP_ROWS;
};

/** Deletes old attempts and keeps the progress of paired devices. True when there may be more. */
export const deleteOldPairings = async (db: Clients, before: Date): Promise<boolean> => {
  const where = { status: { not: "pending" }, expiresAt: { lt: before } };
  const old = (await db.system.pairing.findMany({ where, select: { pairingId: true }, take: SWEEP_ROWS })).map(({ pairingId }) => pairingId);
  await db.system.enrollment.deleteMany({ where: { pairingId: { in: old }, deviceId: null } });
  await db.system.pairing.deleteMany({ where: { pairingId: { in: old } } });
  return old.length === SWEEP_ROWS;
};
