// No notation of a private address and no trick of a name server makes the outbound client connect to it.

import { Resolver } from "node:dns/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../server/core/clock.ts";
import type { OutboundError } from "../../../server/core/ports/outbound.ts";
import { type Blocked, createOutbound, type OpenOutbound, type OutboundSettings } from "../../../server/platform/outbound/outbound.ts";
import { createOutboundGuard, type GuardSettings } from "../../../server/platform/outbound/url.ts";
import { type Reply, startDnsServer } from "../../kit/net/dns-server.ts";
import { type CountingListener, startListener } from "../../kit/net/listeners.ts";

const OWN = "http://own.example:8080";
const NAMES: Readonly<Record<string, Reply>> = {
  "loopback.example": { addresses: ["127.0.0.1"] },
  "mapped.example": { addresses: ["::ffff:127.0.0.1"] },
  "v6.example": { addresses: ["::1"] },
  "mixed.example": { addresses: ["93.184.216.34", "127.0.0.1"] },
  "allowed-and-private.example": { addresses: ["127.0.0.2", "127.0.0.1"] },
  "alias.example": { addresses: ["127.0.0.1"], alias: "somewhere.else.example" },
  "many.example": { addresses: [...Array.from({ length: 49 }, () => "127.0.0.2"), "127.0.0.1"] },
  "allowed.example": { addresses: ["127.0.0.2"] },
  "aliased.example": { addresses: ["127.0.0.2"], alias: "allowed.example" },
  "fifty.example": { addresses: Array.from({ length: 50 }, () => "127.0.0.2") },
  "silent.example": "silence",
  "half-silent.example": { addresses: ["127.0.0.2"] },
  "denied.example": "nxdomain",
  "empty.example": { addresses: [] },
  "truncated.example": "truncated",
};
let dns: Awaited<ReturnType<typeof startDnsServer>>;
let [decoys, allowed]: [CountingListener[], CountingListener] = [[], undefined as unknown as CountingListener];
const opened: OpenOutbound[] = [];
const blocked: Blocked[] = [];

const newResolver = () => {
  const resolver = new Resolver({ timeout: 200, tries: 1 });
  resolver.setServers([dns.server]);
  return resolver;
};
const open = (given: Partial<GuardSettings> | null, settings: Partial<OutboundSettings> = {}): OpenOutbound => {
  const guard =
    given === null ? null : createOutboundGuard({ allowCidrs: ["127.0.0.2/32"], allowHttp: true, ownUrls: () => [OWN], isOwn: () => false, ...given });
  const outbound = createOutbound({
    clock: systemClock,
    guard,
    onBlocked: (each) => blocked.push(each),
    settings: { newResolver, systemLookup: null, ...settings },
  });
  opened.push(outbound);
  return outbound;
};
const codeOf = (outbound: OpenOutbound, url: string): Promise<string> =>
  outbound.send({ url, owner: "ten_1" }).then(
    ({ statusCode }) => String(statusCode),
    (error: OutboundError) => error.code,
  );
const reached = (): number => decoys.reduce((sum, { connections }) => sum + connections(), 0);

beforeAll(async () => {
  dns = await startDnsServer((name, type, nth) => {
    if (name === "rebinding.example") return { addresses: [nth === 1 ? "127.0.0.2" : "127.0.0.1"] };
    if (name === "half-silent.example" && type === "AAAA") return "silence";
    return NAMES[name] ?? "nxdomain";
  });
  // All on one port, so that a URL with any notation of the address would reach one of them.
  const first = await startListener("127.0.0.1");
  allowed = await startListener("127.0.0.2", undefined, first.port);
  decoys = [first, await startListener("::1", undefined, first.port)];
});
afterAll(async () => {
  await Promise.all([...opened.map((each) => each.close()), ...decoys.map((each) => each.close()), allowed.close(), dns.close()]);
});

describe("literals", () => {
  const NOTATIONS = [
    ...["127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0x7F.0x0.0x0.0x1", "0177.0.0.1", "017700000001", "0177.0.0.01"],
    ...["127.0.0.1.", "0", "0.0.0.0", "0x0", "00000000", "１２７.０.０.１", "127。0。0。1", "①②⑦.0.0.1", "%31%32%37.0.0.1", "127.0.0.1%2e"],
    ...["[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[::7f00:1]"],
    ...["[2002:7f00:1::]", "[2002:7f00:0001::1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2001::1]", "[2001:0:7f00:1::]"],
    ...["[::ffff:0:127.0.0.1]", "[fe80::1]", "[fec0::1]", "[fc00::1]", "[fd00::1]", "[ff02::1]", "[100::1]", "[2001:db8::1]", "[3fff::1]", "[5f00::1]"],
    ...["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254", "100.64.0.1", "198.18.0.1", "192.0.0.1", "192.0.2.1"],
    ...["192.88.99.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "[::ffff:169.254.169.254]"],
  ];

  test("no notation of a private address makes a connection, and each block is told", async () => {
    const outbound = open({});
    const [before, told] = [reached(), blocked.length];
    for (const host of NOTATIONS) expect([host, await codeOf(outbound, `http://${host}:${allowed.port}/`)]).toEqual([host, "BLOCKED"]);
    expect(reached()).toBe(before);
    expect(blocked.length - told).toBe(NOTATIONS.length);
    expect(blocked.at(-1)).toEqual({
      owner: "ten_1",
      host: "::ffff:a9fe:a9fe",
      address: "::ffff:a9fe:a9fe",
      reason: expect.stringContaining("169.254.169.254"),
    });
  });

  test("the same URLs do reach the decoys without the guard", async () => {
    const before = reached();
    const trusting = open(null);
    for (const host of ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "１２７.０.０.１", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0"])
      expect([host, await codeOf(trusting, `http://${host}:${allowed.port}/`)]).toEqual([host, "200"]);
    expect(reached() - before).toBeGreaterThanOrEqual(5);
  });

  test.each(["127.0.0.2", "127.2", "2130706434", "[::ffff:127.0.0.2]"])("an allowed address is reached as %s", async (host) => {
    const before = allowed.connections();
    const answer = await open({}).send({ url: `http://${host}:${allowed.port}/`, owner: "ten_1" });
    expect(answer).toMatchObject({ statusCode: 200, truncated: false });
    expect(answer.body.toString()).toBe("ok");
    expect(answer.address).toMatch(/127\.0\.0\.2$/);
    expect(allowed.connections()).toBe(before + 1);
  });
});

describe("names", () => {
  test.each(["loopback", "mapped", "v6", "mixed", "allowed-and-private", "alias", "many"])(
    "%s.example is refused for one private address among all, without a connection",
    async (name) => {
      const before = [reached(), allowed.connections()];
      expect(await codeOf(open({}), `http://${name}.example:${allowed.port}/`)).toBe("BLOCKED");
      expect([reached(), allowed.connections()]).toEqual(before);
    },
  );

  test("a name that points elsewhere with its next answer is judged with each connection", async () => {
    const outbound = open({});
    const url = `http://rebinding.example:${allowed.port}/`;
    expect(await outbound.refusal(url)).toBeNull();
    const before = reached();
    expect(await codeOf(outbound, url)).toBe("BLOCKED");
    expect(reached()).toBe(before);
  });

  test.each(["allowed", "aliased", "fifty", "half-silent"])("%s.example is reached", async (name) => {
    expect(await codeOf(open({}), `http://${name}.example:${allowed.port}/`)).toBe("200");
  });

  test.each(["silent", "denied", "empty", "truncated"])("%s.example ends as DNS", async (name) => {
    expect(await codeOf(open({}), `http://${name}.example:${allowed.port}/`)).toBe("DNS");
  });

  test("the system is asked for names that the DNS denies, never for those whose server is silent", async () => {
    const asked: string[] = [];
    const systemLookup = (async (name: string) => {
      asked.push(name);
      return [{ address: name === "denied.example" ? "127.0.0.2" : "127.0.0.1", family: 4 }];
    }) as unknown as NonNullable<OutboundSettings["systemLookup"]>; // as: of its overloads only this one is called
    const outbound = open({}, { systemLookup });
    expect(await codeOf(outbound, `http://denied.example:${allowed.port}/`)).toBe("200");
    expect(await codeOf(outbound, `http://empty.example:${allowed.port}/`)).toBe("BLOCKED");
    expect(await codeOf(outbound, `http://silent.example:${allowed.port}/`)).toBe("DNS");
    expect(asked).toEqual(["denied.example", "empty.example"]);
  });

  test("a look-up by the system that hangs ends with the connection's time", async () => {
    const systemLookup = (() => new Promise(() => undefined)) as unknown as NonNullable<OutboundSettings["systemLookup"]>; // as: as above
    expect(await codeOf(open({}, { systemLookup, connectTimeoutMs: 300 }), `http://denied.example:${allowed.port}/`)).toBe("TIMEOUT");
  });
});

describe("URLs", () => {
  const strict = () => open({ allowHttp: false, allowCidrs: [] });

  test.each([
    ["not a URL", "hook"],
    ["another scheme", "ftp://hooks.example/"],
    ["http", "http://hooks.example/"],
    ["a user", "https://user@hooks.example/"],
    ["a password", "https://:secret@hooks.example/"],
    ["a fragment", "https://hooks.example/#part"],
    ["a name that ends in a dot", "https://hooks.example./"],
    ["more than 2,048 characters", `https://hooks.example/${"a".repeat(2_048)}`],
    ["a host of more than 253 characters", `https://${"a.".repeat(126)}example/`],
    ["localhost", "https://localhost/"],
    ["a name below localhost", "https://a.localhost/"],
    ["a name of the local network", "https://nas.local/"],
    ["an internal name", "https://db.internal/"],
    ["a metadata service", "https://metadata.google.internal/"],
    ["the service itself", "https://own.example/"],
    ["the service itself in capitals and with another port", "https://OWN.example:9000/"],
    ["port 80", "https://hooks.example:80/"],
    ["port 25", "https://hooks.example:25/"],
    ["port 0", "https://hooks.example:0/"],
    ["a backslash before a user", "https://hooks.example\\@127.0.0.1/"],
    ["a private address", "https://10.0.0.1/"],
  ])("%s is refused at once", async (what, url) => {
    const outbound = strict();
    if (what === "a backslash before a user") expect(new URL(url).hostname).toBe("hooks.example");
    else {
      expect(await outbound.refusal(url)).toEqual(expect.any(String));
      expect(await codeOf(outbound, url)).toBe("BLOCKED");
    }
  });

  test.each(["https://hooks.example/", "https://hooks.example:8443/a?b=c", "https://hooks.example:1024/", "https://hooks.example:65535/", "https://1.1.1.1/"])(
    "%s may be called",
    async (url) => {
      expect(await strict().refusal(url)).toBeNull();
    },
  );

  test("http and its port 80 need the operator's word", async () => {
    expect(await open({}).refusal("http://hooks.example/")).toBeNull();
    expect(await strict().refusal("http://hooks.example/")).toBe("must be an https URL");
  });

  test("with an allow-list, names of the local network are judged by their addresses", async () => {
    const outbound = open({ allowCidrs: ["127.0.0.2/32"] });
    expect(await outbound.refusal("https://nas.local/")).toBeNull();
    expect(await outbound.refusal("https://metadata.google.internal/")).toEqual(expect.any(String));
  });

  test("an address of our own is refused with our port only", async () => {
    const outbound = open({ ownUrls: () => ["http://127.0.0.2:8080"] });
    expect(await outbound.refusal("http://127.0.0.2:8080/")).toBe("the host is this service itself");
    expect(await outbound.refusal(`http://127.0.0.2:${allowed.port}/`)).toBeNull();
  });

  test("a refusal counts as a blocked call of the owner who is named", async () => {
    const outbound = strict();
    const before = blocked.length;
    await outbound.refusal("https://10.0.0.1/");
    expect(blocked.length).toBe(before);
    await outbound.refusal("https://10.0.0.1/", "ten_2");
    expect(blocked.slice(before)).toEqual([{ owner: "ten_2", host: "10.0.0.1", address: "10.0.0.1", reason: "the address 10.0.0.1 is not public" }]);
  });

  test("a redirect to a private address is an answer like any other", async () => {
    const redirecting = await startListener("127.0.0.2", (socket) => {
      socket.on("data", () => socket.end(`HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:${allowed.port}/\r\ncontent-length: 0\r\n\r\n`));
    });
    const before = reached();
    const answer = await open({}).send({ url: `http://127.0.0.2:${redirecting.port}/`, owner: "ten_1" });
    expect(answer).toMatchObject({ statusCode: 302, headers: { location: `http://127.0.0.1:${allowed.port}/` } });
    expect(reached()).toBe(before);
    await redirecting.close();
  });

  test("proxies of the environment are not used", async () => {
    const before = reached();
    for (const name of ["http_proxy", "HTTP_PROXY", "all_proxy"]) process.env[name] = `http://127.0.0.1:${allowed.port}`;
    try {
      expect(await codeOf(open({}), `http://127.0.0.2:${allowed.port}/`)).toBe("200");
      expect(reached()).toBe(before);
    } finally {
      for (const name of ["http_proxy", "HTTP_PROXY", "all_proxy"]) delete process.env[name];
    }
  });
});
