// The agent's commands about volumes over a real folder: what the data of removed apps is, and that nothing else is ever removed.
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HandlerFailure, systemTime } from "../../../agent-sim/agent/index.ts";
import { createVolumeHandlers } from "../../../agent-sim/host/backups/handlers.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { desiredApp } from "./desired.ts";
import { openProcesses, type ProcessHarness } from "./harness.ts";

let one: ProcessHarness;
beforeAll(() => {
  one = openProcesses();
});
afterAll(() => one.close());

const carryOut = (type: "volume.scan" | "volume.remove", payload: Record<string, unknown>): Promise<unknown> => {
  const handler = createVolumeHandlers({ data: one.host.data, time: systemTime })[type];
  if (handler === undefined) throw new Error(`no handler of ${type}`);
  const context = { commandId: "cmd_1", signal: new AbortController().signal, progress: () => undefined };
  // as: the rest of a command's context, which these handlers do not use
  return Promise.resolve(handler.run(payload, context as never));
};
const refusalOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "it was removed",
    (error: unknown) => (error instanceof HandlerFailure ? error.output : error),
  );

test("the volume of an app stays; once the app is gone it is removed with what is in it, and a link in it leads nowhere", async () => {
  const app = desiredApp(await freePort());
  await one.host.apply(app);
  const { appId } = app;
  const name = `${appId}.files`;
  const files = join(one.folder, "apps", appId, "volumes", "files");
  const elsewhere = join(one.folder, "elsewhere");
  mkdirSync(elsewhere, { recursive: true });
  writeFileSync(join(elsewhere, "kept"), "kept");
  writeFileSync(join(files, "key"), "12345678");
  symlinkSync(elsewhere, join(files, "out"));
  expect(await refusalOf(carryOut("volume.remove", { name }))).toMatchObject({ reason: "VOLUME_IN_USE" });
  expect(existsSync(join(files, "key"))).toBe(true);

  await one.host.apply({ ...app, revision: 2, state: "removed", keepVolumes: true });
  expect(await carryOut("volume.scan", { budgetSeconds: 10 })).toMatchObject({ volumes: [{ name, appId: null, inUse: false }] });
  expect(await carryOut("volume.remove", { name })).toMatchObject({ removed: true, freedBytes: expect.any(Number) });
  expect([existsSync(files), existsSync(join(elsewhere, "kept"))]).toEqual([false, true]);
  // The order that comes again finds its work done.
  expect(await carryOut("volume.remove", { name })).toEqual({ removed: false, freedBytes: null });
  expect(await carryOut("volume.scan", { budgetSeconds: 10 })).toMatchObject({ volumes: [] });
});

test.each(["..", "../elsewhere", "none.files", "a.b/../../elsewhere"])("%s removes nothing", async (name) => {
  mkdirSync(join(one.folder, "elsewhere"), { recursive: true });
  const ended = await carryOut("volume.remove", { name }).then(
    (output) => output,
    () => "refused",
  );
  expect(ended === "refused" || JSON.stringify(ended) === JSON.stringify({ removed: false, freedBytes: null })).toBe(true);
  expect(existsSync(join(one.folder, "elsewhere"))).toBe(true);
});
