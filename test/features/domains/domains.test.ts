// The rules of custom domains as functions: names, states, schedule, what the DNS says, certificates.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { DOMAIN_STATUSES } from "../../../protocol/index.ts";
import { createDnsChecks, type DnsQueries } from "../../../server/features/domains/dns.ts";
import { judgeHostname } from "../../../server/features/domains/hostname.ts";
import { judgePem } from "../../../server/features/domains/pem.ts";
import { orderWaitMs, renewalAt, waitMs } from "../../../server/features/domains/schedule.ts";
import { canMoveDomain, DOMAIN_TARGET, type DomainStep } from "../../../server/features/domains/states.ts";

const ZONES = ["tunnels.example.net", "gateway.example.net"];
const judged = (name: string) => judgeHostname(name, ZONES);

describe("a name", () => {
  test.each([
    ["shop.example.com", "shop.example.com"],
    ["SHOP.Example.COM.", "shop.example.com"],
    ["bücher.example.com", "xn--bcher-kva.example.com"],
    ["例え.テスト", "xn--r8jz45g.xn--zckzah"],
    ["example.co.uk", "example.co.uk"],
    ["me.github.io", "me.github.io"],
    ["app.home.test", "app.home.test"],
    ["gateway.example.net.evil.com", "gateway.example.net.evil.com"],
  ])("%s is known as %s", (given, hostname) => {
    expect(judged(given)).toEqual({ hostname });
  });

  test.each([
    ["*.example.com", "wildcard_unsupported"],
    ["192.0.2.1", "ip_address"],
    ["[2001:db8::1]", "ip_address"],
    ["2001:db8::1", "ip_address"],
    ["0x7f.1", "ip_address"],
    ["2130706433", "ip_address"],
    ["co.uk", "public_suffix"],
    ["github.io", "public_suffix"],
    ["com", "single_label"],
    ["localhost", "single_label"],
    ["tunnels.example.net", "own_zone"],
    ["x.tunnels.example.net", "own_zone"],
    ["Gateway.Example.NET", "own_zone"],
    [`${"a".repeat(64)}.example.com`, "label_too_long"],
    [`${"a.".repeat(130)}example.com`, "too_long"],
    ["a_b.example.com", "not_a_hostname"],
    ["-a.example.com", "not_a_hostname"],
    ["a..example.com", "not_a_hostname"],
    ["example.com:8080", "not_a_hostname"],
    ["https://example.com", "not_a_hostname"],
    ["user@example.com", "not_a_hostname"],
    ["a b.example.com", "not_a_hostname"],
    ["a\u0000.example.com", "not_a_hostname"],
    ["xn--a.example.com", "not_a_hostname"],
    [".", "not_a_hostname"],
  ])("%s cannot be a domain: %s", (given, refusal) => {
    expect(judged(given)).toEqual({ refusal });
  });

  test("that looks like another one is another one", () => {
    expect(judged("аpple.example.com")).not.toEqual(judged("apple.example.com"));
  });
});

test("a domain changes from state to state as its document says, and in no other way", () => {
  const steps = Object.keys(DOMAIN_TARGET) as DomainStep[];
  const allowed = DOMAIN_STATUSES.map((from) => [from, steps.filter((step) => canMoveDomain(from, step)).map((step) => DOMAIN_TARGET[step])]);
  expect(Object.fromEntries(allowed)).toEqual({
    pending_verification: ["verified", "failed", "expired"],
    verified: ["issuing_certificate", "active", "failed"],
    issuing_certificate: ["active", "failed"],
    active: ["degraded", "failed"],
    degraded: ["active", "failed"],
    failed: ["pending_verification"],
    expired: ["pending_verification"],
  });
});

describe("the schedule", () => {
  test("looks soon after a claim, then every hour, and every day once all is well", () => {
    const minutes = [0, 1, 2, 3, 4, 5, 6].map((checkCount) => (waitMs({ status: "pending_verification", checkCount, misses: 0 }) ?? 0) / 60_000);
    expect(minutes).toEqual([1, 2, 5, 10, 30, 60, 60]);
    expect(waitMs({ status: "active", checkCount: 9, misses: 0 })).toBe(86_400_000);
    expect(waitMs({ status: "active", checkCount: 9, misses: 1 })).toBe(3_600_000);
    expect(waitMs({ status: "failed", checkCount: 0, misses: 0 })).toBeNull();
  });

  test("waits longer after each failed order, and as long as the authority asks", () => {
    const hours = [1, 2, 3, 4, 5, 6, 60].map((failures) => orderWaitMs(failures, 0) / 3_600_000);
    expect(hours).toEqual([1, 2, 4, 8, 16, 24, 24]);
    expect(orderWaitMs(1, 172_800_000)).toBe(172_800_000);
  });

  test("renews at two thirds of a certificate's life, not all at once", () => {
    const [from, to] = [new Date(0), new Date(90 * 86_400_000)];
    const days = [0, 0.5, 0.999].map((random) => Math.round(renewalAt(from, to, random).getTime() / 86_400_000));
    expect(days).toEqual([60, 56, 51]);
  });
});

const absent = (): never => {
  throw Object.assign(new Error("none"), { code: "ENODATA" });
};
const broken = (): never => {
  throw Object.assign(new Error("broken"), { code: "ESERVFAIL" });
};
type Script = { readonly [K in keyof DnsQueries]?: (name: string) => unknown };
const resolverOf = (script: Script): DnsQueries => {
  const answer = (kind: keyof DnsQueries) => async (name: string) => (script[kind] ?? absent)(name);
  const kinds = ["resolveTxt", "resolveCname", "resolveCaa", "resolve4", "resolve6"] as const;
  return Object.fromEntries(kinds.map((kind) => [kind, answer(kind)])) as unknown as DnsQueries; // as: by these names
};
const checksWith = (...scripts: readonly Script[]) =>
  createDnsChecks({ servers: scripts.map((_, at) => `192.0.2.${at}`), newResolver: (server) => resolverOf(scripts[Number(server?.split(".")[3])] ?? {}) });

describe("what the DNS says", () => {
  const TXT = { name: "_svc-verify.example.com", value: "svc-domain-verification=1" };
  const CNAME = { hostname: "www.example.com", value: "domains.edge.test", addresses: ["192.0.2.9"] };

  test("one of several TXT records passes, also in strings of 255 bytes", async () => {
    const records = [["v=spf1 -all"], ["svc-domain-", "verification=1"], ["x".repeat(255), "y".repeat(255)]];
    expect(await checksWith({ resolveTxt: () => records }).txt(TXT)).toMatchObject({ status: "pass", expected: TXT.value });
    const { status, found } = await checksWith({ resolveTxt: () => [["svc-domain-verification=2"]] }).txt(TXT);
    expect([status, found]).toEqual(["fail", ["svc-domain-verification=2"]]);
  });

  test("an answer of 64 kB shows ten lines of 300 characters", async () => {
    const { found } = await checksWith({ resolveTxt: () => Array.from({ length: 250 }, () => ["z".repeat(255), "\u0007".repeat(60)]) }).txt(TXT);
    expect(found.map((line) => line.length)).toEqual(Array.from({ length: 10 }, () => 300));
    expect(found.join("")).not.toContain("\u0007");
  });

  test("silence and SERVFAIL are unknown, no record is a miss", async () => {
    expect((await checksWith({ resolveTxt: broken }).txt(TXT)).status).toBe("unknown");
    expect((await checksWith({ resolveTxt: absent }).txt(TXT)).status).toBe("fail");
  });

  test("all name servers have to agree", async () => {
    const good = { resolveTxt: () => [[TXT.value]] };
    expect((await checksWith(good, good).txt(TXT)).status).toBe("pass");
    expect((await checksWith(good, { resolveTxt: broken }).txt(TXT)).status).toBe("unknown");
    expect((await checksWith(good, {}).txt(TXT)).status).toBe("fail");
  });

  test("a chain of CNAME records is followed, a circle is not", async () => {
    const chain: Record<string, string> = { "www.example.com": "a.example.com", "a.example.com": "Domains.Edge.TEST." };
    expect(await checksWith({ resolveCname: (name) => [chain[name] ?? absent()] }).cname(CNAME)).toMatchObject({
      status: "pass",
      found: ["a.example.com", "domains.edge.test"],
    });
    let asked = 0;
    const circle = (name: string) => {
      asked += 1;
      return [name === "www.example.com" ? "a.example.com" : "www.example.com"];
    };
    const { status, found } = await checksWith({ resolveCname: circle }).cname(CNAME);
    expect([status, asked, found.at(-1)]).toEqual(["fail", 2, "the CNAME records lead in a circle, or are more than 8"]);
  });

  test("addresses instead of a CNAME have to be ours, and no others", async () => {
    expect((await checksWith({ resolve4: () => ["192.0.2.9"] }).cname(CNAME)).status).toBe("pass");
    expect((await checksWith({ resolve4: () => ["192.0.2.9", "192.0.2.66"] }).cname(CNAME)).status).toBe("fail");
    expect((await checksWith({}).cname(CNAME)).status).toBe("fail");
  });

  test("the closest name with CAA records decides", async () => {
    const asks = (records: Readonly<Record<string, unknown>>) =>
      checksWith({ resolveCaa: (name) => records[name] ?? absent() }).caa({ hostname: "www.example.com", issuers: ["ca.test"] });
    expect((await asks({})).status).toBe("pass");
    expect((await asks({ "example.com": [{ critical: 0, issue: "ca.test; accounturi=x" }] })).status).toBe("pass");
    expect((await asks({ "example.com": [{ critical: 0, issue: ";" }] })).status).toBe("fail");
    expect((await asks({ "www.example.com": [{ critical: 0, issue: "ca.test" }], "example.com": [{ critical: 0, issue: "other.test" }] })).status).toBe("pass");
    expect((await asks({ "example.com": [{ critical: 0, iodef: "mailto:a@example.com" }] })).status).toBe("pass");
  });
});

describe("a certificate of one's own", () => {
  const dir = mkdtempSync(join(tmpdir(), "mooring-pem-"));
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  const made = (name: string, ...more: readonly string[]) => {
    const [key, cert] = [join(dir, `${name}.key`), join(dir, `${name}.pem`)];
    const algorithm = more.includes("-newkey") ? [] : ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    const words = ["req", "-x509", ...algorithm, "-nodes", "-keyout", key, "-out", cert, "-days", "5", "-subj", "/CN=www.example.com/O=Tests"];
    execFileSync("openssl", [...words, "-addext", "subjectAltName=DNS:www.example.com", ...more], { stdio: "ignore" });
    return { chain: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
  };
  const good = made("good");
  const now = new Date();
  const refusalOf = (pem: typeof good, hostname = "www.example.com", at = now) => judgePem(pem, hostname, at);

  test("is accepted with its dates and its issuer", () => {
    expect(refusalOf(good)).toMatchObject({ checked: { issuer: "Tests", fingerprint: expect.stringMatching(/^[\dA-F:]{95}$/) } });
  });

  test("is refused if a server or a browser could not use it", () => {
    const other = made("other");
    expect(refusalOf({ ...good, chain: "none" })).toEqual({ refusal: "not_a_certificate" });
    expect(refusalOf({ ...good, chain: good.chain.replace("MII", "AAA") })).toEqual({ refusal: "not_a_certificate" });
    expect(refusalOf({ ...good, key: "none" })).toEqual({ refusal: "not_a_private_key" });
    expect(refusalOf({ ...good, key: good.key.replaceAll("PRIVATE KEY", "ENCRYPTED PRIVATE KEY") })).toEqual({ refusal: "encrypted_key" });
    expect(refusalOf({ ...good, key: other.key })).toEqual({ refusal: "key_mismatch" });
    expect(refusalOf(good, "evil.example.com")).toEqual({ refusal: "name_mismatch" });
    expect(refusalOf(good, "www.example.com", new Date(now.getTime() + 6 * 86_400_000))).toEqual({ refusal: "expired" });
    expect(refusalOf(good, "www.example.com", new Date(now.getTime() - 86_400_000))).toEqual({ refusal: "not_yet_valid" });
    expect(refusalOf({ ...good, chain: good.chain + other.chain })).toEqual({ refusal: "broken_chain" });
    expect(refusalOf({ ...good, chain: good.chain.repeat(11) })).toEqual({ refusal: "chain_too_long" });
    expect(refusalOf(made("weak", "-newkey", "rsa:1024"))).toEqual({ refusal: "weak_key" });
  });
});
