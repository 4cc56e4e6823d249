// Cancelling a command that the agent cannot stop: the command continues visibly, and its canceller learns that at once.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contract } from "../../protocol/index.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { callable, inside, userOf } from "../kit/gateway/call.ts";
import { type AgentSocket, online, startNode, type TestDevice, type TestNode } from "./harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

const CAN = { capabilities: ["journal.v1", "inflight.v1", "cancel.v1"] };
const CANNOT = { capabilities: ["journal.v1"] };

const rowOf = async (commandId: string) =>
  (await node.db.query<{ status: string; failure_code: string | null }>("select status, failure_code from commands_now where command_id = $1", [commandId]))[0];
const codesOf = async (commandId: string): Promise<readonly (string | null)[]> =>
  (
    await node.db.query<{ code: string | null }>(
      "select e.step->>'code' as code from commands_now c, json_array_elements(c.history) with ordinality as e(step, n) where c.command_id = $1 order by e.n",
      [commandId],
    )
  ).map(({ code }) => code);
const cancel = async ({ tenantId }: TestDevice, commandId: string) =>
  callable(contract.commands, node.commands.handlers, node.db).cancel(inside(tenantId, userOf("u")), { commandId: commandId as `cmd_${string}`, force: false });
const pushed = async (hello: object, word: string | null = "running") => {
  const device = await node.device();
  const socket = await online(node, device, hello);
  const commandId = await node.queue(device);
  await socket.next("command");
  if (word !== null) await acked(socket, { commandId, status: word });
  return { device, socket, commandId };
};
const acked = async (socket: AgentSocket, data: object) => {
  socket.say("ack", data);
  return (await socket.next("ack_ok")).data;
};
/** Resolves once every earlier frame has been handled. */
const settled = async (socket: AgentSocket): Promise<void> => {
  socket.say("heartbeat", { status: "online" });
  await socket.next("heartbeat_ack");
};

describe("an agent that answers a cancel frame with UNSUPPORTED_OP", () => {
  test.each([
    ["running", "running"],
    ["received", "acknowledged"],
    [null, "sent"],
  ])("continues the command that it acknowledged with %j", async (word, status) => {
    const { device, socket, commandId } = await pushed(CAN, word);
    expect((await cancel(device, commandId)).status).toBe("canceling");
    const { id, data } = await socket.next("cancel");
    expect(data).toMatchObject({ commandId });
    socket.raw(JSON.stringify({ op: "error", id: "e1", ref: id, data: { code: "UNSUPPORTED_OP", error: "There is no op cancel.", retryable: false } }));
    await eventually(async () => expect(await rowOf(commandId)).toMatchObject({ status }));
    expect(await codesOf(commandId)).toContain("UNSUPPORTED_OP");
    expect(await acked(socket, { commandId, status: "succeeded" })).toMatchObject({ status: "succeeded", result: "applied" });
    socket.end();
  });

  test("refers to that frame only, not to another frame, another session or a later cancel", async () => {
    const [{ device, socket, commandId }, other] = [await pushed(CAN), await pushed(CAN)];
    await cancel(device, commandId);
    const { id } = await socket.next("cancel");
    for (const [from, ref, code] of [
      [socket, "s1", "UNSUPPORTED_OP"],
      [socket, id, "VALIDATION_FAILED"],
      [other.socket, id, "UNSUPPORTED_OP"],
    ] as const) {
      from.raw(JSON.stringify({ op: "error", id: "e1", ref, data: { code } }));
      await settled(from);
    }
    expect(await rowOf(commandId)).toMatchObject({ status: "canceling" });
    expect(await acked(socket, { commandId, status: "canceled" })).toMatchObject({ status: "canceled" });
    socket.raw(JSON.stringify({ op: "error", id: "e2", ref: id, data: { code: "UNSUPPORTED_OP" } }));
    await settled(socket);
    expect(await rowOf(commandId)).toEqual({ status: "canceled", failure_code: null });
    socket.end();
    other.socket.end();
  });
});

describe("an agent without cancel.v1", () => {
  test("gets no cancel frame: the cancellation is rejected at once, and the result counts", async () => {
    const { device, socket, commandId } = await pushed(CANNOT);
    await cancel(device, commandId);
    await eventually(async () => expect(await rowOf(commandId)).toMatchObject({ status: "running" }));
    expect(await codesOf(commandId)).toContain("CANCEL_UNSUPPORTED");
    expect(socket.frames).toEqual([]);
    expect(await acked(socket, { commandId, status: "failed" })).toMatchObject({ status: "failed", result: "applied" });
    socket.end();
  });

  test("that was offline continues the command that it works on", async () => {
    const { device, socket, commandId } = await pushed(CANNOT);
    socket.end();
    await cancel(device, commandId);
    const next = await online(node, device, CANNOT);
    expect(await rowOf(commandId)).toMatchObject({ status: "running" });
    expect(next.frames.map(({ op }) => op)).toEqual([]);
    next.end();
  });

  test("that was offline does not get a command that was cancelled before its first ack", async () => {
    const { device, socket, commandId } = await pushed(CANNOT, null);
    socket.end();
    await eventually(() => expect(node.channel.stats.ready).toBeLessThanOrEqual(1));
    await cancel(device, commandId);
    const next = await online(node, device, CANNOT);
    await eventually(async () => expect(await rowOf(commandId)).toEqual({ status: "canceled", failure_code: "CANCEL_UNCONFIRMED" }));
    await settled(next);
    expect(next.frames).toEqual([]);
    next.end();
  });
});

describe("a pending cancellation when a new session begins", () => {
  test("is sent again to an agent that has cancel.v1 and did not list the command", async () => {
    const { device, socket, commandId } = await pushed({ capabilities: ["journal.v1", "cancel.v1"] });
    await cancel(device, commandId);
    await socket.next("cancel");
    socket.end();
    const next = await online(node, device, { capabilities: ["journal.v1", "cancel.v1"] });
    expect((await next.next("cancel")).data).toMatchObject({ commandId });
    expect(await acked(next, { commandId, status: "canceled" })).toMatchObject({ status: "canceled", result: "applied" });
    next.end();
  });

  test("is sent once, as action stop, to an agent that listed the command", async () => {
    const { device, socket, commandId } = await pushed(CAN);
    await cancel(device, commandId);
    await socket.next("cancel");
    socket.end();
    const next = await online(node, device, { ...CAN, inFlight: [{ commandId, status: "running" }] });
    await settled(next);
    expect(next.frames).toEqual([]);
    expect(await rowOf(commandId)).toMatchObject({ status: "canceling" });
    next.end();
  });
});
