// The life of custom domains with a real certificate authority and a real name server: claims, checks, certificates, takeovers, on two nodes.
import { connect } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { runJob } from "../../kit/gateway/run-job.ts";
import { type Caller, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { type AcmeServer, type NameServer, startAcmeServer, startNameServer } from "../../kit/net/acme.ts";
import { freePort } from "../../kit/net/free-port.ts";

let dns: NameServer & { close(): Promise<void> };
let authority: AcmeServer;
let world: World;
let other: World;
let tenant: TestTenant;
let owner: Caller;
beforeAll(async () => {
  dns = await startNameServer();
  const httpPort = await freePort();
  authority = await startAcmeServer({ httpPort, dnsServer: dns.address });
  const acme = { ACME_DIRECTORY_URL: authority.directoryUrl, ACME_CA_FILE: authority.caFile, ACME_EMAIL: "ops@example.com" };
  const env = { ...acme, DNS_SERVERS: dns.address, EDGE_PORT: "0", TUNNEL_DOMAIN: "edge.test" };
  // The authority asks one node, and mostly the other one works on the order.
  world = await startWorld({ ...env, EDGE_HTTP_PORT: String(httpPort) }, { settings: { withoutJobs: true } });
  other = await startWorld(env, { beside: world, settings: { withoutJobs: true } });
  tenant = await world.tenant();
  owner = await tenant.user("owner");
  await dns.a("domains.edge.test", "127.0.0.1");
});
afterAll(async () => {
  await Promise.all([other?.close(), world?.close()]);
  await Promise.all([authority?.close(), dns?.close()]);
});

type Domain = Record<string, never> & { domainId: string; hostname: string; status: string; [name: string]: unknown };
// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came back
const data = ({ status, body }: { status: number; body: any }) => {
  if (status >= 300) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return body.data;
};
let count = 0;
const claim = async (as = owner, hostname = `d${++count}.example.com`): Promise<Domain> =>
  data(await world.call(as, "POST", "/v1/custom-domains", { body: { hostname } }));
const get = async ({ domainId }: Pick<Domain, "domainId">, as = owner) => data(await world.call(as, "GET", `/v1/custom-domains/${domainId}`));
const setTxt = ({ verification }: Domain) => {
  const { name, value } = verification as unknown as { name: string; value: string };
  return dns.txt(name, "v=spf1 -all", value);
};
/** The records that the domain needs. */
const setRecords = async (domain: Domain): Promise<void> => {
  await setTxt(domain);
  await dns.cname(domain.hostname, "domains.edge.test");
};
const due = ({ domainId }: Domain, set = "next_check_at = now() - interval '1 second', asked_at = null"): Promise<unknown> =>
  world.sql.query(`update custom_domains set ${set} where domain_id = $1`, [domainId]);
/** Time passes for the record. */
const age = (domain: Domain, days: number) => due(domain, `status_since = status_since - interval '${days} days', next_check_at = now() - interval '1 second'`);
const checkOnce = async (domain: Domain, as = owner) => {
  await due(domain);
  await runJob(world, "domains.check");
  return get(domain, as);
};
/** On a busy machine even a name server on loopback may be late, which the gateway takes for no answer. */
const check = (domain: Domain, as = owner) =>
  eventually(async () => {
    const checked = await checkOnce(domain, as);
    if ([checked.checks.txt, checked.checks.cname, checked.checks.caa].some(({ status }) => status === "unknown"))
      throw new Error("the name server did not answer in time");
    return checked;
  });
const order = (by = other) => runJob(by, "domains.orders");
/** An order waits for minutes after a name server that was late, so a test lets it go on until it has come to what it expects. */
const orderUntil = (domain: Domain, status: string) =>
  eventually(async () => {
    await due(domain, "order_not_before = null");
    await order();
    const seen = await get(domain);
    if (seen.certificate.status !== status) throw new Error(`the certificate is ${seen.certificate.status}: ${seen.certificate.lastError}`);
    return seen;
  });
/** A domain that waits for its certificate. */
const issuing = async (): Promise<Domain> => {
  const domain = await claim();
  await setRecords(domain);
  await check(domain);
  return domain;
};
/** A domain that is served. */
const served = async (): Promise<Domain> => orderUntil(await issuing(), "active");
/** Without the orders that had to go on later. */
const eventsOf = async ({ domainId }: Domain): Promise<readonly string[]> =>
  (
    await world.sql.query("select type from outbox_events where subject_id = $1 and type <> 'domain.certificate_failed' order by position", [domainId])
  ).rows.map(({ type }) => type);
const serialOf = (servername: string, at = world): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port: at.app.edgePort(), servername, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.on("error", reject);
  });

describe("a domain", () => {
  test("is claimed, verified, gets a certificate, serves it on both nodes, and gets another one in time", async () => {
    const domain = await claim();
    expect(domain).toMatchObject({ status: "pending_verification", certificate: { status: "none" }, dns: { recordType: "CNAME", value: "domains.edge.test" } });
    expect(await check(domain)).toMatchObject({ status: "pending_verification", checks: { txt: { status: "fail", found: [], resolver: dns.address } } });
    await setTxt(domain);
    expect(await check(domain)).toMatchObject({ status: "verified", checks: { cname: { status: "fail" } } });
    await dns.cname(domain.hostname, "domains.edge.test");
    expect(await check(domain)).toMatchObject({ status: "issuing_certificate", certificate: { status: "pending" } });
    const active = await orderUntil(domain, "active");
    expect(active).toMatchObject({
      status: "active",
      certificate: { status: "active", source: "acme", lastError: null },
      checks: { http: { status: "pass" } },
    });
    const first = await serialOf(domain.hostname);
    expect(await serialOf(domain.hostname, other)).toBe(first);

    await eventually(async () => {
      await due(domain, "next_renewal_at = now() - interval '1 second', order_not_before = null");
      await order(world);
      expect(await serialOf(domain.hostname)).not.toBe(first);
    });
    const renewed = await get(domain);
    expect(renewed.certificate.notAfter >= active["certificate"].notAfter).toBe(true);
    expect(await eventsOf(domain)).toEqual(["domain.created", "domain.verified", "domain.certificate_renewed", "domain.active", "domain.certificate_renewed"]);
    const { chain, source } = data(await world.call(owner, "GET", `/v1/custom-domains/${domain.domainId}/certificate`));
    expect([source, chain.split("BEGIN CERTIFICATE").length - 1]).toEqual(["acme", 2]);
    expect(JSON.stringify(renewed)).not.toContain("PRIVATE");
  });

  test("tells once that its certificate ends soon", async () => {
    const domain = await served();
    await due(domain, "cert_not_after = now() + interval '6 days'");
    await runJob(world, "domains.expiring");
    await runJob(world, "domains.expiring");
    expect((await eventsOf(domain)).filter((type) => type === "domain.certificate_expiring")).toHaveLength(1);
  });

  test("waits while a CAA record forbids the authority, or nobody can tell", async () => {
    const domain = await claim();
    await setRecords(domain);
    await dns.servfail(domain.hostname, true);
    expect(await checkOnce(domain)).toMatchObject({ status: "verified", checks: { cname: { status: "unknown" } } });
    await dns.servfail(domain.hostname, false);
    expect(await check(domain)).toMatchObject({ status: "issuing_certificate" });
  });

  test("is degraded when its CNAME has moved for three checks, and serves again when it is back", async () => {
    const domain = await served();
    await dns.cname(domain.hostname, "elsewhere.test");
    expect(await check(domain)).toMatchObject({ status: "active" });
    await dns.servfail(domain.hostname, true);
    for (let n = 0; n < 4; n += 1) expect(await checkOnce(domain)).toMatchObject({ status: "active", checks: { cname: { status: "unknown" } } });
    await dns.servfail(domain.hostname, false);
    await check(domain);
    const moved = await check(domain);
    expect(moved).toMatchObject({ status: "degraded", failure: "DNS_MISMATCH", checks: { cname: { found: ["elsewhere.test"] } } });
    expect(Date.parse(moved.routingEndsAt) - Date.parse(moved.statusSince)).toBe(7 * 86_400_000);
    await serialOf(domain.hostname);
    await dns.cname(domain.hostname, "domains.edge.test");
    expect(await check(domain)).toMatchObject({ status: "active", failure: null, routingEndsAt: null });
  });

  test("serves nobody any more seven days after its records went away, and another tenant can have it", async () => {
    const domain = await served();
    await dns.cname(domain.hostname, null);
    for (let n = 0; n < 3; n += 1) await check(domain);
    await age(domain, 6);
    expect(await check(domain)).toMatchObject({ status: "degraded" });
    await age(domain, 1);
    // The other node may have begun a check before that.
    await eventually(async () =>
      expect(await check(domain)).toMatchObject({ status: "failed", certificate: { status: "none" }, verification: { verifiedAt: null }, nextCheckAt: null }),
    );
    await expect(serialOf(domain.hostname)).rejects.toThrow();
    const next = await (await world.tenant()).user("owner");
    const theirs = await claim(next, domain.hostname);
    await setTxt(theirs);
    expect(await check(theirs, next)).toMatchObject({ status: "verified" });
    expect((await world.call(owner, "POST", `/v1/custom-domains/${domain.domainId}/verify`)).body.code).toBe("DOMAIN_TAKEN");
  });

  test("expires after seven days without a record, and starts again when somebody asks", async () => {
    const domain = await claim();
    await age(domain, 7);
    expect(await check(domain)).toMatchObject({ status: "expired", nextCheckAt: null });
    await setTxt(domain);
    expect(data(await world.call(owner, "POST", `/v1/custom-domains/${domain.domainId}/verify`))).toMatchObject({ status: "verified" });
    const again = await world.call(owner, "POST", `/v1/custom-domains/${domain.domainId}/verify`);
    expect([again.status, again.body.code, again.body.retryAfter > 50]).toEqual([429, "DOMAIN_CHECK_TOO_SOON", true]);
  });
});

describe("a takeover", () => {
  test("fails in every state: a claim proves nothing, and the first TXT record wins", async () => {
    const thief = await (await world.tenant()).user("owner");
    const mine = await claim();
    const theirs = await claim(thief, mine.hostname);
    await setRecords(mine);
    expect((await check(theirs, thief)).status).toBe("pending_verification");
    expect((await check(mine)).status).toBe("issuing_certificate");
    // Their claim looks at once and finds the name taken.
    await runJob(world, "domains.check");
    expect(await get(theirs, thief)).toMatchObject({ status: "failed", failure: "DOMAIN_TAKEN", certificate: { status: "none" } });
    expect((await world.call(thief, "POST", "/v1/custom-domains", { body: { hostname: mine.hostname } })).body.code).toBe("DOMAIN_TAKEN");
    const third = await (await world.tenant()).user("owner");
    expect((await world.call(third, "POST", "/v1/custom-domains", { body: { hostname: mine.hostname } })).body.details).toEqual({ hostname: mine.hostname });
    expect((await orderUntil(mine, "active")).status).toBe("active");
    for (const path of [``, `/verify`, `/certificate/renew`]) {
      const answer = await world.call(thief, path === "" ? "GET" : "POST", `/v1/custom-domains/${mine.domainId}${path}`);
      expect([path, answer.status, answer.body.code]).toEqual([path, 404, "DOMAIN_NOT_FOUND"]);
    }
  });

  test("of two tenants who prove it at one moment, one has the name", async () => {
    const thief = await (await world.tenant()).user("owner");
    const mine = await claim();
    const theirs = await claim(thief, mine.hostname);
    const values = [mine, theirs].map(({ verification }) => (verification as unknown as { value: string }).value);
    await dns.txt(`_svc-verify.${mine.hostname}`, ...values);
    await Promise.all([due(mine), due(theirs)]);
    await Promise.all([runJob(world, "domains.check"), runJob(other, "domains.check")]);
    await due(mine);
    await due(theirs);
    await runJob(world, "domains.check");
    expect([(await get(mine)).status, (await get(theirs, thief)).status].sort()).toEqual(["failed", "verified"]);
  });
});

describe("an order", () => {
  test("that the authority refuses says why, and waits an hour", async () => {
    const domain = await issuing();
    // The authority is led to a port where nobody answers.
    await dns.cname("domains.edge.test", null);
    await dns.a("domains.edge.test", "127.0.0.9");
    const failed = await orderUntil(domain, "failed");
    await dns.a("domains.edge.test", "127.0.0.1");
    expect(failed).toMatchObject({ status: "issuing_certificate", checks: { http: { status: "fail", resolver: "localhost" } } });
    expect(failed.certificate.lastError).toMatch(/^ACME_REFUSED: /);
    const before = authority.issued;
    await order();
    expect(authority.issued).toBe(before);
    expect((await world.call(owner, "POST", `/v1/custom-domains/${domain.domainId}/certificate/renew`)).body.code).toBe("CERTIFICATE_RATE_LIMITED");
    await due(domain, "ordered_at = now() - interval '2 hours'");
    data(await world.call(owner, "POST", `/v1/custom-domains/${domain.domainId}/certificate/renew`));
    expect(await orderUntil(domain, "active")).toMatchObject({ status: "active", certificate: { lastError: null } });
  });

  test("on which two nodes work at once brings one certificate", async () => {
    const domain = await issuing();
    const before = authority.issued;
    await Promise.all([order(world), order(other)]);
    expect((await orderUntil(domain, "active")).status).toBe("active");
    expect(authority.issued - before).toBe(1);
  });

  test("waits while the authority is down, and goes on afterwards, although it has forgotten the account", async () => {
    await served();
    const domain = await issuing();
    await authority.stop();
    const waiting = await orderUntil(domain, "failed");
    expect(waiting).toMatchObject({ status: "issuing_certificate", certificate: { lastError: expect.stringContaining("cannot be reached") } });
    await authority.start();
    await due(domain, "order_not_before = null");
    await order();
    expect((await get(domain)).certificate.lastError).toMatch(/^ACME_REFUSED: .*account/i);
    expect((await orderUntil(domain, "active")).status).toBe("active");
  });
});
