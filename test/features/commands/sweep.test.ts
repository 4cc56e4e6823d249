// The sweep makes up for lost hints: it finds commands that are due for sockets of its node, sooner where no hint can arrive.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Db } from "../../../server/platform/database/db.ts";
import { addDevice, asOperator, connectDevice, createCommandsFeature, openTestDb, runJob } from "./kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(() => db.close());

/** A device of this node and one of another, each with a command. */
const prepare = async (nodeId: string, hintsArrive: boolean) => {
  const feature = createCommandsFeature(db, { nodeId, hintsArrive });
  const [own, foreign] = [await addDevice(db), await addDevice(db)];
  await connectDevice(db, own, nodeId);
  await connectDevice(db, foreign, "node-x");
  for (const device of [own, foreign]) await asOperator(feature, device).queue();
  feature.recorded.nudges.length = 0;
  return { feature, own, foreign };
};

test("the sweep finds a command whose nudge was lost, for this node's devices only", async () => {
  const { feature, own, foreign } = await prepare("node-sweep", true);
  await runJob(feature, "commands.sweep");
  expect(feature.recorded.nudges, "the sweep leaves young commands to the hints").toEqual([]);
  await db.query(`update command_queue set available_at = now() - interval '5 s' where device_id = any($1)`, [[own.deviceId, foreign.deviceId]]);
  await runJob(feature, "commands.sweep");
  expect(feature.recorded.nudges).toEqual([own.deviceId]);
});

test("the sweep repeats a cancel whose message was lost, for this node's devices only", async () => {
  const { feature, own, foreign } = await prepare("node-cancel", true);
  for (const device of [own, foreign]) {
    const user = asOperator(feature, device);
    await db.query("update command_queue set available_at = now() - interval '5 s' where device_id = $1", [device.deviceId]);
    const [command] = await user.poll();
    await user.cancel(command?.commandId ?? "", { reason: "no longer wanted" });
  }
  feature.recorded.cancels.length = 0;
  await runJob(feature, "commands.sweep");
  expect(feature.recorded.cancels, "the sweep leaves young cancels to the hints").toEqual([]);
  await db.query(`update command_queue set cancel_requested_at = now() - interval '5 s' where device_id = any($1)`, [[own.deviceId, foreign.deviceId]]);
  await runJob(feature, "commands.sweep");
  expect(feature.recorded.cancels).toMatchObject([{ deviceId: own.deviceId, reason: "no longer wanted" }]);
});

test("while hints do not arrive, the sweep takes young commands too and runs more often", async () => {
  const { feature, own } = await prepare("node-deaf", false);
  await runJob(feature, "commands.sweep");
  expect(feature.recorded.nudges).toEqual([own.deviceId]);
  const sweep = feature.jobs.find(({ name }) => name === "commands.sweep");
  expect(typeof sweep?.everyMs === "function" ? sweep.everyMs() : sweep?.everyMs).toBe(2_000);
});
