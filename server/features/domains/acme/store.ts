// Leases of certificate orders: one node at a time works on the order of a domain, and whoever comes after it goes on where it stopped.
import type { Clients } from "../../../core/database.ts";
import type { SqlTx } from "../../../core/events.ts";
import { statement } from "../../../core/statements.ts";
import type { DomainPatch, DomainRow } from "../store.ts";

const COUNT = statement<{ readonly working: number; readonly lately: number }>(
  "domains.countOrders",
  `select count(*) filter (where d.lease_until > $1)::int as working, count(*) filter (where d.ordered_at > $2)::int as lately
   from custom_domains d where d.ordered_at > $2 or d.lease_until > $1`,
);
/** Counts over the whole installation. */
export const countOrders = async (
  tx: SqlTx,
  { now, since }: { readonly now: Date; readonly since: Date },
): Promise<{ readonly working: number; readonly lately: number }> => {
  const [row] = await tx.query(COUNT, [now, since]);
  return row ?? { working: 0, lately: 0 };
};

const CLAIM = statement<{ readonly tenant_id: string; readonly domain_id: string }>(
  "domains.claimOrders",
  `update custom_domains d set lease_by = $2, lease_until = $3, ordered_at = case when d.order_url is null then $1 else d.ordered_at end
   where d.domain_id in
     (select c.domain_id from custom_domains c
      where c.status in ('issuing_certificate', 'active') and c.cert_source is distinct from 'own' and (c.cert_not_after is null or c.next_renewal_at <= $1)
        and (c.order_not_before is null or c.order_not_before <= $1) and (c.lease_until is null or c.lease_until <= $1)
        and (c.order_url is not null) = $5
      order by c.next_renewal_at nulls first, c.domain_id limit $4 for update skip locked)
   returning d.tenant_id, d.domain_id`,
);
export interface OrderClaim {
  readonly now: Date;
  readonly by: string;
  readonly until: Date;
  readonly limit: number;
  /** True: orders that somebody has begun; false: new ones. */
  readonly begun: boolean;
}
/** Takes domains that need a certificate and whose order nobody works on. */
export const claimOrders = async (
  tx: SqlTx,
  { now, by, until, limit, begun }: OrderClaim,
): Promise<readonly { readonly tenantId: string; readonly domainId: string }[]> =>
  (await tx.query(CLAIM, [now, by, until, limit, begun])).map(({ tenant_id: tenantId, domain_id: domainId }) => ({ tenantId, domainId }));

/** Writes down a step of the order and holds the lease for longer. False: the lease has gone to somebody else, who has the order now. */
export const keepStep = async (
  db: Clients,
  { domainId, leaseBy }: Pick<DomainRow, "domainId" | "leaseBy">,
  patch: Omit<DomainPatch, "checks"> & { readonly leaseUntil: Date },
): Promise<boolean> => (await db.system.customDomain.updateMany({ where: { domainId, leaseBy }, data: patch })).count === 1;
