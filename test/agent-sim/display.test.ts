// The progress line of the fleet.
import { expect, test } from "vitest";
import { progressLine } from "../../agent-sim/display.ts";
import type { FleetProgress } from "../../agent-sim/fleet/fleet.ts";

const progress: FleetProgress = {
  phase: "running",
  elapsedSeconds: 12,
  agents: 10_000,
  connected: 9_998,
  heartbeats: 4_000,
  heartbeatsPerSecond: 333.3,
  reconnects: 0,
  accepted: 2_400,
  open: 3,
  recent: { p50: 9.25, p99: 41 },
};

test("the line counts a command as ended once the fleet waits for nothing more of it", () => {
  expect(progressLine(progress, Number.POSITIVE_INFINITY)).toBe(
    "  12s running  connected 9998/10000  heartbeats 333.3/s  commands 2400, ended 2397  create to ack p50 9.25 ms p99 41 ms",
  );
});

test.each([200, 100, 80, 60, 40, 20])("the line fits %i columns and drops the least important part first", (columns) => {
  const line = progressLine(progress, columns);
  expect(line.length).toBeLessThanOrEqual(columns);
  const order = ["12s", "connected 9998/10000", "ended 2397", "p99 41 ms", "333.3/s"];
  const kept = order.map((part) => line.includes(part));
  expect(kept).toEqual([...kept].sort((a, b) => Number(b) - Number(a)));
});
