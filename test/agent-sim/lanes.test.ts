// Commands of one lane run in order, commands of different lanes independently.
import fc from "fast-check";
import { expect, test } from "vitest";
import { createLanes } from "../../agent-sim/agent/lanes.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("commands of one lane run one after another in order, however long each takes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.record({ lane: fc.constantFrom("a", "b", "c"), turns: fc.nat(4) }), { maxLength: 20 }), async (tasks) => {
      const lanes = createLanes();
      const log: string[] = [];
      for (const [n, { lane, turns }] of tasks.entries()) {
        lanes.run(lane, async () => {
          log.push(`${lane} starts ${n}`);
          for (let left = turns; left > 0; left -= 1) await turn();
          log.push(`${lane} ends ${n}`);
        });
      }
      while (lanes.busy > 0) await turn();
      for (const lane of ["a", "b", "c"]) {
        const expected = tasks.flatMap((task, n) => (task.lane === lane ? [`${lane} starts ${n}`, `${lane} ends ${n}`] : []));
        expect(log.filter((line) => line.startsWith(lane))).toEqual(expected);
      }
    }),
    { numRuns: 50 },
  );
});

test("a slow lane does not delay another", async () => {
  const lanes = createLanes();
  let release = (): void => undefined;
  lanes.run("slow", () => new Promise((resolve) => (release = resolve)));
  const done: string[] = [];
  lanes.run("quick", async () => void done.push("quick"));
  lanes.run("slow", async () => void done.push("slow"));
  await turn();
  expect(done).toEqual(["quick"]);
  release();
  await turn();
  expect(done).toEqual(["quick", "slow"]);
});
