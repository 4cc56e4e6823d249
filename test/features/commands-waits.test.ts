// Long polls and waiting calls: answered as soon as there is something to say, on whichever node it happened, and never later than asked.
import { getEventListeners } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contract, type DeviceId } from "../../protocol/index.ts";
import type { Call } from "../../server/core/feature.ts";
import type { Commands } from "../../server/features/commands/index.ts";
import { openMemoryBus } from "../../server/platform/bus-memory.ts";
import type { Db } from "../../server/platform/db.ts";
import { eventually } from "../kit/eventually.ts";
import { startWorld, type World } from "../kit/world.ts";
import { addDevice, asOperator, callAs, connect, createRoom, type Device, openTestDb, runJob, scopeOf } from "./commands-kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(() => db.close());

const { poll, ack } = contract.commands.operations;
const agent = (commands: Pick<Commands, "handlers">, device: Device, signal?: AbortSignal) => {
  const call = callAs(scopeOf(device.tenantId), null, signal) as unknown as Call<typeof poll> & Call<typeof ack>;
  return {
    poll: async (input: object) => (await commands.handlers.poll(call, poll.input.parse({ deviceId: device.deviceId, ...input }))).items,
    ack: async (commandId: string, status: string) => commands.handlers.ack(call, ack.input.parse({ deviceId: device.deviceId, commandId, status })),
  };
};
/** As when the node begins to leave. */
const stopJobs = async (room: Pick<Commands, "jobs">): Promise<void> => {
  const leaving = new AbortController();
  await room.jobs.find(({ name }) => name === "commands.waits")?.run(leaving.signal);
  leaving.abort();
};
/** What a call has come to, without waiting for it. */
const watched = <T>(work: Promise<T>) => {
  const seen: { answer?: T } = {};
  void work.then((answer) => {
    seen.answer = answer;
  });
  return seen;
};

describe("a poll that waits", () => {
  test("is answered by the command that is queued meanwhile", async () => {
    const room = createRoom(db);
    const device = await addDevice(db);
    const waiting = agent(room, device).poll({ wait: 50 });
    const { commandId } = await asOperator(room, device).queue();
    expect((await waiting).map((item) => item.commandId)).toEqual([commandId]);
  });

  test("leaves no listener behind on its caller's signal, however often it was woken and however it ended", async () => {
    const room = createRoom(db);
    const device = await addDevice(db);
    const { signal } = new AbortController();
    for (let polls = 0; polls < 5; polls += 1) {
      const waiting = agent(room, device, signal).poll({ wait: 50 });
      await eventually(() => expect(getEventListeners(signal, "abort")).toHaveLength(1));
      const { commandId } = await asOperator(room, device).queue();
      expect(await waiting).toHaveLength(1);
      await agent(room, device).ack(commandId, "succeeded");
      expect(getEventListeners(signal, "abort")).toEqual([]);
    }
    expect(await agent(room, device, signal).poll({ wait: 1 })).toEqual([]);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("hears of what another node did by looking into the database", async () => {
    const [here, there] = [createRoom(db, { nodeId: "node-h" }), createRoom(db, { nodeId: "node-t" })];
    const device = await addDevice(db);
    const answer = watched(agent(here, device).poll({ wait: 50 }));
    await eventually(() => expect(here.recorded.polls).toHaveLength(1));
    const { commandId } = await asOperator(there, device).queue();
    await eventually(async () => {
      await runJob(here, "commands.waits");
      expect(answer.answer?.map((item) => item.commandId)).toEqual([commandId]);
    });
  });

  test("ends empty when its time is over, when the caller goes and when the node leaves", async () => {
    const room = createRoom(db);
    const device = await addDevice(db);
    const startedAt = performance.now();
    expect(await agent(room, device).poll({ wait: 1 })).toEqual([]);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(990);
    const gone = new AbortController();
    const left = agent(room, device, gone.signal).poll({ wait: 50 });
    gone.abort();
    expect(await left).toEqual([]);
    const leaving = agent(room, device).poll({ wait: 50 });
    await eventually(() => expect(room.recorded.polls).toHaveLength(3));
    await stopJobs(room);
    expect(await leaving).toEqual([]);
    expect(await agent(room, device).poll({ wait: 50 })).toEqual([]);
  });

  test("claims nothing for a caller that has gone", async () => {
    const room = createRoom(db);
    const device = await addDevice(db);
    const gone = new AbortController();
    const left = agent(room, device, gone.signal).poll({ wait: 50 });
    gone.abort();
    await left;
    const { commandId } = await asOperator(room, device).queue();
    expect((await asOperator(room, device).get(commandId)).status).toBe("queued");
  });

  test("two that wait for one device share the queue: each command goes to one of them", async () => {
    const room = createRoom(db);
    const device = await addDevice(db);
    const polls = [agent(room, device).poll({ wait: 2, limit: 1 }), agent(room, device).poll({ wait: 2, limit: 1 })];
    const queued = [await asOperator(room, device).queue(), await asOperator(room, device).queue()];
    const got = (await Promise.all(polls)).flat().map((item) => item.commandId);
    expect(got.every((id) => queued.some(({ commandId }) => commandId === id))).toBe(true);
    expect((await Promise.all(queued.map(({ commandId }) => asOperator(room, device).get(commandId)))).every(({ attempts }) => attempts <= 1)).toBe(true);
  });

  test("beyond the bound nobody waits", async () => {
    const room = createRoom(db, { settings: { maxWaits: 1 } });
    const [first, second] = [await addDevice(db), await addDevice(db)];
    const held = agent(room, first).poll({ wait: 50 });
    await eventually(() => expect(room.recorded.polls).toHaveLength(1));
    expect(await agent(room, second).poll({ wait: 50 })).toEqual([]);
    await stopJobs(room);
    expect(await held).toEqual([]);
  });
});

describe("a queueing call that waits", () => {
  test("answers with the end of its command, which may come on another node", async () => {
    const [here, there] = [createRoom(db, { nodeId: "node-h" }), createRoom(db, { nodeId: "node-t" })];
    const device = await addDevice(db);
    const answer = watched(asOperator(here, device).queue({ wait: 30 }));
    const commandId = await eventually(async () => {
      const [item] = await agent(there, device).poll({});
      expect(item).toBeDefined();
      return item?.commandId ?? "";
    });
    await agent(there, device).ack(commandId, "succeeded");
    await eventually(async () => {
      await runJob(here, "commands.waits");
      expect(answer.answer).toMatchObject({ commandId, status: "succeeded" });
    });
  });

  test("is told by the node that holds the device, without a look", async () => {
    const bus = openMemoryBus();
    const [here, there] = [createRoom(db, { nodeId: "node-h", bus }), createRoom(db, { nodeId: "node-t", bus })];
    await Promise.all([here.elsewhere.open(), there.elsewhere.open()]);
    const device = await addDevice(db);
    await connect(db, device, "node-t");
    const waiting = asOperator(here, device).queue({ wait: 30 });
    const commandId = await eventually(async () => {
      const [item] = await agent(there, device).poll({});
      expect(item).toBeDefined();
      return item?.commandId ?? "";
    });
    await agent(there, device).ack(commandId, "succeeded");
    expect(await waiting).toMatchObject({ commandId, status: "succeeded" });
  });

  test("answers with what is known when its time is over; the wait is no part of what a key stands for", async () => {
    const room = createRoom(db);
    const device = await addDevice(db);
    const first = await asOperator(room, device).queue({ wait: 1 }, "key-1");
    expect(first.status).toBe("queued");
    const again = await asOperator(room, device).run("queue", { deviceId: device.deviceId, type: "echo", wait: 0 }, "key-1");
    expect([again.reply.replayed, again.result.commandId]).toEqual([true, first.commandId]);
  });
});

describe("through the doors", () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world.close());

  test("both waits meet: the poll gets the command, the queueing call its result; 201", async () => {
    const tenant = await world.tenant();
    const device = await tenant.device();
    const path = `/v1/devices/${device.deviceId}/commands`;
    const polled = world.call(device.as, "GET", `${path}?wait=10`);
    const queued = world.call(tenant.apiKey, "POST", `${path}?wait=10`, { body: { type: "ping" } });
    const { commandId } = (await polled).body.data[0];
    await world.call(device.as, "POST", `${path}/${commandId}/ack`, { body: { status: "succeeded" } });
    const answer = await queued;
    expect([answer.status, answer.body.data.status]).toEqual([201, "succeeded"]);
  });

  test("tRPC waits too", async () => {
    const tenant = await world.tenant();
    const device = await tenant.device();
    const client = await tenant.trpc();
    const queued = client.commands.queue.mutate({ deviceId: device.deviceId as DeviceId, type: "ping", wait: 10 });
    const { commandId } = (await world.call(device.as, "GET", `/v1/devices/${device.deviceId}/commands?wait=10`)).body.data[0];
    await world.call(device.as, "POST", `/v1/devices/${device.deviceId}/commands/${commandId}/ack`, { body: { status: "failed" } });
    expect((await queued).status).toBe("failed");
  });

  test("longer than allowed is refused", async () => {
    const tenant = await world.tenant();
    const device = await tenant.device();
    const path = `/v1/devices/${device.deviceId}/commands`;
    expect((await world.call(device.as, "GET", `${path}?wait=51`)).status).toBe(400);
    expect((await world.call(tenant.apiKey, "POST", `${path}?wait=31`, { body: { type: "ping" } })).status).toBe(400);
  });
});
