// Batches isolate their items: a value that the database rejects fails alone, and the other items of its batch succeed.
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { DeviceId } from "../../protocol/index.ts";
import type { PresenceUpdate, SessionHello } from "../../server/core/ports/agent-sessions.ts";
import { createAgentSessions } from "../../server/features/devices/index.ts";
import { createBatch } from "../../server/platform/database/batch.ts";
import type { Db } from "../../server/platform/database/db.ts";
import { asOperator, createCommandsFeature } from "../features/commands/kit.ts";
import { helloOf } from "./connect/hello-of.ts";
import { online, startNode, type TestDevice, type TestNode } from "./harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

/** PostgreSQL rejects this character. The transports refuse it, so the test passes it in behind them. */
const POISON = "a\u0000b";
const threeDevices = async (): Promise<readonly [TestDevice, TestDevice, TestDevice]> => {
  const tenantId = await node.tenant();
  return [await node.device(tenantId), await node.device(tenantId), await node.device(tenantId)];
};
/** A database that counts its transactions. */
const counted = (): { readonly db: Db; transactions: number } => {
  const seen = { transactions: 0 };
  const { sqlTx } = node.db;
  return Object.assign(seen, {
    db: {
      ...node.db,
      sqlTx: (run: Parameters<Db["sqlTx"]>[0]) => {
        seen.transactions += 1;
        return sqlTx(run);
      },
    } as Db,
  });
};
const outcomes = (results: readonly PromiseSettledResult<unknown>[]) => results.map(({ status }) => status);
const MIDDLE_FAILS = ["fulfilled", "rejected", "fulfilled"];

describe("a poisoned item fails alone", () => {
  test("among hellos", async () => {
    const devices = await threeDevices();
    const seen = counted();
    const sessions = createAgentSessions({ db: seen.db, presence: node.devices.presence, delivery: node.commands.delivery, createBatch });
    const hello = (device: TestDevice, more: Partial<SessionHello>) => sessions.begin(helloOf(device, node.nodeId, more));
    const results = await Promise.allSettled(devices.map((device, at) => hello(device, at === 1 ? { instanceId: POISON } : {})));
    expect(outcomes(results)).toEqual(MIDDLE_FAILS);
    for (const [at, device] of devices.entries())
      expect(await node.devices.find(device, device.deviceId)).toMatchObject({ status: at === 1 ? "provisioning" : "online" });
    // The hellos shared a transaction, which was then split in halves.
    expect(seen.transactions).toBe(5);
  });

  test("among queued commands and among their acks", async () => {
    const [first, , third] = await threeDevices();
    const seen = counted();
    const commands = createCommandsFeature(seen.db, { nodeId: node.nodeId });
    const queue = ({ tenantId, deviceId }: TestDevice, payload: object = {}) =>
      asOperator(commands, { tenantId, deviceId: deviceId as DeviceId }).queue({ type: "ping", payload: { ...payload } });
    const queued = await Promise.allSettled([queue(first), queue(first, { text: POISON }), queue(first)]);
    expect([outcomes(queued), seen.transactions]).toEqual([MIDDLE_FAILS, 5]);

    const commandIds = (await Promise.all([queue(first), queue(third), queue(third)])).map(({ commandId }) => commandId);
    seen.transactions = 0;
    const acked = await Promise.allSettled(
      [first, third, third].map((device, at) =>
        commands.delivery.ack(device, { commandId: commandIds[at] ?? "", status: "succeeded", output: at === 1 ? { text: POISON } : {} }),
      ),
    );
    expect([outcomes(acked), seen.transactions]).toEqual([MIDDLE_FAILS, 5]);
    expect(acked[2]).toMatchObject({ value: { result: "applied", status: "succeeded" } });
  });

  test("among the updates of a presence flush, and the error is reported", async () => {
    const devices = await threeDevices();
    const sockets = await Promise.all(devices.map((device) => online(node, device)));
    const epochs = new Map(
      (
        await node.db.query<{ device_id: string; epoch: number }>("select device_id, epoch from device_presence where device_id = any($1)", [
          devices.map(({ deviceId }) => deviceId),
        ])
      ).map((row) => [row.device_id, row.epoch]),
    );
    const beats = devices.map(
      ({ deviceId }, at): PresenceUpdate => ({
        deviceId,
        epoch: epochs.get(deviceId) ?? 0,
        seenAgoMs: 0,
        patienceMs: 60_000,
        heartbeatAgoMs: 0,
        metrics: { note: at === 1 ? POISON : "good" },
      }),
    );
    const current = await node.devices.presence.flush(beats);
    expect(devices.map(({ deviceId }) => current.has(deviceId))).toEqual([true, false, true]);
    expect((await node.devices.find(devices[2], devices[2].deviceId))?.metrics).toEqual({ note: "good" });
    expect(node.complaints).toHaveLength(1);
    for (const socket of sockets) socket.end();
  });

  test("among reads of session holders", async () => {
    const devices = await threeDevices();
    const results = await Promise.allSettled(
      devices.map(({ tenantId, deviceId }, at) => node.devices.presence.holder({ tenantId, deviceId: at === 1 ? POISON : deviceId })),
    );
    expect(outcomes(results)).toEqual(MIDDLE_FAILS);
  });

  test("among claims of sessions", async () => {
    const devices = await threeDevices();
    const results = await Promise.allSettled(
      devices.map(({ deviceId }, at) => node.commands.delivery.claim({ deviceId: at === 1 ? POISON : deviceId, epoch: 0, maxInFlight: 8 })),
    );
    expect(outcomes(results)).toEqual(MIDDLE_FAILS);
  });
});

describe("names of Object.prototype", () => {
  const WORDS = ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf", "prototype"];

  test("as the status of an ack are refused, and the session continues", async () => {
    const device = await node.device();
    const commandId = await node.queue(device);
    const socket = await online(node, device);
    await socket.next("command");
    for (const status of WORDS) {
      const id = socket.say("ack", { commandId, status });
      expect([status, await socket.next("ack_ok")]).toMatchObject([status, { ref: id, data: { commandId, result: "refused", code: "ACK_STATUS_UNKNOWN" } }]);
    }
    socket.say("ack", { commandId, status: "Succeeded" });
    expect((await socket.next("ack_ok")).data).toMatchObject({ commandId, result: "applied", status: "succeeded" });
    socket.end();
  });

  test("as the status of a listed command count as unknown and do not delay other hellos", async () => {
    const [one, other] = [await node.device(), await node.device()];
    const commandId = await node.queue(one);
    (await online(node, one)).end();
    const error = vi.fn();
    const [socket, neighbour] = await Promise.all([
      online(node, one, { inFlight: WORDS.map((status) => ({ commandId, status })) }).catch(error),
      online(node, other),
    ]);
    expect(error).not.toHaveBeenCalled();
    socket?.end();
    neighbour.end();
  });
});
