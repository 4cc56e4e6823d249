// The sweep makes up for hints: it finds what is due for the sockets of its node, sooner where no hint can be expected.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Db } from "../../server/platform/db.ts";
import { addDevice, asOperator, connect, createRoom, openTestDb, runJob } from "./commands-kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(() => db.close());

/** A device of this node and one of another, each with a command. */
const prepare = async (nodeId: string, hintsArrive: boolean) => {
  const room = createRoom(db, { nodeId, hintsArrive });
  const [own, foreign] = [await addDevice(db), await addDevice(db)];
  await connect(db, own, nodeId);
  await connect(db, foreign, "node-x");
  for (const device of [own, foreign]) await asOperator(room, device).queue();
  room.recorded.nudges.length = 0;
  return { room, own, foreign };
};

test("finds what no nudge told of, on this node's devices only", async () => {
  const { room, own, foreign } = await prepare("node-sweep", true);
  await runJob(room, "commands.sweep");
  expect(room.recorded.nudges, "what is young is left to the hints").toEqual([]);
  await db.query(`update commands set available_at = now() - interval '5 s' where device_id = any($1)`, [[own.deviceId, foreign.deviceId]]);
  await runJob(room, "commands.sweep");
  expect(room.recorded.nudges).toEqual([own.deviceId]);
});

test("waits for no hint while none arrives, and comes more often", async () => {
  const { room, own } = await prepare("node-deaf", false);
  await runJob(room, "commands.sweep");
  expect(room.recorded.nudges).toEqual([own.deviceId]);
  const sweep = room.jobs.find(({ name }) => name === "commands.sweep");
  expect(typeof sweep?.everyMs === "function" ? sweep.everyMs() : sweep?.everyMs).toBe(2_000);
});
