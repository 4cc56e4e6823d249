// Overload of a node: when it begins, what the node does, and how it ends. And the heartbeat interval that follows from the load.
import { describe, expect, test } from "vitest";
import { plannedSeconds } from "../../server/gateway/channel/heartbeat-pacing.ts";
import { judgeOverload, type LoadReading, type LoopMeter, NOT_OVERLOADED } from "../../server/gateway/channel/overload.ts";
import { channelSettings } from "../../server/gateway/channel/settings.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { attempt, connect, online, startNode } from "./harness.ts";

const limits = channelSettings().overload;
const CALM: LoadReading = { loopDelayMs: 5, claimWaitMs: 0 };
const LATE: LoadReading = { loopDelayMs: 201, claimWaitMs: 0 };
const BETWEEN: LoadReading = { loopDelayMs: 150, claimWaitMs: 0 };
const STUCK: LoadReading = { loopDelayMs: 5, claimWaitMs: 5_001 };
const times = (count: number, overload: LoadReading): readonly LoadReading[] => Array.from({ length: count }, () => overload);
/** The state after each second of the readings. */
const judged = (series: readonly LoadReading[]): readonly boolean[] => {
  let verdict = NOT_OVERLOADED;
  return series.map((overload, second) => {
    verdict = judgeOverload(verdict, overload, second * 1_000, limits);
    return verdict.overloaded;
  });
};
const turns = (series: readonly LoadReading[]): readonly number[] =>
  judged(series).flatMap((overloaded, second, all) => (overloaded === (all[second - 1] ?? false) ? [] : [second]));

describe("the overload state", () => {
  test.each([
    ["a late loop turns it after ten seconds, not before", [...times(10, LATE)], []],
    ["and at ten", [...times(11, LATE)], [10]],
    ["one good second begins the count anew", [...times(9, LATE), CALM, ...times(11, LATE)], [20]],
    ["a claim that waits five seconds turns it at once", [CALM, STUCK], [1]],
    ["it stays while the loop is better but not well", [STUCK, ...times(60, BETWEEN)], [0]],
    ["twenty calm seconds end it", [STUCK, ...times(30, CALM)], [0, 21]],
    ["a bad second among them begins that count anew", [STUCK, ...times(15, CALM), BETWEEN, ...times(30, CALM)], [0, 37]],
    ["what is neither does not turn a good one either", times(60, BETWEEN), []],
  ] as const)("%s", (_, series, expected) => expect(turns(series)).toEqual(expected));
});

describe("the heartbeat interval", () => {
  test.each([
    [30, { connections: 0, liveNodes: 1, overloaded: false }, 30],
    [30, { connections: 150_000, liveNodes: 1, overloaded: false }, 30],
    [30, { connections: 165_000, liveNodes: 1, overloaded: false }, 30],
    [30, { connections: 300_000, liveNodes: 1, overloaded: false }, 60],
    [30, { connections: 300_000, liveNodes: 2, overloaded: false }, 30],
    [30, { connections: 600_000, liveNodes: 2, overloaded: false }, 60],
    [30, { connections: 1_000_000, liveNodes: 55, overloaded: false }, 30],
    [30, { connections: 9_000_000, liveNodes: 1, overloaded: false }, 300],
    [30, { connections: 300_000, liveNodes: 0, overloaded: false }, 60],
    [60, { connections: 275_000, liveNodes: 1, overloaded: false }, 60],
    [36, { connections: 1_000, liveNodes: 1, overloaded: false }, 30],
    [30, { connections: 1_000, liveNodes: 1, overloaded: true }, 60],
    [60, { connections: 1_000, liveNodes: 1, overloaded: false }, 30],
    [200, { connections: 1_000_000, liveNodes: 1, overloaded: true }, 300],
  ])("after %i s with %j is %i s", (current, load, seconds) =>
    expect(plannedSeconds(current, load, { leastSeconds: 30, perSecond: channelSettings().heartbeatsPerSecond })).toBe(seconds),
  );

  test("stays the shortest one with a million agents on enough nodes", () => {
    const crowding = { connections: 1_000_000, liveNodes: 1_000_000 / channelSettings().maxConnections, overloaded: false };
    expect(plannedSeconds(30, crowding, { leastSeconds: 30, perSecond: channelSettings().heartbeatsPerSecond })).toBe(30);
  });
});

test("an overloaded node refuses new agents, keeps its own and doubles their heartbeat interval; after recovery it reverts both", async () => {
  const meter = { delayMs: 0 };
  const startMeter = (): LoopMeter => ({ delayMs: () => meter.delayMs, stop: () => undefined });
  const node = await startNode({ startMeter, settings: { tickMs: 3_600_000 } });
  const device = await node.device();
  const socket = await online(node, device);
  const strained = (delayMs: number, seconds: number): void => {
    meter.delayMs = delayMs;
    for (let second = 0; second <= seconds; second += 1) {
      node.channel.tick();
      node.clock.advance(1_000);
    }
  };
  strained(300, 10);
  expect((await socket.next("config")).data).toEqual({ heartbeat: { intervalSec: 60, jitterPct: 10, graceMs: 10_000 } });
  expect(node.channel.stats).toMatchObject({ overloaded: true, heartbeatSeconds: 60 });
  expect(await attempt(node, await node.device())).toMatchObject({ status: 503, body: { details: { reason: "node_overloaded" } } });

  // The agent may now be silent for three of the new intervals, on the node and in the database.
  await node.channel.flush();
  const [row] = await node.db.query<{ left: number }>(
    "select extract(epoch from offline_after - last_seen_at)::int as left from device_presence where device_id = $1",
    [device.deviceId],
  );
  // Counted from the last frame, a few seconds ago by this test's clock.
  expect(row?.left).toBeGreaterThan(170);
  node.clock.advance(150_000);
  node.channel.tick();
  expect(socket.isOpen()).toBe(true);

  strained(1, 21);
  expect((await socket.next("config")).data).toEqual({ heartbeat: { intervalSec: 30, jitterPct: 10, graceMs: 10_000 } });
  // Until the agent speaks again it may not know the shorter interval.
  expect(socket.isOpen()).toBe(true);
  socket.say("heartbeat", { status: "online" });
  await socket.next("heartbeat_ack");
  node.channel.tick();
  const young = await connect(node, await node.device());
  expect((await young.next("welcome")).data.heartbeat.intervalSec).toBe(30);
  young.end();
  node.clock.advance(101_000);
  node.channel.tick();
  expect((await socket.closed()).code).toBe(4002);
  await node.close();
});

test("new agents get the current interval in welcome, connected ones a few per tick", async () => {
  const crowd = { connections: 1_000, liveNodes: 2 };
  const node = await startNode({ cluster: () => crowd, settings: { tickMs: 3_600_000, configsPerTick: 1 } });
  const sockets = [await online(node, await node.device()), await online(node, await node.device())];
  crowd.connections = 900_000;
  node.channel.tick();
  const told = (): number => sockets.filter(({ frames }) => frames.some(({ op }) => op === "config")).length;
  const late = await connect(node, await node.device());
  expect((await late.next("welcome")).data.heartbeat.intervalSec).toBe(90);
  await eventually(() => expect(told()).toBe(1));
  node.channel.tick();
  for (const socket of sockets) expect((await socket.next("config")).data.heartbeat?.intervalSec).toBe(90);
  late.end();
  for (const socket of sockets) socket.end();
  await node.close();
});
