// Two agents on one state would run each command twice, so the second one gets no lock; a dead agent's lock does not count.
// test/release/agent/agent-lock.test.ts starts real agents.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { lockState, StateInUse } from "../../agent-sim/agent/state/state-lock.ts";
import { systemTimers } from "../../protocol/kit/timers.ts";

let folder: string;
const path = (): string => join(folder, "device.json");
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "state-lock-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a lock that somebody else has taken meanwhile is not released", async () => {
  const unlock = await lockState(path(), systemTimers);
  writeFileSync(`${path()}.lock`, "1 1");
  unlock();
  expect(readFileSync(`${path()}.lock`, "utf8")).toBe("1 1");
});
test("an agent of an earlier version, which has only its name in the file, keeps its state", async () => {
  const unlock = await lockState(path(), systemTimers);
  const name = readFileSync(`${path()}.lock`, "utf8");
  unlock();
  writeFileSync(`${path()}.lock`, name);
  await expect(lockState(path(), systemTimers)).rejects.toThrow(StateInUse);
});
test.each([
  ["a process that has ended", "2147483646 12345"],
  ["an earlier process whose pid another one has now", `${process.pid} 1`],
  ["nobody", ""],
])("the lock of %s is taken over", async (_, holder) => {
  writeFileSync(`${path()}.lock`, holder);
  const unlock = await lockState(path(), systemTimers);
  await expect(lockState(path(), systemTimers)).rejects.toThrow(StateInUse);
  unlock();
  (await lockState(path(), systemTimers))();
});
