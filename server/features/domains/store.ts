// Rows of custom domains.
import type { CustomDomain as Row } from "../../../prisma/generated/client.ts";
import type { Page } from "../../../protocol/index.ts";
import type { Clients, Tx } from "../../core/database.ts";
import type { SqlTx } from "../../core/events.ts";
import { createListing, likeLiteral } from "../../core/rows/listing.ts";
import { given } from "../../core/rows/records.ts";
import type { SystemScope } from "../../core/scope.ts";
import { statement } from "../../core/statements.ts";

export type DomainRow = Row;

/** For the plan. */
export const countDomains = (db: Clients, scope: SystemScope): Promise<number> => db.for(scope).customDomain.count();

const list = createListing("domains", { createdAt: { kind: "time" }, hostname: { kind: "text" } }, { column: "domainId", kind: "text" });
type DomainsQuery = Parameters<typeof list>[0] & { readonly status?: string | undefined; readonly q?: string | undefined };

export const pageOfDomains = <T>(db: Clients, scope: SystemScope, query: DomainsQuery, record: (row: DomainRow) => T): Promise<Page<T>> => {
  const { customDomain } = db.for(scope);
  const { status, q } = query;
  const where = { ...given({ status }), ...(q === undefined ? {} : { hostname: { contains: likeLiteral(q.toLowerCase()) } }) };
  return list(query, {
    owner: scope.tenantId,
    rows: (asked) => customDomain.findMany({ ...asked, where: { ...where, AND: asked.where } }),
    count: () => customDomain.count({ where }),
    record,
  });
};

export const findDomain = (db: Clients, scope: SystemScope, domainId: string): Promise<DomainRow | null> =>
  db.for(scope).customDomain.findFirst({ where: { domainId } });

export const findByHostname = (db: Clients, scope: SystemScope, hostname: string): Promise<DomainRow | null> =>
  db.for(scope).customDomain.findFirst({ where: { hostname } });

/** The owner of a name, in whichever tenant. */
export const findVerified = (db: Clients, hostname: string): Promise<DomainRow | null> =>
  db.system.customDomain.findFirst({ where: { hostname, verifiedAt: { not: null } } });

export const findChallenge = (db: Clients, hostname: string, challengeToken: string): Promise<Pick<DomainRow, "challengeAnswer"> | null> =>
  db.system.customDomain.findFirst({ where: { hostname, challengeToken }, select: { challengeAnswer: true } });

/** Domains that visitors do not reach, and those with a certificate that ends before `endsBefore` or that nobody got. */
export const findNeedyDomains = (db: Clients, scope: SystemScope, endsBefore: Date, take: number): Promise<DomainRow[]> => {
  const OR = [{ status: { in: ["failed", "degraded"] } }, { certNotAfter: { lte: endsBefore } }, { certNotAfter: null, orderError: { not: null } }];
  return db.for(scope).customDomain.findMany({ where: { OR }, orderBy: [{ statusSince: "desc" }, { domainId: "asc" }], take });
};

export type NewDomain = Pick<DomainRow, "domainId" | "hostname" | "targetKind" | "targetId" | "statusSince" | "token" | "checks" | "nextCheckAt" | "createdBy">;
export const insertDomain = (db: Clients, scope: SystemScope, { checks, ...domain }: NewDomain): Promise<DomainRow> =>
  db.for(scope).customDomain.create({ data: { ...domain, checks: checks ?? {} } });

export type DomainPatch = Partial<Omit<DomainRow, "domainId" | "tenantId" | "hostname" | "version" | "createdAt" | "updatedAt">>;

/** A change that others see; null when the version has moved on or the domain is gone. */
export const changeDomain = async (
  db: Clients,
  scope: SystemScope,
  { domainId, version }: { readonly domainId: string; readonly version?: number | undefined },
  patch: DomainPatch,
): Promise<DomainRow | null> => {
  const where = { domainId, ...given({ version }) };
  const [row] = await db.for(scope).customDomain.updateManyAndReturn({ where, data: { ...dataOf(patch), version: { increment: 1 } } });
  return row ?? null;
};

const dataOf = ({ checks, ...patch }: DomainPatch) => ({ ...patch, ...(checks === undefined ? {} : { checks: checks ?? {} }) });

/** What the gateway itself finds: it makes a new version only of another status. Null when the domain is gone. */
export const patchDomain = async (tx: Clients, scope: SystemScope, domainId: string, patch: DomainPatch): Promise<DomainRow | null> => {
  const version = patch.status === undefined ? {} : { version: { increment: 1 } };
  const [row] = await tx.for(scope).customDomain.updateManyAndReturn({ where: { domainId }, data: { ...dataOf(patch), ...version } });
  return row ?? null;
};

/** False when the domain is gone. */
export const deleteDomain = async (db: Clients, scope: SystemScope, domainId: string): Promise<boolean> =>
  (await db.for(scope).customDomain.deleteMany({ where: { domainId } })).count === 1;

const LOCK = statement<{ readonly domain_id: string }>(
  "domains.lock",
  "select d.domain_id from custom_domains d where d.tenant_id = $1 and d.domain_id = $2 for no key update",
);
/** Until the transaction ends, nobody else changes the domain. Null: it is gone. */
export const lockDomain = async (tx: Tx, scope: SystemScope, domainId: string): Promise<DomainRow | null> => {
  await tx.query(LOCK, [scope.tenantId, domainId]);
  return findDomain(tx, scope, domainId);
};

/** Takes the turn of a person who asks for a check. False: the last one was after `before`. */
export const takeAsk = async (
  db: Clients,
  scope: SystemScope,
  domainId: string,
  { now, before }: { readonly now: Date; readonly before: Date },
): Promise<boolean> => {
  const where = { domainId, OR: [{ askedAt: null }, { askedAt: { lte: before } }] };
  return (await db.for(scope).customDomain.updateMany({ where, data: { askedAt: now } })).count === 1;
};

const RECHECK = statement<{ readonly domain_id: string }>(
  "domains.recheckOthers",
  "update custom_domains d set next_check_at = $3 where d.hostname = $1 and d.domain_id <> $2 and d.verified_at is null and d.status = 'pending_verification' returning d.domain_id",
);
/** Other tenants' claims on the name look at once: it has been taken. */
export const recheckOthers = async (tx: SqlTx, { hostname, domainId }: DomainRow, now: Date): Promise<void> => {
  await tx.query(RECHECK, [hostname, domainId, now]);
};

const CLAIM_DUE = statement<{ readonly tenant_id: string; readonly domain_id: string }>(
  "domains.claimDue",
  `update custom_domains d set next_check_at = $2 where d.domain_id in
     (select c.domain_id from custom_domains c where c.next_check_at <= $1 order by c.next_check_at limit $3 for update skip locked)
   returning d.tenant_id, d.domain_id`,
);
/** The domains whose check is due. They are due again at `again` if nobody writes down a result before. */
export const claimDueChecks = async (
  db: SqlTx,
  { now, again, limit }: { readonly now: Date; readonly again: Date; readonly limit: number },
): Promise<readonly { readonly tenantId: string; readonly domainId: string }[]> =>
  (await db.query(CLAIM_DUE, [now, again, limit])).map(({ tenant_id: tenantId, domain_id: domainId }) => ({ tenantId, domainId }));

const EXPIRING = statement<{ readonly tenant_id: string; readonly domain_id: string }>(
  "domains.expiring",
  `update custom_domains d set cert_warned_at = $1 where d.domain_id in
     (select c.domain_id from custom_domains c where c.cert_not_after <= $2 and (c.cert_warned_at is null or c.cert_warned_at < c.cert_not_before) order by c.cert_not_after limit $3 for update skip locked)
   returning d.tenant_id, d.domain_id`,
);
/** Certificates that end before `before` and of which nobody has been told. */
export const claimExpiring = async (
  tx: SqlTx,
  { now, before, limit }: { readonly now: Date; readonly before: Date; readonly limit: number },
): Promise<readonly { readonly tenantId: string; readonly domainId: string }[]> =>
  (await tx.query(EXPIRING, [now, before, limit])).map(({ tenant_id: tenantId, domain_id: domainId }) => ({ tenantId, domainId }));
