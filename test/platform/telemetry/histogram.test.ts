// Our histogram exports exactly what the library's exports for the same observations.
import { Histogram, Registry } from "prom-client";
import { expect, test } from "vitest";
import { PreboundHistogram } from "../../../server/platform/telemetry/histogram.ts";

const config = () => ({ name: "call_seconds", help: "Seconds", labelNames: ["operation", "status"], buckets: [0.001, 0.25, 10] });
const OBSERVED = [0, 0.0005, 0.001, 0.0011, 0.25, 0.3, 10, 10.5, 1e6];

test("our histogram's metrics page equals the library's", async () => {
  const [ours, theirs] = [new Registry(), new Registry()];
  const durations = new PreboundHistogram({ ...config(), registers: [ours] });
  const histogram = new Histogram({ ...config(), registers: [theirs] });
  expect(await ours.metrics()).toBe(await theirs.metrics());
  for (const labels of [
    { operation: "health.live", status: "200" },
    { operation: "devices.list", status: "503" },
  ]) {
    const series = durations.series(labels);
    for (const seconds of OBSERVED) {
      series.observe(seconds);
      histogram.observe(labels, seconds);
    }
  }
  expect(await ours.metrics()).toBe(await theirs.metrics());
});
