// The most important chaos scenarios with few agents: a gateway and a database killed under load, and acks that get lost.
import { expect, test } from "vitest";
import { isRed, SCALES, totalOf } from "../chaos/scenario.ts";
import { SCENARIOS } from "../chaos/scenario-list.ts";

const LIMIT_MS = 120_000;
const SCALE = { ...SCALES.short, agents: 8, seconds: 3 };

test.for(["node-kill-two", "postgres-kill", "first-level"])(
  "after %s every accepted command ends, runs once and reaches only its own device",
  { timeout: LIMIT_MS },
  async (name, { expect: check }) => {
    const outcome = await SCENARIOS.find((scenario) => scenario.name === name)?.run({ seed: 7, scale: SCALE, control: false });
    check(outcome?.n).toBeGreaterThan(20);
    check(outcome?.faults).toBeGreaterThan(0);
    check(Object.entries(outcome?.violations ?? {}).filter(([, count]) => count > 0)).toEqual([]);
  },
);

test("the checker sees commands that run twice when the agents forget them", { timeout: LIMIT_MS }, async () => {
  const scenario = SCENARIOS.find(({ name }) => name === "acks-dropped");
  const outcome = await scenario?.run({ seed: 7, scale: { ...SCALE, seconds: 4 }, control: true });
  expect(outcome && totalOf(outcome)).toBeGreaterThan(0);
  expect(scenario && outcome && isRed(scenario, outcome)).toBe(true);
});
