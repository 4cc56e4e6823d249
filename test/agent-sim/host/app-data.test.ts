// The data of an app at rest and in a swap. test/release/backups/data-crash.test.ts kills the agent at each step.
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { RestOrder, Swap } from "../../../agent-sim/host/app-data.ts";
import { HostClosed, HostFailure, toHostFailure } from "../../../agent-sim/host/host.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { desiredApp, inMode } from "./desired.ts";
import { fillableDisk, openProcesses, type ProcessHarness } from "./harness.ts";

let harness: ProcessHarness;
let steps: string[];
/** The agent is gone before this step. */
let killedAt: string | null;
let isDead: boolean;
const onStep = (step: string): void => {
  steps.push(step);
  // A dead agent takes no further step.
  isDead = isDead || step === killedAt;
  if (isDead) throw new HostClosed();
};
beforeEach(() => {
  [steps, killedAt, isDead] = [[], null, false];
  harness = openProcesses({ onStep });
});
afterEach(() => harness.close());

const run = async (spec: Parameters<typeof desiredApp>[1] = {}): Promise<DesiredApp> => {
  const app = desiredApp(await freePort(), spec);
  await harness.host.apply(app);
  writeFileSync(join(filesOf(app), "key"), "old");
  return app;
};
const filesOf = ({ appId }: DesiredApp): string => join(harness.folder, "apps", appId, "volumes", "files");
const keyOf = (app: DesiredApp): string => readFileSync(join(filesOf(app), "key"), "utf8");
const answers = async ({ config }: DesiredApp): Promise<boolean> =>
  fetch(`http://127.0.0.1:${config["port"]}/health`, { signal: AbortSignal.timeout(500) }).then(
    ({ ok }) => ok,
    () => false,
  );
const rest = (consistency: RestOrder["consistency"] = "template"): RestOrder => ({ backupId: "bak_1", consistency });
const hooked = (pre: string, post: string): Parameters<typeof desiredApp>[1] => ({
  spec: {
    backup: { mode: "live", beforeUpdates: false, hooks: { pre: { command: [pre], timeoutSeconds: 5 }, post: { command: [post], timeoutSeconds: 5 } } },
  },
});
/** Data that waits for its swap. */
const incoming = async (app: DesiredApp): Promise<Swap> => {
  const places = await harness.host.data.places(app);
  mkdirSync(join(places.incoming, "volumes", "files"), { recursive: true });
  writeFileSync(join(places.incoming, "volumes", "files", "key"), "new");
  const items = () => places.volumes.map(({ name, path, before }) => ({ from: join(places.incoming, "volumes", name), to: path, before }));
  return { restoreId: "rst_1", app, items, files: 1, bytes: 3 };
};
const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

describe("an app at rest", () => {
  test("is stopped or stands still while its data is read, as asked, and runs again", async () => {
    const app = await run();
    const stopped = await harness.host.data.atRest(app, rest(), async ({ volumes }) => [await answers(app), volumes.map(({ name }) => name)]);
    expect(stopped).toMatchObject({ result: [false, ["files"]], consistency: "stopped", warnings: [] });
    expect(stopped.downtimeSeconds).toBeGreaterThan(0);
    expect(await answers(app)).toBe(true);
    const pid = async () => (await fetch(`http://127.0.0.1:${app.config["port"]}/`)).json();
    const before = await pid();
    expect(await harness.host.data.atRest(app, rest("pause"), () => answers(app))).toMatchObject({ result: false, consistency: "paused" });
    expect(await harness.host.data.atRest(app, rest("live"), () => answers(app))).toMatchObject({ result: true, consistency: "live", downtimeSeconds: 0 });
    expect(await pid()).toEqual(before);
  });
  test("runs again when the reading fails, and an app that is stopped stays stopped", async () => {
    const app = await run();
    const failure = await failureOf(harness.host.data.atRest(app, rest(), () => Promise.reject(new Error("unreadable"))));
    expect(String(failure)).toMatch(/unreadable/);
    expect(await answers(app)).toBe(true);
    await harness.host.apply({ ...app, state: "stopped" });
    steps = [];
    expect(await harness.host.data.atRest(app, rest(), async () => "read")).toMatchObject({ result: "read", consistency: "stopped", downtimeSeconds: 0 });
    expect(steps).toEqual(["read"]);
    expect(await answers(app)).toBe(false);
  });
  test("has its hooks run around the reading; one that fails before it fails the backup before a byte is read, and the other one runs all the same", async () => {
    const app = await run(hooked("hook-writes", "hook-removes"));
    const seen = await harness.host.data.atRest(app, rest(), async () => existsSync(join(filesOf(app), "dump")));
    expect(seen).toMatchObject({ result: true, consistency: "hooks", warnings: [] });
    expect(existsSync(join(filesOf(app), "dump"))).toBe(false);
    const bad = await run(hooked("hook-fails", "hook-removes"));
    writeFileSync(join(filesOf(bad), "dump"), "left");
    let isRead = false;
    const failure = await failureOf(
      harness.host.data.atRest(bad, rest(), async () => {
        isRead = true;
      }),
    );
    expect(failure).toBeInstanceOf(HostFailure);
    expect(failure).toMatchObject({ reason: "HOOK_FAILED", lines: ["no dump today"] });
    expect([isRead, existsSync(join(filesOf(bad), "dump")), await answers(bad)]).toEqual([false, false, true]);
    const late = await run(hooked("hook-writes", "hook-fails"));
    expect((await harness.host.data.atRest(late, rest(), async () => 1)).warnings).toEqual([expect.stringMatching(/hook after the backup failed/)]);
  });
});

describe("a swap", () => {
  const SWAP = ["write revision", "begin swap", "stop", "journal swap", "move old", "move new", "start new", "restored hook", "commit swap", "tidy"];

  test("takes these steps, and the app has the new data", async () => {
    const app = await run();
    steps = [];
    await harness.host.data.swap(await incoming(app));
    expect(steps.filter((step) => SWAP.includes(step))).toEqual(SWAP);
    expect([keyOf(app), await answers(app)]).toEqual(["new", true]);
    expect(harness.host.data.restored(app.appId)).toEqual({ restoreId: "rst_1", files: 1, bytes: 3 });
  });
  test("without its journal, a kill between the two renames would leave the app without data", async () => {
    const app = await run();
    const swap = await incoming(app);
    killedAt = "move new";
    await failureOf(harness.host.data.swap(swap));
    [killedAt, isDead] = [null, false];
    const record = join(harness.folder, "apps", app.appId, "record.json");
    await harness.host.close();
    writeFileSync(record, JSON.stringify({ ...JSON.parse(readFileSync(record, "utf8")), change: null }));
    await harness.reopen({ onStep });
    await eventually(async () => expect(await answers(app)).toBe(true));
    expect(existsSync(join(filesOf(app), "key"))).toBe(false);
  });
  test("of an app that is not healthy then gives the old data back and starts the old revision", async () => {
    const app = await run();
    const failure = await failureOf(harness.host.data.swap({ ...(await incoming(app)), app: inMode(app, "exit") }));
    expect(failure).toMatchObject({ reason: "EXITED" });
    expect([keyOf(app), await answers(app)]).toEqual(["old", true]);
    expect(harness.host.report()[0]).toMatchObject({ state: "running", revision: 1 });
  });
  test("through a link is refused, and nothing outside of the volumes changes", async () => {
    const app = await run();
    const outside = join(harness.folder, "outside");
    mkdirSync(outside);
    symlinkSync(outside, join(filesOf(app), "way"));
    const swap = await incoming(app);
    const items = () => swap.items().map(({ from, before }) => ({ from, before, to: join(filesOf(app), "way", "in") }));
    expect(await failureOf(harness.host.data.swap({ ...swap, items }))).toMatchObject({ reason: "LINK_REFUSED" });
    expect(readdirSync(outside)).toEqual([]);
    expect([keyOf(app), await answers(app)]).toEqual(["old", true]);
  });
});

describe("a disk that is full from one write on", () => {
  /** Carries it out with each number of writes that still succeed, until none is refused, and frees the disk after each. */
  const atEachWrite = async (work: (app: DesiredApp) => Promise<unknown>, judge: (app: DesiredApp, failure: unknown) => Promise<void>): Promise<number> => {
    const disk = fillableDisk();
    await harness.reopen({ onStep, disk, supervision: { lookMs: 20, backoffMs: 10, maxBackoffMs: 20, crashes: 2 } });
    const app = await run();
    for (let writes = 0; ; writes += 1) {
      disk.refused = 0;
      disk.writesLeft = writes;
      const failure = await failureOf(work(app));
      disk.writesLeft = Number.POSITIVE_INFINITY;
      if (disk.refused === 0) return writes;
      if (failure !== null) expect(toHostFailure(failure, "running")).toMatchObject({ reason: "DISK_FULL" });
      await judge(app, failure);
    }
  };

  test("in a backup leaves the app running once there is space", async () => {
    const writes = await atEachWrite(
      (app) => harness.host.data.atRest(app, rest(), async () => "read"),
      (app) => eventually(async () => expect([harness.host.report()[0]?.state, await answers(app)]).toEqual(["running", true])),
    );
    expect(writes).toBeGreaterThan(2);
  });
  test("in a restore leaves the app running once there is space, with the data that the restore says", async () => {
    const writes = await atEachWrite(
      async (app) => {
        writeFileSync(join(filesOf(app), "key"), "old");
        await harness.host.data.swap(await incoming(app));
      },
      async (app, failure) => {
        await eventually(async () => expect([harness.host.report()[0]?.state, await answers(app)]).toEqual(["running", true]));
        expect(keyOf(app)).toBe(failure === null ? "new" : "old");
        // A change that is still on record would be undone a second time by the next agent.
        const record = join(harness.folder, "apps", app.appId, "record.json");
        await eventually(() => expect(JSON.parse(readFileSync(record, "utf8"))).toMatchObject({ change: null }));
      },
    );
    expect(writes).toBeGreaterThan(4);
  });
});
