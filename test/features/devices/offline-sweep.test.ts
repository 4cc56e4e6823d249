// The pause between two sweeps of silent devices: as long as no device can be due, and no longer.
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createOfflineSweep } from "../../../server/features/devices/offline-sweep.ts";
import { deviceSettings } from "../../../server/features/devices/settings.ts";
import { startNode, type TestNode } from "../../channel/harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

const start = (overrides: Parameters<typeof deviceSettings>[1] = {}) => {
  const wake = vi.fn();
  const sweep = createOfflineSweep({ db: node.db, emitOffline: async () => undefined, wake, settings: deviceSettings(30, overrides) });
  const { everyMs, run } = sweep.job;
  const pauseAfter = async (): Promise<number> => {
    await run(new AbortController().signal);
    return typeof everyMs === "number" ? everyMs : everyMs();
  };
  return { sweep, wake, pauseAfter };
};
const due = (seconds: number | null): Promise<unknown> =>
  node.db.query("update device_presence set connectivity = $2, offline_after = now() + make_interval(secs => $1)", [
    seconds ?? 0,
    seconds === null ? "none" : "realtime",
  ]);

describe("the pause after a sweep", () => {
  test.each([
    ["nobody is online", null, {}, 12_500],
    ["the first device is due in a minute", 60, {}, 12_500],
    ["the first device is due in six seconds", 6, {}, 5_000],
    ["a device is due in a moment", 0.5, {}, 2_000],
    ["another node may say that a device is due in four seconds", 60, { closeGraceMs: 4_800 }, 4_000],
    ["sockets have no grace", 60, { closeGraceMs: 0 }, 2_000],
    ["sockets have a long grace", 60, { closeGraceMs: 300_000 }, 12_500],
  ] as const)("when %s", async (_, seconds, overrides, pauseMs) => {
    await node.device();
    await due(seconds);
    const pause = await start(overrides).pauseAfter();
    expect(pause).toBeLessThanOrEqual(pauseMs);
    expect(pause).toBeGreaterThan(pauseMs - 1_000);
  });

  test("is the shortest one after a failed sweep", async () => {
    await due(null);
    const { sweep, pauseAfter } = start();
    expect(await pauseAfter()).toBe(12_500);
    const broken = createOfflineSweep({
      db: { sqlTx: () => Promise.reject(new Error("the database is away")) },
      emitOffline: async () => undefined,
      wake: () => undefined,
      settings: deviceSettings(),
    });
    await expect(broken.job.run(new AbortController().signal)).rejects.toThrow("away");
    expect((broken.job.everyMs as () => number)()).toBe(2_000);
    expect(sweep.job.name).toBe("devices.offline");
  });
});

test("announced disconnects wake the sweep once, two seconds later", () => {
  vi.useFakeTimers();
  try {
    const { sweep, wake } = start();
    sweep.announced();
    sweep.announced();
    vi.advanceTimersByTime(1_999);
    expect(wake).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(wake).toHaveBeenCalledTimes(1);
    sweep.announced();
    vi.advanceTimersByTime(2_000);
    expect(wake).toHaveBeenCalledTimes(2);
  } finally {
    vi.useRealTimers();
  }
});
