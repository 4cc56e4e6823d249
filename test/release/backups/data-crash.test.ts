// The data of an app at rest and in a swap: whatever breaks off at whichever step, the app runs again, with the data that it had or with all of the new.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { RestOrder, Swap } from "../../../agent-sim/host/app-data.ts";
import { HostClosed } from "../../../agent-sim/host/host.ts";
import type { DesiredApp } from "../../../protocol/records/apps/app-spec.ts";
import { desiredApp } from "../../agent-sim/host/desired.ts";
import { openProcesses, type ProcessHarness } from "../../agent-sim/host/harness.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { freePort } from "../../kit/net/free-port.ts";

let harness: ProcessHarness;
/** The agent is gone before this step. */
let killedAt: string | null;
let isDead: boolean;
const onStep = (step: string): void => {
  // A dead agent takes no further step.
  isDead = isDead || step === killedAt;
  if (isDead) throw new HostClosed();
};
beforeEach(() => {
  [killedAt, isDead] = [null, false];
  harness = openProcesses({ onStep });
});
afterEach(() => harness.close());

const run = async (): Promise<DesiredApp> => {
  const app = desiredApp(await freePort());
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
const rest: RestOrder = { backupId: "bak_1", consistency: "template" };
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
  test.each(["begin rest", "rest", "read", "wake", "post hook", "commit rest"])("runs again after the agent was killed before: %s", async (step) => {
    const app = await run();
    killedAt = step;
    const failure = await failureOf(harness.host.data.atRest(app, rest, async () => 1));
    expect(failure).toBeInstanceOf(HostClosed);
    [killedAt, isDead] = [null, false];
    await harness.reopen({ onStep });
    await eventually(async () => expect(await answers(app)).toBe(true));
    expect(keyOf(app)).toBe("old");
    // Nothing is left of it.
    const record = join(harness.folder, "apps", app.appId, "record.json");
    await eventually(() => expect(JSON.parse(readFileSync(record, "utf8")).change).toBeNull());
  });
});

describe("a swap", () => {
  const SWAP = ["write revision", "begin swap", "stop", "journal swap", "move old", "move new", "start new", "restored hook", "commit swap", "tidy"];

  test.each(SWAP)("after the agent was killed before %s, the app runs with the old data, or with the new once that was committed", async (step) => {
    const app = await run();
    const swap = await incoming(app);
    killedAt = step;
    await failureOf(harness.host.data.swap(swap));
    [killedAt, isDead] = [null, false];
    await harness.reopen({ onStep });
    const record = join(harness.folder, "apps", app.appId, "record.json");
    await eventually(() => expect(JSON.parse(readFileSync(record, "utf8")).change).toBeNull());
    await eventually(async () => expect(await answers(app)).toBe(true));
    const isCommitted = harness.host.data.restored(app.appId) !== null;
    expect(isCommitted).toBe(step === "tidy");
    expect(keyOf(app)).toBe(isCommitted ? "new" : "old");
    // The order comes again.
    if (!isCommitted) {
      rmSync(join(harness.folder, "apps", app.appId, "incoming"), { recursive: true, force: true });
      await harness.host.data.swap(await incoming(app));
    }
    expect([keyOf(app), await answers(app)]).toEqual(["new", true]);
  });

  test("without its journal the same kill leaves the app without its data", async () => {
    const app = await run();
    const swap = await incoming(app);
    killedAt = "move new";
    await failureOf(harness.host.data.swap(swap));
    const record = join(harness.folder, "apps", app.appId, "record.json");
    writeFileSync(record, JSON.stringify({ ...JSON.parse(readFileSync(record, "utf8")), change: null }));
    [killedAt, isDead] = [null, false];
    await harness.reopen({ onStep });
    await eventually(async () => expect(await answers(app)).toBe(true));
    expect(existsSync(join(filesOf(app), "key"))).toBe(false);
  });
});
