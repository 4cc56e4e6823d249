// The rules of mesh routes as functions: where a route may lead, which one a connection takes, through which router, and what a router's agent refuses
// whoever asks it.
import { describe, expect, test } from "vitest";
import { connectForRoute, type RouterRoute } from "../../../agent-sim/host/mesh/allowed.ts";
import { readGreeting, readRequest } from "../../../agent-sim/host/mesh/socks.ts";
import { isAppError } from "../../../server/core/errors.ts";
import { contains, judgeNetwork, overlap } from "../../../server/core/networks.ts";
import { afterProbe, type RoutePlan, readTarget, routersToTry, routeStandingOf, routesTo, writeTarget } from "../../../server/features/mesh-routes/choose.ts";
import { type AskedRoute, judgeRoute } from "../../../server/features/mesh-routes/input.ts";

describe("a network", () => {
  test.each([
    ["0.0.0.0/0", "prefix_too_short"],
    ["::/0", "prefix_too_short"],
    ["10.0.0.0/7", "prefix_too_short"],
    ["192.168.10.7/24", "host_bits_set"],
    ["127.0.0.0/8", "loopback"],
    ["169.254.0.0/16", "link_local"],
    ["169.254.169.254/32", "link_local"],
    ["224.0.0.0/8", "multicast"],
    ["::ffff:10.0.0.0/104", "ipv4_mapped"],
    ["203.0.113.0/24", "public"],
    ["8.8.8.0/24", "public"],
    ["10.0.0.0", "not_a_network"],
    ["10.0.0/8", "not_a_network"],
    ["10.0.0.0/33", "not_a_network"],
    ["0xa.0.0.0/8", "not_a_network"],
    ["167772160/8", "not_a_network"],
    ["", "not_a_network"],
  ])("%s is refused: %s", (network, refusal) => expect(judgeNetwork(network, false)).toEqual({ refusal }));

  test.each(["10.0.0.0/8", "192.168.10.0/24", "172.16.0.0/12", "100.64.0.0/10", "fd00:1:2::/48", "10.1.2.3/32"])("%s is taken", (network) =>
    expect(judgeNetwork(network, false)).toMatchObject({ network: { text: network } }),
  );

  test("of public addresses needs leave", () => expect(judgeNetwork("8.8.8.0/24", true)).toMatchObject({ network: { text: "8.8.8.0/24" } }));

  test("contains addresses of its own kind, in their usual form only", () => {
    expect([
      contains("10.0.0.0/8", "10.9.9.9"),
      contains("10.0.0.0/8", "11.0.0.1"),
      contains("10.0.0.0/8", "167772161"),
      contains("10.0.0.0/8", "fd00::1"),
    ]).toEqual([true, false, false, false]);
    expect([overlap("10.0.0.0/8", "10.1.0.0/16"), overlap("10.0.0.0/16", "10.1.0.0/16")]).toEqual([true, false]);
  });
});

const asked = (more: Partial<AskedRoute>): AskedRoute => ({
  name: "plant",
  kind: "subnet",
  routers: [{ deviceId: "dev_a", metric: 1 }],
  consumers: { deviceIds: [], tags: ["x"], fleetIds: [], all: false },
  ...more,
});
const codeOf = (more: Partial<AskedRoute>): unknown => {
  try {
    judgeRoute(asked(more));
    return "taken";
  } catch (error) {
    if (!isAppError(error)) throw error;
    const { reason } = error.details as { readonly reason: string };
    return `${error.code} ${reason}`;
  }
};

describe("a route", () => {
  test.each<[string, Partial<AskedRoute>, string]>([
    ["without a network", {}, "VALIDATION_FAILED kind"],
    ["with a field of another kind", { network: "10.0.0.0/8", host: "10.0.0.1" }, "VALIDATION_FAILED kind"],
    ["without a router", { network: "10.0.0.0/8", routers: [] }, "MESH_ROUTER_REQUIRED no_router"],
    [
      "whose router is its consumer",
      { network: "10.0.0.0/8", consumers: { deviceIds: ["dev_a"], tags: [], fleetIds: [], all: false } },
      "MESH_ROUTER_REQUIRED router_is_consumer",
    ],
    ["whose probe is elsewhere", { network: "10.0.0.0/8", probe: { host: "11.0.0.1", port: 80 } }, "MESH_NETWORK_NOT_ALLOWED probe_outside"],
    ["to the metadata of a cloud", { kind: "host", host: "169.254.169.254", port: 80 }, "MESH_NETWORK_NOT_ALLOWED link_local"],
    ["to a public address", { kind: "host", host: "8.8.8.8", port: 53 }, "MESH_NETWORK_NOT_ALLOWED public"],
    ["to localhost by name", { kind: "host", host: "localhost", port: 80 }, "MESH_NETWORK_NOT_ALLOWED not_a_host"],
    ["to a wildcard in the middle", { kind: "domain", domains: ["a.*.example"] }, "MESH_NETWORK_NOT_ALLOWED not_a_domain"],
    ["to an address as a name", { kind: "domain", domains: ["10.0.0.1"] }, "MESH_NETWORK_NOT_ALLOWED not_a_domain"],
    ["to the router itself", { kind: "host", host: "127.0.0.1", port: 80 }, "taken"],
    ["to names below one", { kind: "domain", domains: ["*.Plant.Example."] }, "taken"],
  ])("%s: %s", (_what, more, expected) => expect(codeOf(more)).toBe(expected));

  test("that leads to the same place for the same devices has the same hash, whatever the order and case", () => {
    const hashOf = (more: Partial<AskedRoute>): string => judgeRoute(asked({ kind: "domain", ...more })).targetHash;
    expect(hashOf({ domains: ["B.example", "a.example"] })).toBe(hashOf({ domains: ["a.example", "b.example."] }));
    expect(hashOf({ domains: ["a.example"] })).not.toBe(
      hashOf({ domains: ["a.example"], consumers: { deviceIds: [], tags: ["y"], fleetIds: [], all: false } }),
    );
  });
});

const plan = (routeId: string, more: Partial<RoutePlan>): RoutePlan => ({
  routeId,
  kind: "subnet",
  network: null,
  domains: [],
  host: null,
  port: null,
  activeRouter: null,
  routers: [],
  ...more,
});
const PLANS = [
  plan("wide", { network: "10.0.0.0/8" }),
  plan("close", { network: "10.1.0.0/16" }),
  plan("host", { kind: "host", host: "10.1.2.3", port: 80 }),
  plan("wild", { kind: "domain", domains: ["*.plant.example"] }),
  plan("name", { kind: "domain", domains: ["a.plant.example"] }),
];

test.each([
  ["10.1.2.3:80", ["host", "close", "wide"]],
  ["10.1.2.3:81", ["close", "wide"]],
  ["10.2.0.1:80", ["wide"]],
  ["a.plant.example:443", ["name", "wild"]],
  ["b.a.plant.example:443", ["wild"]],
  ["plant.example:443", []],
  ["evilplant.example:443", []],
  ["[fd00::1]:80", []],
])("%s takes the closest route first", (authority, expected) => {
  const target = readTarget(authority);
  expect(target === null ? [] : routesTo(PLANS, target).map(({ routeId }) => routeId)).toEqual(expected);
  if (target !== null) expect(writeTarget(target)).toBe(authority);
});

test.each(["10.0.0.1", "10.0.0.1:0", "10.0.0.1:65536", "a b:80", "user@host:80", "[zz]:80", "fd00::1:80", `${"x".repeat(254)}:80`, ""])(
  "%s is no target",
  (authority) => expect(readTarget(authority)).toBeNull(),
);

describe("of the routers", () => {
  const [low, high] = [
    { deviceId: "dev_low", metric: 1, state: "up" },
    { deviceId: "dev_high", metric: 9, state: "up" },
  ];
  const route = { enabled: true, approval: "approved", activeRouter: null };

  test("the lowest metric is taken, and one that answers is kept", () => {
    expect(routeStandingOf(route, [high, low])).toEqual({ status: "active", activeRouter: "dev_low" });
    expect(routeStandingOf({ ...route, activeRouter: "dev_high" }, [high, low])).toEqual({ status: "active", activeRouter: "dev_high" });
    expect(routeStandingOf({ ...route, activeRouter: "dev_high" }, [{ ...high, state: "down" }, low])).toEqual({ status: "degraded", activeRouter: "dev_low" });
  });

  test("none is taken while the route is not approved, is disabled, or nobody answers", () => {
    expect(routeStandingOf({ ...route, approval: "pending" }, [low])).toEqual({ status: "down", activeRouter: null });
    expect(routeStandingOf({ ...route, enabled: false }, [low])).toEqual({ status: "disabled", activeRouter: null });
    expect(routeStandingOf(route, [{ ...low, state: "unknown" }])).toEqual({ status: "down", activeRouter: null });
  });

  test("others that answer stand in for the one of now", () => {
    const gone = { deviceId: "dev_gone", metric: 0, state: "down" };
    expect(routersToTry({ activeRouter: "dev_high", routers: [gone, low, high] })).toEqual(["dev_high", "dev_low"]);
  });

  test("two misses in a row count, and one before the first answer", () => {
    expect(afterProbe({ state: "up", misses: 0 }, "timeout")).toEqual({ state: "up", misses: 1 });
    expect(afterProbe({ state: "up", misses: 1 }, "timeout")).toEqual({ state: "down", misses: 2 });
    expect(afterProbe({ state: "unknown", misses: 0 }, "offline")).toEqual({ state: "down", misses: 1 });
    expect(afterProbe({ state: "down", misses: 7 }, null)).toEqual({ state: "up", misses: 0 });
  });
});

describe("a router's agent, whoever asks,", () => {
  const base: RouterRoute = { routeId: "mrt_1", kind: "subnet", network: "10.77.0.0/24", domains: [], host: null, port: null, allowPublic: false };
  const routes = new Map<string, RouterRoute>([
    ["mrt_1", base],
    ["mrt_2", { ...base, routeId: "mrt_2", kind: "host", network: null, host: "10.0.0.9", port: 22 }],
    ["mrt_3", { ...base, routeId: "mrt_3", kind: "domain", network: null, domains: ["*.plant.example"] }],
  ]);
  test.each([
    ["mrt_1@10.78.0.1:80", "not_allowed"],
    ["mrt_1@127.0.0.1:80", "not_allowed"],
    ["mrt_1@169.254.169.254:80", "not_allowed"],
    ["mrt_1@172818433:80", "not_allowed"],
    ["mrt_1@[::ffff:10.77.0.1]:80", "not_allowed"],
    ["mrt_1@name.plant.example:80", "not_allowed"],
    ["mrt_1", "not_allowed"],
    ["mrt_2@10.0.0.9:80", "not_allowed"],
    ["mrt_3@10.77.0.1:80", "not_allowed"],
    ["mrt_3@plant.example:80", "not_allowed"],
    ["mrt_9@10.77.0.1:80", "unknown"],
    ["mrt_9", "unknown"],
  ])("answers %s with %s", (authority, reason) => expect(connectForRoute(authority, routes)).toBe(reason));

  test("leaves other streams to tunnels", () => expect(connectForRoute("tun_1", routes)).toBeNull());
});

describe("the SOCKS proxy", () => {
  test("reads a greeting in pieces, and refuses other versions", () => {
    expect(readGreeting(Buffer.from([5]))).toBe("more");
    expect(readGreeting(Buffer.from([5, 2, 0]))).toBe("more");
    expect(readGreeting(Buffer.from([5, 2, 2, 0, 9]))).toEqual({ value: true, length: 4 });
    expect(readGreeting(Buffer.from([5, 1, 2]))).toEqual({ value: false, length: 3 });
    expect(readGreeting(Buffer.from([4, 1]))).toBe("not_socks");
  });

  test("reads addresses and the longest name, and refuses other commands and an empty port", () => {
    const request = (...bytes: readonly number[]): Buffer => Buffer.from([5, 1, 0, ...bytes]);
    expect(readRequest(request(1, 10, 0, 0, 1, 0, 80))).toEqual({ value: { host: "10.0.0.1", port: 80 }, length: 10 });
    expect(readRequest(request(3, 255, ...Array(255).fill(97), 1, 0))).toEqual({ value: { host: "a".repeat(255), port: 256 }, length: 262 });
    expect(readRequest(request(4, ...Array(15).fill(0), 1, 0, 80))).toEqual({ value: { host: "0:0:0:0:0:0:0:1", port: 80 }, length: 22 });
    expect(readRequest(request(3, 9, 97))).toBe("more");
    expect(readRequest(request(1, 10, 0, 0, 1, 0, 0))).toBe("address_unknown");
    expect(readRequest(request(9, 0))).toBe("address_unknown");
    expect(readRequest(Buffer.from([5, 2, 0, 1]))).toBe("command_unknown");
  });
});
