// What the viewers of one node see of commands that change on another: the same fields as of its own, and nothing older after something newer.
import { afterAll, beforeAll, expect, test } from "vitest";
import { contract } from "../../../protocol/index.ts";
import type { Happened } from "../../../server/core/events.ts";
import { findCommand } from "../../../server/features/commands/store/read.ts";
import { createRemoteChanges } from "../../../server/features/commands/waiting/remote-changes.ts";
import type { Db } from "../../../server/platform/database/db.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { addDevice, asOperator, createCommandsFeature, openTestDb } from "./kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(() => db.close());

const { changed, queued } = contract.commands.events;

/** A node that queues and delivers, and one that only shows. `afterRead` holds back what it has read. */
const prepare = async (afterRead: () => Promise<void> = async () => undefined) => {
  const device = await addDevice(db);
  const feature = createCommandsFeature(db, { nodeId: "node-b" });
  const shown: Happened[] = [];
  const slow: Db = {
    ...db,
    query: async (text, values) => {
      const rows = await db.query(text, values);
      if (text.includes("last_step")) await afterRead();
      return rows as never;
    },
  };
  const remote = createRemoteChanges({
    db: slow,
    showHere: (event) => void shown.push(event),
    onError: (error) => {
      throw error;
    },
  });
  const show = async (count: number) => {
    remote.show(device.tenantId);
    await eventually(() => expect(shown).toHaveLength(count));
  };
  return { device, feature, shown, remote, show, agent: asOperator(feature, device) };
};

test("a step on another node shows the fields of the command, as one on this node does", async () => {
  const { device, feature, shown, show, agent } = await prepare();
  const { commandId } = await agent.queue({ lane: "app:a" });
  await show(1);
  await agent.poll();
  await show(2);
  await agent.run("ack", { deviceId: device.deviceId, commandId, status: "running", progress: { pct: 10 } });
  await show(3);
  await agent.run("ack", { deviceId: device.deviceId, commandId, status: "running", progress: { pct: 20 } });
  await show(4);
  for (const { event, data } of shown) expect(event.schema.parse(data)).toEqual(data);
  expect(shown.map(({ event, data }) => [event, data["status"], data["previous"], data["progress"]])).toEqual([
    [queued, "queued", null, null],
    [changed, "sent", "queued", null],
    [changed, "running", "sent", { pct: 10, message: null }],
    [changed, "running", "running", { pct: 20, message: null }],
  ]);
  const local = feature.recorded.hints;
  expect(shown.map(({ data }) => data)).toEqual(local.map(({ data }) => data));
  const { issuedAt, sentAt, createdBy } = await agent.get(commandId);
  expect(local.at(-1)?.data).toMatchObject({ lane: "app:a", issuedAt, sentAt, createdBy, attempts: 1, cancelRequestedAt: null });
});

test("what another node did before this node's own change is not shown after it", async () => {
  let whileReading: () => Promise<void> = async () => undefined;
  const { device, shown, remote, show, agent } = await prepare(() => whileReading());
  const { commandId } = await agent.queue();
  await show(1);
  await agent.poll();
  whileReading = async () => {
    whileReading = async () => undefined;
    await agent.cancel(commandId);
    const row = await findCommand(db, device, commandId, null);
    if (row === null) throw new Error("the command is gone");
    remote.note(row);
  };
  remote.show(device.tenantId);
  remote.show(device.tenantId);
  const other = await agent.queue();
  await show(2);
  expect(shown.map(({ subjectId }) => subjectId)).toEqual([commandId, other.commandId]);
});
