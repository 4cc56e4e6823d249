// Long polls and calls that wait: the gateway answers as soon as there is something to say, on whichever node it happened, and never later than asked.
import { getEventListeners } from "node:events";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { contract, type DeviceId } from "../../../protocol/index.ts";
import type { Call } from "../../../server/core/feature.ts";
import type { Commands } from "../../../server/features/commands/index.ts";
import { openMemoryBus } from "../../../server/platform/cluster/bus-memory.ts";
import type { Db } from "../../../server/platform/database/db.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";
import { addDevice, asOperator, callAs, connectDevice, createCommandsFeature, type DeviceRef, openTestDb, runJob, scopeOf } from "./kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(() => db.close());

const { poll, ack } = contract.commands.operations;
const agent = (commands: Pick<Commands, "handlers">, device: DeviceRef, signal?: AbortSignal) => {
  const call = callAs(scopeOf(device.tenantId), null, signal) as unknown as Call<typeof poll> & Call<typeof ack>;
  return {
    poll: async (input: object) => (await commands.handlers.poll(call, poll.input.parse({ deviceId: device.deviceId, ...input }))).items,
    ack: async (commandId: string, status: string) => commands.handlers.ack(call, ack.input.parse({ deviceId: device.deviceId, commandId, status })),
  };
};
/** Ends the waits, as a node does when its shutdown begins. */
const stopJobs = async (feature: Pick<Commands, "jobs">): Promise<void> => {
  const leaving = new AbortController();
  await feature.jobs.find(({ name }) => name === "commands.waits")?.run(leaving.signal);
  leaving.abort();
};
/** Holds a call's answer once it has come; nobody waits for it. */
const watched = <T>(work: Promise<T>) => {
  const seen: { answer?: T } = {};
  void work.then((answer) => {
    seen.answer = answer;
  });
  return seen;
};

describe("long polls", () => {
  test("a waiting poll returns the command that is queued meanwhile", async () => {
    const feature = createCommandsFeature(db);
    const device = await addDevice(db);
    const waiting = agent(feature, device).poll({ wait: 50 });
    const { commandId } = await asOperator(feature, device).queue();
    expect((await waiting).map((item) => item.commandId)).toEqual([commandId]);
  });

  test("a poll leaves no listener on its caller's signal, however often it wakes and however it ends", async () => {
    const feature = createCommandsFeature(db);
    const device = await addDevice(db);
    const { signal } = new AbortController();
    for (let polls = 0; polls < 5; polls += 1) {
      const waiting = agent(feature, device, signal).poll({ wait: 50 });
      await eventually(() => expect(getEventListeners(signal, "abort")).toHaveLength(1));
      const { commandId } = await asOperator(feature, device).queue();
      expect(await waiting).toHaveLength(1);
      await agent(feature, device).ack(commandId, "succeeded");
      expect(getEventListeners(signal, "abort")).toEqual([]);
    }
    expect(await agent(feature, device, signal).poll({ wait: 1 })).toEqual([]);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("a waiting poll finds a command that another node queued by reading the database", async () => {
    const [here, there] = [createCommandsFeature(db, { nodeId: "node-h" }), createCommandsFeature(db, { nodeId: "node-t" })];
    const device = await addDevice(db);
    const answer = watched(agent(here, device).poll({ wait: 50 }));
    await eventually(() => expect(here.recorded.polls).toHaveLength(1));
    const { commandId } = await asOperator(there, device).queue();
    await eventually(async () => {
      await runJob(here, "commands.waits");
      expect(answer.answer?.map((item) => item.commandId)).toEqual([commandId]);
    });
  });

  test("a waiting poll ends empty when its time is over, when the caller disconnects and when the node shuts down", async () => {
    const feature = createCommandsFeature(db);
    const device = await addDevice(db);
    const timers = vi.spyOn(globalThis, "setTimeout");
    expect(await agent(feature, device).poll({ wait: 1 })).toEqual([]);
    const waits = timers.mock.calls.map(([, ms]) => ms);
    timers.mockRestore();
    expect(waits).toContain(1_000);
    const gone = new AbortController();
    const left = agent(feature, device, gone.signal).poll({ wait: 50 });
    gone.abort();
    expect(await left).toEqual([]);
    const leaving = agent(feature, device).poll({ wait: 50 });
    await eventually(() => expect(feature.recorded.polls).toHaveLength(3));
    await stopJobs(feature);
    expect(await leaving).toEqual([]);
    expect(await agent(feature, device).poll({ wait: 50 })).toEqual([]);
  });

  test("a poll claims nothing for a caller that has disconnected", async () => {
    const feature = createCommandsFeature(db);
    const device = await addDevice(db);
    const gone = new AbortController();
    const left = agent(feature, device, gone.signal).poll({ wait: 50 });
    gone.abort();
    await left;
    const { commandId } = await asOperator(feature, device).queue();
    expect((await asOperator(feature, device).get(commandId)).status).toBe("queued");
  });

  test("two polls that wait for one device share its queue: each command goes to one of them", async () => {
    const feature = createCommandsFeature(db);
    const device = await addDevice(db);
    const polls = [agent(feature, device).poll({ wait: 2, limit: 1 }), agent(feature, device).poll({ wait: 2, limit: 1 })];
    const queued = [await asOperator(feature, device).queue(), await asOperator(feature, device).queue()];
    const got = (await Promise.all(polls)).flat().map((item) => item.commandId);
    expect(got.every((id) => queued.some(({ commandId }) => commandId === id))).toBe(true);
    expect((await Promise.all(queued.map(({ commandId }) => asOperator(feature, device).get(commandId)))).every(({ attempts }) => attempts <= 1)).toBe(true);
  });

  test("a poll beyond the bound on waits is answered at once", async () => {
    const feature = createCommandsFeature(db, { settings: { maxWaits: 1 } });
    const [first, second] = [await addDevice(db), await addDevice(db)];
    const held = agent(feature, first).poll({ wait: 50 });
    await eventually(() => expect(feature.recorded.polls).toHaveLength(1));
    expect(await agent(feature, second).poll({ wait: 50 })).toEqual([]);
    await stopJobs(feature);
    expect(await held).toEqual([]);
  });
});

describe("queueing calls that wait", () => {
  test("the call answers with its command's outcome, which may arrive on another node", async () => {
    const [here, there] = [createCommandsFeature(db, { nodeId: "node-h" }), createCommandsFeature(db, { nodeId: "node-t" })];
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

  test("a waiting call answers with the row that this node has just written, without reading it again", async () => {
    const texts: string[] = [];
    const query: Db["query"] = (text, values) => {
      texts.push(text);
      return db.query(text, values);
    };
    const feature = createCommandsFeature({ ...db, query });
    const device = await addDevice(db);
    const waiting = asOperator(feature, device).queue({ wait: 30 });
    const [item] = await agent(feature, device).poll({ wait: 30 });
    texts.length = 0;
    await agent(feature, device).ack(item?.commandId ?? "", "succeeded");
    const answer = await waiting;
    expect(answer).toMatchObject({ status: "succeeded", ack: { status: "succeeded" } });
    expect(texts.filter((text) => text.includes("from commands") || text.includes("join commands"))).toEqual([]);
    expect(answer).toEqual(await asOperator(feature, device).get(answer.commandId));
  });

  test("the node that holds the device tells the waiting node, which reads no database for it", async () => {
    const bus = openMemoryBus();
    const [here, there] = [createCommandsFeature(db, { nodeId: "node-h", bus }), createCommandsFeature(db, { nodeId: "node-t", bus })];
    await Promise.all([here.remote.open(), there.remote.open()]);
    const device = await addDevice(db);
    await connectDevice(db, device, "node-t");
    const waiting = asOperator(here, device).queue({ wait: 30 });
    const commandId = await eventually(async () => {
      const [item] = await agent(there, device).poll({});
      expect(item).toBeDefined();
      return item?.commandId ?? "";
    });
    await agent(there, device).ack(commandId, "succeeded");
    expect(await waiting).toMatchObject({ commandId, status: "succeeded" });
  });

  test("the call answers with the state so far when its time is over, and a repeat with another wait replays it", async () => {
    const feature = createCommandsFeature(db);
    const device = await addDevice(db);
    const first = await asOperator(feature, device).queue({ wait: 1 }, "key-1");
    expect(first.status).toBe("queued");
    const again = await asOperator(feature, device).run("queue", { deviceId: device.deviceId, type: "echo", wait: 0 }, "key-1");
    expect([again.reply.replayed, again.result.commandId]).toEqual([true, first.commandId]);
  });
});

describe("over HTTP and tRPC", () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(() => world.close());

  test("a waiting poll gets the command and the waiting POST answers 201 with its result", async () => {
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

  test("a tRPC call waits for its command's outcome", async () => {
    const tenant = await world.tenant();
    const device = await tenant.device();
    const client = await tenant.trpc();
    const queued = client.commands.queue.mutate({ deviceId: device.deviceId as DeviceId, type: "ping", wait: 10 });
    const { commandId } = (await world.call(device.as, "GET", `/v1/devices/${device.deviceId}/commands?wait=10`)).body.data[0];
    await world.call(device.as, "POST", `/v1/devices/${device.deviceId}/commands/${commandId}/ack`, { body: { status: "failed" } });
    expect((await queued).status).toBe("failed");
  });

  test("a wait longer than allowed is refused with 400", async () => {
    const tenant = await world.tenant();
    const device = await tenant.device();
    const path = `/v1/devices/${device.deviceId}/commands`;
    expect((await world.call(device.as, "GET", `${path}?wait=51`)).status).toBe(400);
    expect((await world.call(tenant.apiKey, "POST", `${path}?wait=31`, { body: { type: "ping" } })).status).toBe(400);
  });
});
