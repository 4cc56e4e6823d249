// The simulated host's failures: a share of the attempts in each stage, the same for the same seed.
import { expect, test } from "vitest";
import { createSimulatedHost, type SimulatedHostOptions } from "../../../agent-sim/host/simulated.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { createFastTime } from "../clocks.ts";
import { desiredApp, inMode } from "./desired.ts";

const apps = Array.from({ length: 200 }, (_, n) => desiredApp(10_000 + n));
const outcomes = async (
  seed: number,
  failures: NonNullable<SimulatedHostOptions["failures"]>,
  wanted: readonly DesiredApp[] = apps,
): Promise<readonly string[]> => {
  const host = createSimulatedHost({ time: createFastTime(), seed, failures, secretsOf: async () => ({ SECRET: "any secret" }) });
  const ends = await Promise.allSettled(wanted.map((app) => host.apply(app)));
  const updates = await Promise.allSettled(wanted.map((app) => host.apply(inMode(app, "serve"))));
  const reports = host.report().map(({ state, revision, failure }) => `${state} ${revision} ${failure?.reason}`);
  await host.close();
  return [...ends, ...updates].map(({ status }) => status).concat(reports as never[]); // as: words in one list
};

test("a seed gives the same failures again, in whatever order the apps come, and another seed gives others", async () => {
  const failures = { preparing: 0.05, starting: 0.05, health: 0.05 };
  const one = await outcomes(1, failures);
  expect(await outcomes(1, failures)).toEqual(one);
  expect((await outcomes(1, failures, apps.toReversed())).slice(400).sort()).toEqual(one.slice(400).toSorted());
  expect(await outcomes(2, failures)).not.toEqual(one);
});
test("about as many attempts fail as the share says, and every app ends in a state", async () => {
  const all = await outcomes(3, { starting: 0.15 });
  const failed = all.slice(0, 400).filter((status) => status === "rejected").length;
  expect(failed).toBeGreaterThan(30);
  expect(failed).toBeLessThan(95);
  expect(new Set(all.slice(400).map((text) => text.split(" ")[0]))).toEqual(new Set(["running", "failed"]));
  expect((await outcomes(3, {})).slice(0, 400)).not.toContain("rejected");
});
test("an app that crashes later ran first, is reported as failed by itself, and stays so until the next order", async () => {
  const reports: string[] = [];
  const host = createSimulatedHost({
    time: createFastTime(),
    seed: 1,
    failures: { running: 1 },
    secretsOf: async () => ({ SECRET: "any secret" }),
    onChange: ({ state, failure }) => void reports.push(`${state} ${failure?.stage ?? "-"} ${failure?.reason ?? "-"}`),
  });
  const app = desiredApp(10_000);
  expect(await host.apply(app)).toMatchObject({ state: "running", revision: 1, failure: null });
  await eventually(() => expect(reports.at(-1)).toBe("failed running CRASH_LOOP"));
  expect(reports.slice(-2)).toEqual(["running - -", "failed running CRASH_LOOP"]);
  expect(await host.apply({ ...app, revision: 2 })).toMatchObject({ state: "running", revision: 2, failure: null });
  await host.close();
});
