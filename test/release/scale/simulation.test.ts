// The simulation of large fleets tells what a real storm of agents showed, and docs/scale.md has its figures.
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { z } from "zod";
import { channelSettings } from "../../../server/gateway/channel/settings.ts";
import { SCALE_PAGE } from "../../bench/scale.ts";
import { createCalendar } from "../../bench/simulation/calendar.ts";
import { type Cluster, type Event, simulate } from "../../bench/simulation/cluster.ts";
import { costsFrom, nodesFor, tableOf } from "../../bench/simulation/main.ts";

const Real = z.object({
  ...{ agents: z.int(), acceptPerSecond: z.int(), grown: z.boolean() },
  ...{ halfSeconds: z.number(), mostSeconds: z.number(), allSeconds: z.number() },
});
const storms = Real.array().parse(JSON.parse(readFileSync(new URL("../../bench/simulation/real-storm.json", import.meta.url), "utf8")));

const clusterOf = async (agents: number, more: Partial<Cluster> = {}): Promise<Cluster> => ({
  agents,
  nodes: nodesFor(agents),
  settings: channelSettings(),
  costs: await costsFrom(),
  seed: 1,
  ...more,
});
const ALL_LOST = (nodesLeft: number): Event => ({ lost: 1, nodesLeft });

test.each(storms)("a storm of $agents agents takes as long as a real one did, within 15 %", async (real) => {
  const { agents, acceptPerSecond, grown, halfSeconds, mostSeconds, allSeconds } = real;
  const settings = channelSettings(undefined, { acceptPerSecond, acceptBurst: 2 * acceptPerSecond });
  const course = simulate(await clusterOf(agents, { nodes: 1, settings }), { ...ALL_LOST(1), grown });
  for (const [simulated, measured] of [
    [course.halfSeconds, halfSeconds],
    [course.mostSeconds, mostSeconds],
    [course.allSeconds, allSeconds],
  ] as const)
    expect(Math.abs(simulated / measured - 1)).toBeLessThan(0.15);
  expect(course.left).toBe(0);
});

test("without the window that the gateway tells, many times as many agents knock in one second", async () => {
  const [{ agents } = { agents: 0 }] = storms;
  const peakAt = async (acceptPerSecond: number) =>
    simulate(await clusterOf(agents, { nodes: 1, settings: channelSettings(undefined, { acceptPerSecond }) }), ALL_LOST(1)).peakPerNode;
  expect(await peakAt(1_000_000)).toBeGreaterThan(5 * (await peakAt(200)));
});

test("a sample of a larger fleet behaves as the fleet does", async () => {
  const [whole, sample] = [await clusterOf(250_000, { nodes: 14 }), await clusterOf(1_000_000, { nodes: 56 })];
  const away = { nodesAwayMs: 60_000 };
  const [one, other] = [whole, sample].map((cluster) => simulate(cluster, { ...ALL_LOST(cluster.nodes), ...away }));
  for (const name of ["halfSeconds", "mostSeconds", "attempts"] as const) expect((other?.[name] ?? 0) / (one?.[name] ?? 1)).toBeCloseTo(1, 1);
  expect([one?.lost, other?.lost]).toEqual([250_000, 1_000_000]);
});

test("the same seed gives the same course, and another one about the same", async () => {
  const run = async (seed: number) => simulate(await clusterOf(20_000, { nodes: 2, seed }), ALL_LOST(2));
  expect(await run(1)).toEqual(await run(1));
  expect((await run(1)).halfSeconds / (await run(2)).halfSeconds).toBeCloseTo(1, 1);
});

test("while PostgreSQL stands still nobody is ready, and afterwards nobody is left", async () => {
  const course = simulate(await clusterOf(40_000, { nodes: 4 }), { ...ALL_LOST(4), databaseAwayMs: 60_000 });
  expect(course.halfSeconds).toBeGreaterThan(60);
  expect(course.left).toBe(0);
});

test("docs/scale.md has the simulated figures", async () => {
  expect(await readFile(SCALE_PAGE, "utf8"), "npm run simulate -- --write").toContain(tableOf([await clusterOf(100_000)]));
});

test("the calendar calls events in the order of their times, and none beyond its horizon", () => {
  const calendar = createCalendar(5, { stepMs: 10, horizonMs: 1_000 });
  const seen: (readonly [agent: number, atMs: number])[] = [];
  for (const [agent, atMs] of [500, 20, 995, 1_000, 20].entries()) calendar.add(agent, atMs);
  calendar.drain(1_000, (agent, nowMs) => {
    seen.push([agent, nowMs]);
    if (agent === 1 && nowMs < 100) calendar.add(agent, nowMs);
  });
  expect(seen.map(([, atMs]) => atMs)).toEqual(seen.map(([, atMs]) => atMs).toSorted((a, b) => a - b));
  expect(seen.filter(([agent]) => agent === 1).map(([, atMs]) => atMs)).toEqual([20, 30, 40, 50, 60, 70, 80, 90, 100]);
  expect(seen.map(([agent]) => agent)).not.toContain(3);
});
