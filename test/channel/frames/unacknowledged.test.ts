// Frames that get lost inside a connection: frame numbers count them, and the answer to a heartbeat asks for missing acks.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { type AgentSocket, online, startNode, type TestNode } from "../harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

const beat = async (socket: AgentSocket, inFlight?: readonly string[]) => {
  socket.say("heartbeat", { status: "online", ...(inFlight === undefined ? {} : { inFlight }) });
  return (await socket.next("heartbeat_ack")).data.resend;
};
const pushed = async (input: { readonly requiresAck?: boolean } = {}) => {
  const device = await node.device();
  const socket = await online(node, device);
  const commandId = await node.queue(device, input);
  await socket.next("command");
  return { device, socket, commandId };
};

describe("a command that a heartbeat does not list", () => {
  test("is asked for once it was sent long ago, and no longer after its final ack", async () => {
    const { socket, commandId } = await pushed();
    expect(await beat(socket, [])).toBeUndefined();
    node.clock.advance(20_000);
    expect(await beat(socket, [commandId])).toBeUndefined();
    expect(await beat(socket)).toBeUndefined();
    expect(await beat(socket, [])).toEqual([commandId]);
    socket.say("ack", { commandId, status: "running" });
    await socket.next("ack_ok");
    expect(await beat(socket, [])).toEqual([commandId]);
    socket.say("ack", { commandId, status: "succeeded" });
    await socket.next("ack_ok");
    expect(await beat(socket, [])).toBeUndefined();
    socket.end();
  });

  test("is asked for three times, not forever", async () => {
    const { socket, commandId } = await pushed();
    node.clock.advance(20_000);
    const asked = [await beat(socket, []), await beat(socket, []), await beat(socket, []), await beat(socket, [])];
    expect(asked).toEqual([[commandId], [commandId], [commandId], undefined]);
    socket.end();
  });

  test("is not asked for if it needs no ack", async () => {
    const { socket } = await pushed({ requiresAck: false });
    node.clock.advance(20_000);
    expect(await beat(socket, [])).toBeUndefined();
    socket.end();
  });

  test("stays unacknowledged in the next session if its hello named it", async () => {
    const { device, socket, commandId } = await pushed();
    socket.end();
    const next = await online(node, device, { inFlight: [{ commandId, status: "running" }] });
    node.clock.advance(20_000);
    expect(await beat(next, [])).toEqual([commandId]);
    next.end();
  });
});

describe("frame numbers", () => {
  const heartbeat = (id: string) => JSON.stringify({ op: "heartbeat", id, data: { status: "online" } });

  test("count gaps and repeats, and a repeated heartbeat is ignored", async () => {
    const socket = await online(node, await node.device());
    const { frameGaps, frameRepeats, heartbeats } = node.channel.stats;
    for (const id of ["1", "2", "5", "5", "6"]) socket.raw(heartbeat(id));
    const answered: string[] = [];
    await eventually(async () => {
      answered.push((await socket.next("heartbeat_ack")).ref ?? "");
      expect(answered.at(-1)).toBe("6");
    });
    expect(answered).toEqual(["1", "2", "5", "6"]);
    const { stats } = node.channel;
    expect([stats.frameGaps - frameGaps, stats.frameRepeats - frameRepeats, stats.heartbeats - heartbeats]).toEqual([2, 1, 4]);
    socket.end();
  });

  test("do not keep a repeated ack from being answered again", async () => {
    const { socket, commandId } = await pushed();
    const ack = JSON.stringify({ op: "ack", id: "7", data: { commandId, status: "succeeded" } });
    socket.raw(ack);
    expect((await socket.next("ack_ok")).data.result).toBe("applied");
    socket.raw(ack);
    expect((await socket.next("ack_ok")).data.result).toBe("duplicate");
    socket.end();
  });
});
