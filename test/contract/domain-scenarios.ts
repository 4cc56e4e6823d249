// Provokes the error codes of custom domains.
import { APP_SAMPLES } from "./samples/apps.ts";
import { newDomain } from "./samples/domains.ts";
import { call, own, type Scenario } from "./scenario.ts";

const domainOf = (at: Parameters<Scenario>[0], given = {}) => newDomain(at.stock, given);

export const DOMAIN_SCENARIOS = {
  DOMAIN_NOT_FOUND: (at, probe) => probe(own(at, "GET", "/custom-domains/dom_unknown")),
  CERTIFICATE_NOT_FOUND: async (at, probe) => probe(own(at, "GET", `/custom-domains/${await domainOf(at)}/certificate`)),
  DOMAIN_INVALID: (at, probe) => probe(own(at, "POST", "/custom-domains", { body: { hostname: "co.uk" } })),
  DOMAIN_TARGET_INVALID: async (at, probe) => {
    const { appId } = await APP_SAMPLES["apps.get"](at.stock);
    await probe(own(at, "POST", "/custom-domains", { body: { hostname: "shop.example.org", target: { kind: "app", id: appId } } }));
  },
  DOMAIN_TAKEN: async (at, probe) => {
    await at.world.call(at.stock.owner, "POST", "/v1/custom-domains", { body: { hostname: "taken.example.org" } });
    await probe(own(at, "POST", "/custom-domains", { body: { hostname: "taken.example.org" } }));
  },
  DOMAIN_CHECK_TOO_SOON: async (at, probe) => {
    const domainId = await domainOf(at);
    await at.world.call(at.stock.owner, "POST", `/v1/custom-domains/${domainId}/verify`);
    await probe(own(at, "POST", `/custom-domains/${domainId}/verify`));
  },
  CERTIFICATE_NOT_CONFIGURED: async ({ odd }, probe) => {
    const tenant = await odd.tenant();
    const domainId = await newDomain({ world: odd, tenant }, { own: true });
    await probe(call(odd, "POST", `/custom-domains/${domainId}/certificate/renew`, { as: tenant.apiKey }));
  },
  CERTIFICATE_INVALID: async (at, probe) =>
    probe(own(at, "PUT", `/custom-domains/${await domainOf(at, { own: true })}/certificate`, { body: { certificate: "none", privateKey: "none" } })),
  CERTIFICATE_RATE_LIMITED: async (at, probe) => {
    const domainId = await domainOf(at);
    await at.world.sql.query("update custom_domains set status = 'active', ordered_at = now() where domain_id = $1", [domainId]);
    await probe(own(at, "POST", `/custom-domains/${domainId}/certificate/renew`));
  },
} satisfies Record<string, Scenario>;
