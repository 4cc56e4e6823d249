// Custom domains for samples, as checks and orders would have left them.
import { newId } from "../../../server/core/ids.ts";
import type { Stock } from "../stock.ts";

/** Self-signed for www.example.com; nobody looks at the name again once it is stored. */
const CHAIN = `-----BEGIN CERTIFICATE-----
MIIBpTCCAUugAwIBAgIUdTVxDt6r56TMDgJYs2GHaz6nSP4wCgYIKoZIzj0EAwIw
GjEYMBYGA1UEAwwPd3d3LmV4YW1wbGUuY29tMB4XDTI2MTEyNDE1MTM1NFoXDTM2
MTEyMTE1MTM1NFowGjEYMBYGA1UEAwwPd3d3LmV4YW1wbGUuY29tMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAEzXTIyIL4gtDyf0MINgaemiHv56NGMQlyw/AlmjcT
0Js2hviTbbD0rBoYWcOh3aYJBTeKuMT7uQs70G2xBeOuuqNvMG0wHQYDVR0OBBYE
FHMLUeAXrmFVR2opxlmZQqdgVS8MMB8GA1UdIwQYMBaAFHMLUeAXrmFVR2opxlmZ
QqdgVS8MMA8GA1UdEwEB/wQFMAMBAf8wGgYDVR0RBBMwEYIPd3d3LmV4YW1wbGUu
Y29tMAoGCCqGSM49BAMCA0gAMEUCIQCd1EgDrFub1Q0uQW7w1QkPv9j8X50xFX7e
xLmnIx4pXQIgEaViOjMJ4Ew/s1HzMfq0uydh4YyPAdGKZYMVHMEodxU=
-----END CERTIFICATE-----`;

const newHostname = (): string => `${newId("dom").slice(4).toLowerCase()}.example.com`;
/** A claim, or with a certificate of its own a domain that is served. */
export const newDomain = async ({ world, tenant }: Pick<Stock, "world" | "tenant">, { own = false } = {}): Promise<string> => {
  const domainId = newId("dom");
  await world.sql.query(
    `insert into custom_domains (domain_id, tenant_id, hostname, status, status_since, token, created_by, updated_at, cert_source, cert_chain, cert_not_before, cert_not_after, target_kind, target_id)
     select $1, $2, $3, case when own then 'active' else 'pending_verification' end, now(), md5($1), 'user:u', now(), case when own then 'own' end,
       case when own then $4 end, case when own then now() end, case when own then now() + interval '90 days' end, 'tunnel', 'tun_gone' from (select $5::boolean as own) o`,
    [domainId, tenant.tenantId, newHostname(), CHAIN, own],
  );
  return domainId;
};
const aDomain =
  (more: Record<string, unknown> = {}, own = false) =>
  async (stock: Stock) => ({ domainId: await newDomain(stock, { own }), ...more });

export const DOMAIN_SAMPLES = {
  "domains.list": async () => ({}),
  "domains.get": aDomain(),
  "domains.create": async () => ({ hostname: newHostname() }),
  "domains.update": aDomain(),
  "domains.remove": aDomain(),
  "domains.verify": aDomain(),
  "domains.dns": aDomain(),
  "domains.certificate": aDomain({}, true),
  "domains.putCertificate": aDomain({ certificate: CHAIN, privateKey: "none" }, true),
  "domains.removeCertificate": aDomain({}, true),
  "domains.renewCertificate": aDomain({}, true),
};
