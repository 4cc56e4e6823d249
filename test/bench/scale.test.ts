// docs/scale.md says what its costs say: the tables are computed anew and compared, and a run of the bench changes what it measures and nothing else.
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { BETWEEN, loadInputs, PAGE, scaleTables, takeOver } from "./scale.ts";

test("the tables on the page are those of the costs beside the script", async () => {
  const written = BETWEEN.exec(await readFile(PAGE, "utf8"))?.[0];
  expect(written, "npm run docs:scale").toBe(`\n${scaleTables(await loadInputs())}\n\n`);
});

test("a dearer heartbeat shows in the processors, and nowhere else", async () => {
  const inputs = await loadInputs();
  const dearer = scaleTables({ ...inputs, heartbeat: { ...inputs.heartbeat, value: inputs.heartbeat.value * 10 } });
  const changed = scaleTables(inputs)
    .split("\n")
    .filter((line, at) => line !== dearer.split("\n")[at]);
  expect(changed).toHaveLength(2);
  expect(changed[0]).toContain("processors busy with heartbeats");
});

test("a run of the bench brings its figures, and what it did not measure stays", async () => {
  const inputs = await loadInputs();
  const metric = (id: string, value: number | null, rounds: readonly unknown[] = []) => ({ id, value, rounds });
  const taken = takeOver(inputs, {
    metrics: [metric("idle-fleet", 1.9), metric("handshake", 20, [{ ready: [300, 100, 200] }]), metric("memory-per-agent", null), metric("acked-commands", 0)],
  });
  expect(taken.heartbeat.value).toBe(30);
  expect(taken.connect.value).toBe(200);
  expect(taken).toMatchObject({ agentBytes: inputs.agentBytes, commands: inputs.commands, redisClaim: inputs.redisClaim });
});
