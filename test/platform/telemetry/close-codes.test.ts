// Closed sockets on the metrics page: every close code of the protocol has its own series, all other codes share one.
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { CLOSE } from "../../../protocol/index.ts";
import { newStats } from "../../../server/gateway/channel/stats.ts";
import { watchChannel } from "../../../server/platform/telemetry/metrics-channel.ts";
import { createMakers } from "../../../server/platform/telemetry/metrics-makers.ts";

const countedAs = async (codes: readonly number[]): Promise<Readonly<Record<string, number>>> => {
  const registry = new Registry();
  watchChannel(createMakers(registry), { node: "n", channel: { ...newStats(), closes: new Map(codes.map((code) => [code, 1])) } });
  const lines = (await registry.metrics()).split("\n").filter((line) => line.includes("agent_closes_total{"));
  return Object.fromEntries(lines.map((line) => [/code="([^"]+)"/.exec(line)?.[1] ?? "", Number(line.split(" ")[1])]));
};

test("a close with a code of the protocol is counted under that code", async () => {
  const codes = Object.values(CLOSE).map(({ code }) => code);
  expect(await countedAs(codes)).toEqual(Object.fromEntries(codes.map((code) => [String(code), 1])));
});

test("a broken connection is counted under its standard code", async () => {
  expect(await countedAs([1005, 1006, 1009])).toEqual({ 1005: 1, 1006: 1, 1009: 1 });
});

test("all unknown close codes share one series", async () => {
  expect(await countedAs([1016, 3000, 4050, 4099, 4499, 4502, 4506, 4999])).toEqual({ other: 8 });
});
