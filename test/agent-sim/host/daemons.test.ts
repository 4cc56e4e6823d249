// A process that leaves its app's process group, session and parent ends with its app nevertheless.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { NO_CGROUPS, systemCgroups } from "../../../agent-sim/host/processes/cgroups.ts";
import { isAlive, nameProcess } from "../../../agent-sim/host/processes/proc.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { desiredApp } from "./desired.ts";
import { openProcesses, type ProcessHarness } from "./harness.ts";

let harness: ProcessHarness;
const left: number[] = [];
afterEach(async () => {
  await harness.close();
  for (const pid of left.splice(0)) if (lives(pid)) process.kill(pid, "SIGKILL");
});

const lives = (pid: number): boolean => {
  const name = nameProcess(pid);
  return name !== null && isAlive(name);
};
const daemonOf = async ({ appId }: DesiredApp): Promise<number> => {
  const lines = () => harness.host.tail(appId, 20);
  const pid = await eventually(async () => Number(/daemon (\d+) ends$/.exec((await lines()).join("\n"))?.[1] ?? expect.unreachable("no daemon yet")));
  left.push(pid);
  return pid;
};
const start = async (mode: string, cgroups = systemCgroups): Promise<{ readonly app: DesiredApp; readonly daemon: number }> => {
  harness = openProcesses({ cgroups });
  const port = await freePort();
  const app = desiredApp(port, { config: { port, mode } });
  await harness.host.apply(app);
  const daemon = await daemonOf(app);
  // It is nobody's child of ours: another parent, another group.
  const leader = JSON.parse(readFileSync(join(harness.folder, "apps", app.appId, "pid"), "utf8")).pid;
  const [, parent, group] = readFileSync(`/proc/${daemon}/stat`, "utf8")
    .replace(/^.*\) /su, "")
    .split(" ")
    .map(Number);
  expect([parent === leader, group]).toEqual([false, daemon]);
  return { app, daemon };
};

test.each([
  ["its cgroup or its mark", systemCgroups],
  ["its mark alone", NO_CGROUPS],
])("known by %s, a daemon does not survive the stop of its app", async (_by, cgroups) => {
  const { app, daemon } = await start("daemon", cgroups);
  await harness.host.apply({ ...app, state: "stopped" });
  expect(lives(daemon)).toBe(false);
});
test("a daemon does not survive the removal of its app", async () => {
  const { app, daemon } = await start("daemon");
  await harness.host.apply({ ...app, state: "removed" });
  expect(lives(daemon)).toBe(false);
});
test.each([
  ["its cgroup or its mark", systemCgroups],
  ["its mark alone", NO_CGROUPS],
])("known by %s, a daemon does not survive its app that a new agent has adopted", async (_by, cgroups) => {
  const { app, daemon } = await start("daemon", cgroups);
  await harness.reopen({ cgroups });
  expect(lives(daemon)).toBe(true);
  await harness.host.apply({ ...app, state: "removed" });
  expect(lives(daemon)).toBe(false);
});
test("a daemon does not survive its app whose own processes were all killed while there was no agent", async () => {
  const { app, daemon } = await start("daemon", NO_CGROUPS);
  await harness.host.close();
  const { pid } = JSON.parse(readFileSync(join(harness.folder, "apps", app.appId, "pid"), "utf8"));
  process.kill(-pid, "SIGKILL");
  await harness.reopen({ cgroups: NO_CGROUPS });
  await eventually(() => expect(harness.host.report()).toEqual([expect.objectContaining({ state: "running", health: "healthy", restarts: 1 })]));
  expect(lives(daemon)).toBe(false);
});
test("a daemon that forgets its environment ends with its app where the agent may make cgroups", async () => {
  const { app, daemon } = await start("naked");
  const name = JSON.parse(readFileSync(join(harness.folder, "apps", app.appId, "pid"), "utf8"));
  const hasCgroup = typeof name.cgroup === "string";
  expect(systemCgroups.members(name).includes(daemon)).toBe(hasCgroup);
  await harness.host.apply({ ...app, state: "stopped" });
  expect(lives(daemon)).toBe(!hasCgroup);
  if (hasCgroup) expect(() => readdirSync(name.cgroup)).toThrow("ENOENT");
});
test("a cgroup that is busy for a moment after its last process is removed all the same", async () => {
  let asked = 0;
  const { app } = await start("daemon", { ...NO_CGROUPS, remove: () => ++asked === 3 });
  await harness.host.apply({ ...app, state: "stopped" });
  expect(asked).toBe(3);
});
test("a daemon of one app survives the stop of another one", async () => {
  const { daemon } = await start("daemon");
  const other = desiredApp(await freePort());
  await harness.host.apply(other);
  await harness.host.apply({ ...other, state: "removed" });
  expect(lives(daemon)).toBe(true);
});
