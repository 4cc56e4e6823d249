// Commands over the socket: sent once their row is committed, acknowledged after the commit, cancelled by a message.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contract } from "../../protocol/index.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { callable, inside, userOf } from "../kit/gateway/call.ts";
import { connect, greet, online, startNode, type TestNode } from "./harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

const statusOf = async (commandId: string): Promise<string | undefined> =>
  (await node.db.query<{ status: string }>("select status from commands_now where command_id = $1", [commandId]))[0]?.status;

describe("push and ack", () => {
  test("a queued command reaches the agent, and each ack is answered after its commit", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    const commandId = await node.queue(device);
    const { data } = await socket.next("command");
    expect(data).toMatchObject({ command: { commandId, type: "ping", payload: { n: 1 }, requiresAck: true }, delivery: { attempt: 1, redelivered: false } });
    await eventually(async () => expect(await statusOf(commandId)).toBe("sent"));
    for (const [word, status] of [
      ["received", "acknowledged"],
      ["running", "running"],
      ["ok", "succeeded"],
    ] as const) {
      const id = socket.say("ack", { commandId, status: word, output: { pong: true } });
      expect(await socket.next("ack_ok")).toMatchObject({ ref: id, data: { commandId, status, result: "applied" } });
      expect(await statusOf(commandId)).toBe(status);
    }
    socket.say("ack", { commandId, status: "succeeded", output: { pong: true } });
    expect((await socket.next("ack_ok")).data.result).toBe("duplicate");
    socket.say("ack", { commandId: "cmd_nobody", status: "succeeded" });
    expect((await socket.next("ack_ok")).data).toEqual({ commandId: "cmd_nobody", status: null, result: "unknown" });
    socket.end();
  });

  test("a command that waits for credit says so, with the maxInFlight of the agent", async () => {
    const device = await node.device();
    const { timeline } = callable(contract.commands, node.commands.handlers);
    const blocker = async (commandId: string) => (await timeline(inside(device.tenantId, userOf("u")), { commandId: commandId as `cmd_${string}` })).blockedBy;
    const socket = await connect(node, device);
    await greet(node, socket, device, { maxInFlight: 1 });
    const [first, second] = [await node.queue(device), await node.queue(device)];
    expect((await socket.next("command")).data.command.commandId).toBe(first);
    await eventually(async () => expect(await blocker(second)).toMatchObject({ kind: "credit", explanation: expect.stringContaining("at work on 1") }));
    socket.say("ack", { commandId: first, status: "succeeded" });
    expect((await socket.next("command")).data.command.commandId).toBe(second);
    // A newer session with a larger maxInFlight counts by its own.
    const third = await node.queue(device);
    await eventually(async () => expect(await blocker(third)).toMatchObject({ kind: "credit" }));
    const wider = await connect(node, device);
    await greet(node, wider, device, { maxInFlight: 2, inFlight: [{ commandId: second, status: "running" }] });
    expect((await wider.next("command")).data.command.commandId).toBe(third);
    const fourth = await node.queue(device);
    await eventually(async () => expect(await blocker(fourth)).toMatchObject({ kind: "credit", explanation: expect.stringContaining("at work on 2") }));
    wider.end();
  });

  test("queued commands are pushed right after ready, never more than maxInFlight", async () => {
    const device = await node.device();
    const waiting = [await node.queue(device), await node.queue(device), await node.queue(device)];
    const socket = await connect(node, device);
    expect((await greet(node, socket, device, { maxInFlight: 2 })).data.queuedCount).toBe(3);
    const first = (await socket.next("command")).data.command.commandId;
    const second = (await socket.next("command")).data.command.commandId;
    expect([first, second]).toEqual(waiting.slice(0, 2));
    expect(await statusOf(waiting[2] ?? "")).toBe("queued");
    socket.say("ack", { commandId: first, status: "succeeded" });
    expect((await socket.next("command")).data.command.commandId).toBe(waiting[2]);
    socket.end();
  });

  test("a command without an ack is delivered once it is written", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    const commandId = await node.queue(device, { requiresAck: false });
    await socket.next("command");
    await eventually(async () => expect(await statusOf(commandId)).toBe("delivered"));
    socket.end();
  });

  test("an ack for another device's command is answered as unknown", async () => {
    const [mine, theirs] = [await node.device(), await node.device()];
    const commandId = await node.queue(theirs);
    const socket = await online(node, mine);
    socket.say("ack", { commandId, status: "succeeded" });
    expect((await socket.next("ack_ok")).data.result).toBe("unknown");
    expect(await statusOf(commandId)).toBe("queued");
    socket.end();
  });

  test("an ack that was not committed gets a retryable error instead of ack_ok", async () => {
    const own = await startNode();
    const device = await own.device();
    const socket = await online(own, device);
    const commandId = await own.queue(device);
    await socket.next("command");
    await own.db.query("alter table commands rename to commands_away");
    const id = socket.say("ack", { commandId, status: "succeeded" });
    expect(await socket.next("error")).toMatchObject({ ref: id, data: { code: "INTERNAL_ERROR", retryable: true, retryAfter: expect.any(Number) } });
    expect(own.complaints).not.toEqual([]);
    await own.db.query("alter table commands_away rename to commands");
    expect(socket.frames).toEqual([]);
    socket.say("ack", { commandId, status: "succeeded" });
    expect((await socket.next("ack_ok")).data).toMatchObject({ status: "succeeded", result: "applied" });
    socket.end();
    await own.close();
  });
});

describe("notifications", () => {
  test("a cancel order reaches the agent", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    node.notifier.cancel(device.deviceId, { commandId: "cmd_1", reason: "no longer needed", deadline: "2026-01-01T00:00:00.000Z" });
    expect((await socket.next("cancel")).data).toEqual({ commandId: "cmd_1", reason: "no longer needed", deadline: "2026-01-01T00:00:00.000Z" });
    socket.end();
  });

  test("a hundred concurrent nudges deliver a command once", async () => {
    const device = await node.device();
    const socket = await online(node, device);
    const commandId = await node.queue(device);
    node.notifier.nudge(Array.from({ length: 100 }, () => device.deviceId));
    for (let count = 0; count < 100; count += 1) node.notifier.nudge([device.deviceId]);
    await socket.next("command");
    socket.say("ack", { commandId, status: "succeeded" });
    await socket.next("ack_ok");
    expect(socket.frames).toEqual([]);
    socket.end();
  });
});

test("a command that was sent to a broken session is redelivered after the next hello", async () => {
  const device = await node.device();
  const first = await online(node, device);
  const commandId = await node.queue(device);
  await first.next("command");
  first.end();
  const second = await online(node, device);
  const { data } = await second.next("command");
  expect(data).toMatchObject({ command: { commandId }, delivery: { attempt: 2, redelivered: true } });
  second.say("ack", { commandId, status: "succeeded" });
  expect((await second.next("ack_ok")).data.result).toBe("applied");
  second.end();
});
