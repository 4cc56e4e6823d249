// Custom domains: names of tenants under which visitors reach their tunnels. The way of a domain:
//
// 1. handlers.ts takes a claim on a name; several tenants may have one.
// 2. checking.ts looks at the DNS and moves the domain from state to state. The first tenant whose TXT record is found has the name.
// 3. acme/orders.ts orders its certificate, and issuing.ts takes that into use.
// 4. served.ts answers the edge: which certificate, which target.
import { contract } from "../../../protocol/index.ts";
import { happened } from "../../core/events.ts";
import type { EdgeHandler, EdgePart } from "../../core/ports/edge.ts";
import type { Outbound } from "../../core/ports/outbound.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Job } from "../../platform/jobs.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { type AcmeSettings, type Authority, createAuthority } from "./acme/authority.ts";
import { createCertificateOrders, ORDERS_JOB } from "./acme/orders.ts";
import { createDomainAttention } from "./attention.ts";
import { type Checking, createChecking } from "./checking.ts";
import { createDnsChecks, newDomainResolver } from "./dns.ts";
import { createDomainHandlers, type DomainTargets } from "./handlers.ts";
import { createIssuing } from "./issuing.ts";
import type { DomainsEdge } from "./record.ts";
import { BORNE_MS } from "./schedule.ts";
import { createServedDomains, type ServedDomain, type ServedDomains } from "./served.ts";
import { claimDueChecks, claimExpiring, countDomains, findChallenge, findDomain } from "./store.ts";

export type { DomainTargets, TargetFound } from "./handlers.ts";
export type { ServedDomain } from "./served.ts";

export interface DomainSettings {
  /** Addresses of name servers; empty: those of the system. */
  readonly dnsServers: readonly string[];
  readonly edge: () => DomainsEdge;
  readonly ownZones: () => readonly string[];
  readonly servesTls: boolean;
  /** Null: no certificates are ordered. */
  readonly acme: AcmeSettings | null;
}

export interface DomainsDeps extends Pick<FeatureKit, "db" | "clock" | "emit" | "plan" | "secretBox"> {
  readonly settings: DomainSettings;
  /** Trusts the address of the certificate authority; null: there is none. */
  readonly acmeOutbound: Outbound | null;
  readonly targets: DomainTargets;
  /** Who serves the visitors of a domain; null: its target is gone. */
  readonly handlerOf: (domain: ServedDomain) => EdgeHandler | null | Promise<EdgeHandler | null>;
  /** Tells all nodes that something of the tenant has changed. */
  readonly tellNodes: (tenantId: string) => void;
  readonly wakeJob: (name: string) => void;
  readonly onError: (error: unknown) => void;
  readonly random?: (() => number) | undefined;
}

export interface Domains extends Feature<typeof contract.domains> {
  readonly served: ServedDomains;
}

const CHECK_EVERY_MS = 5_000;
const CHECKS_AT_ONCE = 20;
/** A node that dies while it looks leaves the look to others after this time. */
const LOOK_MS = 60_000;
const EXPIRING_EVERY_MS = 600_000;
const CHALLENGES = "/.well-known/acme-challenge/";
const TOKEN = /^[\w-]{16,256}$/;

/** Answers the certificate authority, whichever node it asks, and leads visitors to the target. */
const edgeOf = ({ db, settings, handlerOf }: DomainsDeps, served: ServedDomains): EdgePart => ({
  mounts: [
    {
      prefix: CHALLENGES,
      everywhere: true,
      handler: {
        handle: async ({ host, path }, response) => {
          const token = path.slice(CHALLENGES.length);
          const answer = TOKEN.test(token) ? (await findChallenge(db, host, token))?.challengeAnswer : undefined;
          // The app behind the name may have challenges of its own.
          if (answer == null) return false;
          response.writeHead(200, { "content-type": "application/octet-stream" });
          response.end(answer);
          return true;
        },
      },
    },
  ],
  hostOf: async (host) => {
    const domain = await served.find(host);
    return domain === null ? null : handlerOf(domain);
  },
  ...(settings.servesTls ? { certificateFor: served.certificateFor } : {}),
});

const checkJob = ({ db, clock, onError, wakeJob }: DomainsDeps, checking: Checking): Job => ({
  name: "domains.check",
  everyMs: CHECK_EVERY_MS,
  run: async () => {
    const now = clock.now();
    const due = await claimDueChecks(db, { now, again: new Date(now.getTime() + LOOK_MS), limit: CHECKS_AT_ONCE });
    const check = async ({ tenantId, domainId }: (typeof due)[number]): Promise<void> => {
      const scope = { tenantId } as SystemScope; // as: read from a row
      const row = await findDomain(db, scope, domainId);
      const checked = row === null ? null : await checking.check(scope, row);
      if (checked?.status === "issuing_certificate") wakeJob(ORDERS_JOB);
    };
    await Promise.all(due.map((each) => check(each).catch(onError)));
    return due.length === CHECKS_AT_ONCE;
  },
});

const expiringJob = ({ db, clock, emit }: DomainsDeps): Job => ({
  name: "domains.expiring",
  everyMs: EXPIRING_EVERY_MS,
  run: () =>
    db.tx(async (tx) => {
      const now = clock.now();
      const found = await claimExpiring(tx, { now, before: new Date(now.getTime() + BORNE_MS), limit: CHECKS_AT_ONCE });
      for (const { tenantId, domainId } of found) {
        const scope = { tenantId } as SystemScope; // as: read from a row
        const row = await findDomain(tx, scope, domainId);
        if (row === null || row.certNotAfter === null) continue;
        const about = { domainId: domainId as `dom_${string}`, hostname: row.hostname, notAfter: row.certNotAfter.toISOString() }; // as: the column holds ids of domains
        await emit(tx, [happened(scope, contract.domains.events.certificateExpiring, domainId, about)]);
      }
      return found.length === CHECKS_AT_ONCE;
    }),
});

const createPartsOfAcme = (deps: DomainsDeps, authority: Authority | null, checking: Checking) => {
  const issuing = createIssuing({ ...deps, changed: deps.tellNodes, checking, random: deps.random ?? Math.random });
  return { issuing, jobs: authority === null ? [] : [createCertificateOrders({ ...deps, authority, issuing }).job] };
};

export const createDomains = (deps: DomainsDeps): Domains => {
  const { settings, acmeOutbound, wakeJob } = deps;
  const served = createServedDomains(deps);
  const changed = (tenantId: string): void => {
    served.forget([tenantId]);
    deps.tellNodes(tenantId);
  };
  const { acme, edge, ownZones, servesTls, dnsServers } = settings;
  const authority = acme === null || acmeOutbound === null ? null : createAuthority({ ...deps, outbound: acmeOutbound, settings: acme });
  const dns = createDnsChecks({ servers: dnsServers, newResolver: newDomainResolver });
  const issuers = async (): Promise<readonly string[] | null> => (authority === null ? null : authority.caaIdentities());
  const checking = createChecking({ ...deps, dns, edge, issuers, changed });
  const { issuing, jobs } = createPartsOfAcme({ ...deps, tellNodes: changed }, authority, checking);
  const wakeOrders = (): void => (authority === null ? undefined : wakeJob(ORDERS_JOB));
  const operations = { checking, issuing, edge, ownZones, servesTls, orders: authority !== null, changed, wakeOrders };
  return {
    handlers: createDomainHandlers({ ...deps, ...operations }),
    jobs: [checkJob(deps, checking), expiringJob(deps), ...jobs],
    attention: createDomainAttention(deps),
    counters: { customDomains: countDomains },
    edge: edgeOf(deps, served),
    served,
  };
};
