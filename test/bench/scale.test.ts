// The tables of docs/scale.md follow from the costs, and a run of the bench changes only the costs that it measured.
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { loadInputs, SCALE_MARKS, SCALE_PAGE, scaleTables, takeOver } from "./scale.ts";

test("the tables of docs/scale.md equal those computed from scale-inputs.json", async () => {
  const written = SCALE_MARKS.exec(await readFile(SCALE_PAGE, "utf8"))?.[0];
  expect(written, "npm run docs:scale").toBe(`\n${scaleTables(await loadInputs())}\n\n`);
});

test("a more expensive heartbeat changes the processors and nothing else", async () => {
  const inputs = await loadInputs();
  const dearer = scaleTables({ ...inputs, heartbeat: { ...inputs.heartbeat, value: inputs.heartbeat.value * 10 } });
  const changed = scaleTables(inputs)
    .split("\n")
    .filter((line, at) => line !== dearer.split("\n")[at]);
  expect(changed).toHaveLength(2);
  expect(changed[0]).toContain("processors busy with heartbeats");
});

test("a run of the bench replaces the costs that it measured and keeps the others", async () => {
  const inputs = await loadInputs();
  const metric = (id: string, value: number | null, rounds: readonly unknown[] = []) => ({ id, value, rounds });
  const taken = takeOver(inputs, {
    metrics: [
      metric("idle-fleet", 1.9),
      metric("handshake", 20, [{ ready: [300, 100, 200] }]),
      metric("memory-per-agent", null),
      metric("acked-commands", 0),
      metric("one-each", 4),
    ],
  });
  expect(taken.heartbeat.value).toBe(30);
  expect(taken.connect.value).toBe(200);
  expect(taken.broadcast.value).toBe(2_500);
  expect(taken).toMatchObject({ agentBytes: inputs.agentBytes, commands: inputs.commands, redisClaim: inputs.redisClaim });
});
