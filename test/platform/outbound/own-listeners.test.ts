// Which endpoints count as this installation's own: by address and port, for this process, its databases, and every node that the cluster snapshot names.
import { expect, test } from "vitest";
import { createJudgeAddress } from "../../../server/platform/outbound/address.ts";
import { createOwnListeners, endpointsOf, type OwnEndpoint } from "../../../server/platform/outbound/own-listeners.ts";

const MACHINE = ["127.0.0.1", "::1", "10.0.0.5", "2001:4860::5"];
const opened = (...endpoints: readonly OwnEndpoint[]) => createOwnListeners({ endpoints: () => endpoints, addresses: () => MACHINE });

test.each([
  "127.0.0.1",
  "127.9.9.9",
  "0.0.0.0",
  "::",
  "::1",
  "::ffff:127.0.0.1",
  "::ffff:0.0.0.0",
  "10.0.0.5",
  "::ffff:10.0.0.5",
  "2001:4860::5",
  "2001:4860:0::0:5",
])("%s with the port of a listener is own, wherever on this machine it listens", (address) => {
  for (const host of ["127.0.0.1", "0.0.0.0", "::", "localhost", "gateway.example", "10.0.0.5"]) {
    const own = opened({ host, port: 8_080 });
    expect([host, own.isOwn(address, 8_080), own.isOwn(address, 8_081)]).toEqual([host, true, false]);
  }
});

test("another machine's address is own only where the operator named it", () => {
  const own = opened(
    { host: "127.0.0.1", port: 8_080 },
    ...endpointsOf("postgres://u:p@10.0.0.9/x", 5_432),
    ...endpointsOf("redis://[2001:4860::9]:7000", 6_379),
  );
  expect([own.isOwn("10.0.0.9", 5_432), own.isOwn("10.0.0.9", 8_080), own.isOwn("10.0.0.5", 5_432)]).toEqual([true, false, false]);
  expect([own.isOwn("2001:4860::9", 7_000), own.isOwn("10.0.0.8", 8_080)]).toEqual([true, false]);
  expect([endpointsOf("postgres://db.example/x", 5_432), endpointsOf("postgres://a,b:1,c/x", 5_432), endpointsOf(undefined, 1)]).toEqual([[], [], []]);
});

test("a node publishes each address with its port, and another node on another machine refuses exactly these", () => {
  const published = opened({ host: "0.0.0.0", port: 8_080 }, { host: "127.0.0.1", port: 8_081 }).published();
  expect(published).toEqual(["127.0.0.1:8080", "[::1]:8080", "10.0.0.5:8080", "[2001:4860::5]:8080", "127.0.0.1:8081"]);
  const other = createOwnListeners({ endpoints: () => [], addresses: () => ["127.0.0.1", "10.0.0.6"] });
  other.learn([{ listeners: published, isHere: false }]);
  const judged = (address: string, port: number): boolean => other.isOwn(address, port);
  expect([judged("10.0.0.5", 8_080), judged("::ffff:10.0.0.5", 8_080), judged("2001:4860::5", 8_080)]).toEqual([true, true, true]);
  // Nobody else reaches that machine's loopback, and ours is another.
  expect([judged("10.0.0.5", 8_081), judged("127.0.0.1", 8_080), judged("127.0.0.1", 8_081), judged("10.0.0.6", 8_080)]).toEqual([false, false, false, false]);
  other.learn([]);
  expect(judged("10.0.0.5", 8_080)).toBe(false);
});

test("the listeners of another node of this machine are own in every notation", () => {
  const own = opened({ host: "127.0.0.1", port: 8_080 });
  own.learn([{ listeners: ["127.0.0.1:8082", "[::1]:8083"], isHere: true }]);
  for (const address of ["127.0.0.1", "127.0.0.7", "::", "::ffff:127.0.0.1", "10.0.0.5"])
    expect([own.isOwn(address, 8_082), own.isOwn(address, 8_083), own.isOwn(address, 8_084)]).toEqual([true, true, false]);
});

test("own listeners and metadata services are refused although everything is allowed", () => {
  const own = opened({ host: "0.0.0.0", port: 8_080 });
  const judge = createJudgeAddress(["0.0.0.0/0", "::/0"], own.isOwn);
  for (const address of [
    "168.63.129.16",
    "::ffff:168.63.129.16",
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
  ])
    expect([address, judge(address, 80)]).toEqual([address, expect.stringContaining("metadata")]);
  expect(judge("10.0.0.5", 8_080)).toBe("the host is this service itself");
  expect([judge("10.0.0.5", 8_443), judge("10.1.2.3", 8_080), judge("169.254.1.1", 80)]).toEqual([null, null, null]);
});

test("addresses of clouds that only look public are refused", () => {
  const judge = createJudgeAddress([], () => false);
  for (const address of ["168.63.129.16", "161.26.0.10", "166.8.0.1", "166.11.255.255"])
    expect([address, judge(address, 443)]).toEqual([address, expect.any(String)]);
  for (const address of ["168.63.129.17", "161.27.0.1", "166.12.0.1"]) expect([address, judge(address, 443)]).toEqual([address, null]);
});
