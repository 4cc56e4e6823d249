// An order survives the death of its node at every step, before and after each call to the authority: it makes exactly one certificate.
import type { Client } from "acme-client";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import { createAuthority } from "../../../server/features/domains/acme/authority.ts";
import { createCertificateOrders } from "../../../server/features/domains/acme/orders.ts";
import { createChecking } from "../../../server/features/domains/checking.ts";
import { createDnsChecks, newDomainResolver } from "../../../server/features/domains/dns.ts";
import { createIssuing } from "../../../server/features/domains/issuing.ts";
import { type Db, openDb } from "../../../server/platform/database/db.ts";
import { createSecretBox } from "../../../server/platform/keys/secrets.ts";
import { createTrustedOutbound } from "../../../server/platform/outbound/outbound.ts";
import { silentLog } from "../../../server/platform/telemetry/log.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { type AcmeServer, type NameServer, startAcmeServer, startNameServer } from "../../kit/net/acme.ts";
import { freePort } from "../../kit/net/free-port.ts";

let dns: NameServer & { close(): Promise<void> };
let acme: AcmeServer;
let world: World;
let db: Db;
let outbound: ReturnType<typeof createTrustedOutbound>;
beforeAll(async () => {
  dns = await startNameServer();
  const httpPort = await freePort();
  acme = await startAcmeServer({ httpPort, dnsServer: dns.address });
  const names = { DNS_SERVERS: dns.address, TUNNEL_DOMAIN: "edge.test" };
  const authority = { ACME_DIRECTORY_URL: acme.directoryUrl, ACME_CA_FILE: acme.caFile };
  world = await startWorld({ ...names, ...authority, EDGE_PORT: "0", EDGE_HTTP_PORT: String(httpPort) }, { inProcess: true, settings: { withoutJobs: true } });
  db = await openDb({ clock: systemClock, url: world.databaseUrl, poolSize: 2, log: silentLog });
  outbound = createTrustedOutbound(systemClock, { ca: acme.ca });
  await dns.a("domains.edge.test", "127.0.0.1");
});
afterAll(async () => {
  await Promise.all([db?.close(), outbound?.close(), world?.close()]);
  await Promise.all([acme?.close(), dns?.close()]);
});

// A node works on the orders of every domain.
afterEach(() => world.sql.query("delete from custom_domains"));

class Killed extends Error {}
const CALLS = ["createOrder", "getAuthorizations", "completeChallenge", "finalizeOrder", "getCertificate"] as const;
type Kill = `${"before" | "after"} ${(typeof CALLS)[number]}`;
const killsAt = (calls: readonly (typeof CALLS)[number][]): readonly Kill[] => calls.flatMap((call) => [`before ${call}`, `after ${call}`] as const);
/** The authority uses a valid authorization again, so a renewal proves nothing. */
const ROUNDS = [killsAt(CALLS), killsAt(["createOrder", "finalizeOrder", "getCertificate"])];

/** A node that is killed there: nothing of what follows happens. Null: it lives. */
const runNode = async (kill: Kill | null): Promise<boolean> => {
  const secretBox = createSecretBox(Buffer.alloc(32, 7));
  const settings = { directoryUrl: acme.directoryUrl, email: undefined, eab: null, pollMs: 20 };
  const real = createAuthority({ db, secretBox, outbound, settings });
  let died = false;
  const dieAt = (point: Kill): void => {
    if (point !== kill) return;
    died = true;
    throw new Killed(point);
  };
  const mortal = (client: Client): Client =>
    new Proxy(client, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return async (...given: unknown[]) => {
          const call = CALLS.find((each) => each === name);
          if (call !== undefined) dieAt(`before ${call}`);
          const answer: unknown = await value.apply(target, given);
          if (call !== undefined) dieAt(`after ${call}`);
          return answer;
        };
      },
    });
  const shared = { db, clock: systemClock, emit: async () => undefined, changed: () => undefined };
  const edge = () => ({ cnameTarget: "domains.edge.test", addresses: [] });
  const checks = createDnsChecks({ servers: [dns.address], newResolver: newDomainResolver });
  const checking = createChecking({ ...shared, dns: checks, edge, issuers: async () => [] });
  const issuing = createIssuing({ ...shared, checking, secretBox, random: () => 0 });
  const { job } = createCertificateOrders({
    db,
    clock: systemClock,
    secretBox,
    authority: { ...real, withClient: (run) => real.withClient((client) => run(mortal(client))) },
    // Who is dead writes nothing down.
    issuing: { ...issuing, refused: async (...given) => (died ? undefined : issuing.refused(...given)) },
    onError: () => undefined,
  });
  await job.run(new AbortController().signal);
  return died;
};
/** The lease of the dead node runs out. */
const waitForLease = (): Promise<unknown> => world.sql.query("update custom_domains set lease_until = now() - interval '1 second', order_not_before = null");

/** Nodes take the order on until one of them has died there, or until it is done: a slow authority may keep a node waiting for longer than it does. */
const runUntil = (kill: Kill | null, check: (died: boolean) => Promise<void> | void): Promise<void> =>
  eventually(async () => {
    await waitForLease();
    await check(await runNode(kill));
  }, 40_000);
const runUntilKilled = (kill: Kill): Promise<void> => runUntil(kill, (died) => expect([kill, died]).toEqual([kill, true]));

const verifiedDomain = async (hostname: string): Promise<{ readonly get: () => Promise<Record<string, unknown>> }> => {
  const tenant = await world.tenant();
  const owner = await tenant.user("owner");
  const { domainId, verification } = (await world.call(owner, "POST", "/v1/custom-domains", { body: { hostname } })).body.data;
  await dns.txt(verification.name, verification.value);
  await dns.cname(hostname, "domains.edge.test");
  await world.sql.query("update custom_domains set next_check_at = now() - interval '1 second'");
  await runJob(world, "domains.check");
  return { get: async () => (await world.call(owner, "GET", `/v1/custom-domains/${domainId}`)).body.data };
};

test("a node may be killed at every step of an order, and the authority makes one certificate; so for a renewal", async () => {
  const { get } = await verifiedDomain("killed.example.com");
  const before = acme.issued;
  for (const [round, kills] of ROUNDS.entries()) {
    for (const kill of kills) {
      await runUntilKilled(kill);
    }
    await runUntil(null, async () => {
      expect(acme.issued - before).toBe(round + 1);
      expect(await get()).toMatchObject({ status: "active", certificate: { status: "active" } });
    });
    await world.sql.query("update custom_domains set next_renewal_at = now() - interval '1 second'");
  }
});

test("control: without the order that was written down, there are two certificates", async () => {
  const { get } = await verifiedDomain("control.example.com");
  const before = acme.issued;
  await runUntilKilled("after finalizeOrder");
  await world.sql.query("update custom_domains set order_url = null, order_key = null");
  await runUntil(null, async () => {
    expect(acme.issued - before).toBe(2);
    expect(await get()).toMatchObject({ status: "active" });
  });
});
