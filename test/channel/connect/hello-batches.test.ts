// Concurrent hellos share a transaction; none fails because of another, and each gets the result of a hello by itself.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AgentSessions, SessionHello } from "../../../server/core/ports/agent-sessions.ts";
import { createAgentSessions } from "../../../server/features/devices/index.ts";
import { createBatch } from "../../../server/platform/database/batch.ts";
import { startNode, type TestDevice, type TestNode } from "../harness.ts";
import { helloOf as helloAt } from "./hello-of.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

/** The node's sessions, on a database that counts transactions. */
const counted = (): { readonly sessions: AgentSessions; transactions: number } => {
  const seen = { transactions: 0 };
  const { sqlTx } = node.db;
  const db: typeof node.db = {
    ...node.db,
    sqlTx: (run) => {
      seen.transactions += 1;
      return sqlTx(run);
    },
  };
  return Object.assign(seen, { sessions: createAgentSessions({ db, presence: node.devices.presence, delivery: node.commands.delivery, createBatch }) });
};

const helloOf = (device: TestDevice, more: Partial<SessionHello> = {}): SessionHello => helloAt(device, node.nodeId, more);

const statusOf = async (commandId: string): Promise<string | undefined> =>
  (await node.db.query<{ status: string }>("select status from commands_now where command_id = $1", [commandId]))[0]?.status;
const eventsOf = async ({ deviceId }: TestDevice): Promise<readonly string[]> =>
  (await node.db.query<{ type: string }>("select type from outbox_events where subject_id = $1 order by position", [deviceId])).map(({ type }) => type);

test("concurrent hellos share one transaction, and each device is online with its machine and its event", async () => {
  const devices = await Promise.all(Array.from({ length: 20 }, () => node.device()));
  await node.queue(devices[3] as TestDevice);
  const seen = counted();
  const begun = await Promise.all(devices.map((device) => seen.sessions.begin(helloOf(device))));
  expect(seen.transactions).toBe(1);
  expect(begun.map(({ epoch }) => epoch)).toEqual(devices.map(() => 1));
  expect(begun.map(({ queuedCount }) => queuedCount)).toEqual(devices.map((_, at) => (at === 3 ? 1 : 0)));
  for (const device of devices) {
    expect(await node.devices.find(device, device.deviceId)).toMatchObject({ status: "online", hostname: `host-${device.deviceId}` });
    expect(await eventsOf(device)).toContain("device.online");
  }
});

test("a hello without news does not write the device's row", async () => {
  const device = await node.device();
  const { sessions } = counted();
  await sessions.begin(helloOf(device));
  const version = async () => (await node.db.query<{ xmin: string }>("select xmin::text from devices where device_id = $1", [device.deviceId]))[0]?.xmin;
  const before = await version();
  await sessions.begin(helloOf(device));
  expect(await version()).toBe(before);
});

test("concurrent hellos of one device begin in turn, and the later one finds the earlier session", async () => {
  const [device, other] = [await node.device(), await node.device()];
  const { sessions } = counted();
  const first = helloOf(device);
  const [one, , two] = await Promise.all([
    sessions.begin(first),
    sessions.begin(helloOf(other)),
    sessions.begin(helloOf(device, { handoffFrom: first.sessionId })),
  ]);
  expect([one?.epoch, two?.epoch]).toEqual([1, 2]);
  expect(two).toMatchObject({ handedOver: true, previousNodeId: node.nodeId });
});

test("a hello of a removed device is refused alone and leaves nothing behind", async () => {
  const [gone, here] = [await node.device(), await node.device()];
  await node.db.query("update devices set deleted_at = now() where device_id = $1", [gone.deviceId]);
  const { sessions } = counted();
  const [refused, begun] = await Promise.allSettled([sessions.begin(helloOf(gone)), sessions.begin(helloOf(here))]);
  expect(refused).toMatchObject({ status: "rejected", reason: { code: "FORBIDDEN" } });
  expect(begun).toMatchObject({ status: "fulfilled", value: { epoch: 1 } });
  const [row] = await node.db.query<{ epoch: number; session_id: string | null }>("select epoch, session_id from device_presence where device_id = $1", [
    gone.deviceId,
  ]);
  expect(row).toEqual({ epoch: 0, session_id: null });
});

test("each hello settles the commands of its own device, and devices without a hello keep theirs", async () => {
  const [forgets, keeps, absent] = [await node.device(), await node.device(), await node.device()];
  const { sessions } = counted();
  const claim = async (device: TestDevice): Promise<string> => {
    const commandId = await node.queue(device);
    const { epoch } = await sessions.begin(helloOf(device));
    await node.commands.delivery.claim({ deviceId: device.deviceId, epoch, maxInFlight: 8 });
    return commandId;
  };
  const [lost, held, left] = [await claim(forgets), await claim(keeps), await claim(absent)];
  const [first, second] = await Promise.all([
    sessions.begin(helloOf(forgets)),
    sessions.begin(
      helloOf(keeps, {
        inFlight: [
          { commandId: held, status: "running" },
          { commandId: lost, status: "running" },
        ],
      }),
    ),
  ]);
  expect(first).toMatchObject({ queuedCount: 1, reconcile: [] });
  // Another device's command is unknown to this one.
  expect(second.reconcile).toEqual([
    { commandId: held, action: "continue" },
    { commandId: lost, action: "forget" },
  ]);
  await node.commands.writeSent();
  expect([await statusOf(lost), await statusOf(held), await statusOf(left)]).toEqual(["queued", "running", "sent"]);
});
