// A repository that held backups and is lost: no backup makes another one in its place as if nothing had been there.
import { existsSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HandlerFailure } from "../../../agent-sim/agent/index.ts";
import { desiredApp } from "../../agent-sim/host/desired.ts";
import { freePort } from "../../kit/net/free-port.ts";
import { runRestic, serveRepositories } from "../../platform/repositories/served.ts";
import { type EngineHarness, newId, openEngine, remove } from "./real-engine.ts";

let one: EngineHarness;
beforeAll(() => {
  one = openEngine();
});
afterAll(() => one.close());

const saidOf = async (work: Promise<unknown>): Promise<unknown> => {
  const error = await work.then(
    () => "it succeeded",
    (reason: unknown) => reason,
  );
  return error instanceof HandlerFailure ? error.output : error;
};

test("a repository that is lost fails each order by name, stays lost, and serves again when it is back", async () => {
  const app = desiredApp(await freePort());
  await one.harness.host.apply(app);
  const made = await one.create(app);
  one.access.mayInitialize = false;
  const { repository } = one;
  const away = `${repository}-away`;
  renameSync(repository, away);
  const destinationId = newId("bkd");
  const said = { reason: "REPOSITORY_MISSING", message: expect.stringContaining("nothing was made in its place") };
  const orders: readonly (() => Promise<unknown>)[] = [
    () => one.create(app),
    () => one.restore(app, made.snapshotId),
    () => one.engine.verify({ backupId: newId("bak"), appId: app.appId, snapshotId: made.snapshotId, mode: "checksum" }, one.context()),
    () => one.engine.delete({ destinationId, snapshotIds: [made.snapshotId] }, one.context()),
    () => one.engine.prune({ destinationId }, one.context()),
    () => one.engine.test({ destinationId, initialize: false }, one.context()),
  ];
  for (const order of orders) expect(await saidOf(order())).toMatchObject(said);
  expect(existsSync(repository)).toBe(false);
  // An empty folder is what a disk that is not mounted leaves.
  mkdirSync(repository);
  for (const order of orders) expect(await saidOf(order())).toMatchObject(said);
  expect(readdirSync(repository)).toEqual([]);
  expect(one.harness.host.report().find(({ appId }) => appId === app.appId)?.state).toBe("running");

  remove(repository);
  renameSync(away, repository);
  expect(await one.engine.test({ destinationId, initialize: false }, one.context())).toMatchObject({ created: false, snapshots: 1 });
  await one.restore(app, made.snapshotId);
});

test("an agent that has worked in a repository does not make it anew by an access from before, and does so by order", async () => {
  const app = desiredApp(await freePort());
  await one.harness.host.apply(app);
  one.access.mayInitialize = true;
  await one.create(app);
  remove(one.repository);
  expect(await saidOf(one.create(app))).toMatchObject({ reason: "REPOSITORY_MISSING" });
  expect(await one.engine.test({ destinationId: newId("bkd"), initialize: true }, one.context())).toMatchObject({ created: true, snapshots: 0 });
  await one.create(app);
});

test("the gateway's repository refuses to be made by credentials that may not make it", async () => {
  const served = await serveRepositories();
  const work = join(served.folder, "work");
  await mkdir(join(work, "data"), { recursive: true });
  await writeFile(join(work, "data", "key"), "value");
  served.grants.set("append", { right: "append", space: null, mayInitialize: false });
  served.grants.set("first", { right: "append", space: null, mayInitialize: true });
  const as = (token: string) => `rest:${served.url.replace("//", `//device:${token}@`)}/restic/rep_1/`;
  expect(await runRestic(as("append"), ["init"], work)).toMatchObject({ code: 1, errors: expect.stringContaining("403") });
  expect(existsSync(join(served.folder, "rep_1"))).toBe(false);
  expect(await runRestic(as("first"), ["init"], work)).toMatchObject({ code: 0 });
  expect(await runRestic(as("append"), ["backup", "data"], work)).toMatchObject({ code: 0 });
  await served.close();
});
