// Simulated devices in a rollout of agents: each kind of share that does not work ends as the rollout names it.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHttp, createRandom, type Http, systemTime as time } from "../../agent-sim/agent/index.ts";
import { createAgentGroup } from "../../agent-sim/fleet/agent-group.ts";
import { createCommandTracker } from "../../agent-sim/fleet/command-tracker.ts";
import { updateFatesOf } from "../../agent-sim/fleet/fleet-updates.ts";
import { createFleetMachines } from "../../agent-sim/fleet/machines.ts";
import { createPortal } from "../../agent-sim/fleet/portal.ts";
import { provision } from "../../agent-sim/fleet/provision.ts";
import { statesOf } from "../features/rollouts/apps-kit.ts";
import { advance, call, create, read, startRolloutWorld, step } from "../features/rollouts/kit.ts";
import type { World } from "../kit/gateway/world.ts";

let world: World;
let http: Http;
beforeAll(async () => {
  world = await startRolloutWorld();
  http = createHttp(world.url, 4);
});
afterAll(async () => {
  http.close();
  await world.close();
});

test("shares are exact, and the same seed chooses the same devices", () => {
  const fates = updateFatesOf(300, { fails: 0.15, lost: 0.01 }, 7);
  const count = (fate: string): number => fates.filter((each) => each === fate).length;
  expect([count("fails"), count("lost"), count("works")]).toEqual([45, 3, 252]);
  expect(updateFatesOf(300, { fails: 0.15, lost: 0.01 }, 7)).toEqual(fates);
  expect(updateFatesOf(300, { fails: 0.15, lost: 0.01 }, 8)).not.toEqual(fates);
});

test("a rollout over simulated devices names those that fail, are slow, get lost and come back with another version", async () => {
  const tenant = await world.tenant();
  const owner = await tenant.user("owner");
  const machines = createFleetMachines({ count: 10, seed: 3, time });
  const portal = createPortal(http, { apiKey: tenant.apiKey.headers("")["x-api-key"] ?? "", tenantId: tenant.tenantId });
  const members = await provision(portal, machines, { time, random: Math.random, untilMs: time.elapsedMs() + 20_000 });
  const deviceIds = members.map(({ deviceId }) => deviceId);
  const group = createAgentGroup({
    ...{ url: world.url, members, machines, time, seed: 3, heartbeatSec: 30, pollOnlyPct: 0, rampPerSecond: 100, onAlarm: () => undefined },
    tracker: createCommandTracker(time.elapsedMs),
    random: createRandom(3),
    updates: { fails: 0.1, slow: 0.1, lost: 0.1, wrong: 0.1 },
  });
  group.start();
  try {
    await expect.poll(() => group.connected, { timeout: 20_000 }).toBe(10);
    const { fleetId } = await call({ world, owner }, "POST", "/fleets", { name: "simulated", deviceIds });
    const fleet = { world, tenant, owner, fleetId, deviceIds };
    const rolloutId = await create(fleet, { failureThreshold: { percent: 100 }, phases: [{ percent: 100, minSuccessPercent: 1 }] });
    const settled = async (): Promise<object> => {
      await step(fleet);
      return (await read(fleet, rolloutId)).counts;
    };
    await expect.poll(settled, { timeout: 20_000, interval: 500 }).toMatchObject({ succeeded: 6, failed: 2, ordered: 1, verifying: 1 });
    expect(group.size).toBe(9);
    advance(2 * 3_600_000);
    await expect.poll(settled, { timeout: 20_000, interval: 500 }).toMatchObject({ succeeded: 6, failed: 2, timedOut: 2 });
    expect((await statesOf(fleet, rolloutId)).filter((state) => state !== "succeeded").toSorted()).toEqual([
      "failed UPDATE_FAILED",
      "failed WRONG_VERSION",
      "timed_out DEVICE_TIMEOUT",
      "timed_out NOT_CONFIRMED",
    ]);
  } finally {
    advance(-2 * 3_600_000);
    await group.stop();
  }
});
