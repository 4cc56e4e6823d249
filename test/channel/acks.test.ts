// Every ack that names a command gets an ack_ok, so no agent repeats one forever; the readable parts of a damaged ack count.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../kit/checks/eventually.ts";
import { type AgentSocket, online, startNode, type TestDevice, type TestNode } from "./harness.ts";

let node: TestNode;
beforeAll(async () => {
  node = await startNode();
});
afterAll(() => node.close());

interface Row {
  readonly status: string;
  readonly ack_status: string | null;
  readonly output: unknown;
  readonly output_truncated: boolean;
  readonly failure_code: string | null;
  readonly attempt: number;
  readonly late: boolean;
}
const rowOf = async (commandId: string): Promise<Row | undefined> =>
  (
    await node.db.query<Row>(`select status, ack_status, output, output_truncated, failure_code, attempt, late from commands_now where command_id = $1`, [
      commandId,
    ])
  )[0];
const codesOf = async (commandId: string): Promise<readonly (string | null)[]> =>
  (
    await node.db.query<{ code: string | null }>(
      "select e.step->>'code' as code from commands_now c, json_array_elements(c.history) with ordinality as e(step, n) where c.command_id = $1 order by e.n",
      [commandId],
    )
  ).map(({ code }) => code);
const run = async (name: string): Promise<void> => {
  await node.commands.jobs.find((job) => job.name === name)?.run(new AbortController().signal);
};
/** Its deadline has just passed. */
const overdue = async (commandId: string): Promise<void> => {
  await node.commands.writeSent();
  await node.db.query("update command_queue set deadline_at = now() - interval '1 second' where command_id = $1", [commandId]);
  await run("commands.reaper");
};

const given = async (hello: object = {}, input: { readonly requiresAck?: boolean } = {}) => {
  const device = await node.device();
  const socket = await online(node, device, hello);
  const commandId = await node.queue(device, input);
  await socket.next("command");
  return { device, socket, commandId };
};
const answer = async (socket: AgentSocket, data: object) => {
  const id = socket.say("ack", data);
  const { ref, data: result } = await socket.next("ack_ok");
  expect(ref).toBe(id);
  return result;
};

describe("a damaged ack", () => {
  test.each(["perhaps", "constructor", "__proto__", "toString", "hasOwnProperty"])(
    "with the word %j is refused once and for all; the command counts as acknowledged, and what is said later counts",
    async (status) => {
      const { socket, commandId } = await given();
      expect(await answer(socket, { commandId, status })).toEqual({ commandId, status: "acknowledged", result: "refused", code: "ACK_STATUS_UNKNOWN" });
      expect(await rowOf(commandId)).toMatchObject({ status: "acknowledged", ack_status: status });
      expect(await codesOf(commandId)).toContain("ACK_STATUS_UNKNOWN");
      expect(await answer(socket, { commandId, status: "succeeded" })).toMatchObject({ status: "succeeded", result: "applied" });
      socket.end();
    },
  );

  test.each([
    ["progress beyond its bounds", { status: "succeeded", progress: { pct: 150 }, output: { n: 1 } }, { output: { n: 1 }, output_truncated: false }],
    ["a time that is a number", { status: "succeeded", startedAt: 17 }, { output: null, output_truncated: false }],
    ["a code that is too long", { status: "succeeded", code: "x".repeat(65) }, { output: null, output_truncated: false }],
    ["an output that no database keeps", { status: "succeeded", output: "a\u0000b" }, { output: null, output_truncated: true }],
    ["an output of broken Unicode", { status: "succeeded", output: { text: "\ud800" } }, { output: null, output_truncated: true }],
    ["an output of ten thousand values", { status: "succeeded", output: Array.from({ length: 10_001 }, () => 0) }, { output: null, output_truncated: true }],
  ])("with %s ends the command with its status and is kept without the invalid part", async (_, data, kept) => {
    const { socket, commandId } = await given();
    expect(await answer(socket, { commandId, ...data })).toEqual({ commandId, status: "succeeded", result: "refused", code: "VALIDATION_FAILED" });
    expect(await rowOf(commandId)).toMatchObject({ status: "succeeded", ...kept });
    expect(await answer(socket, { commandId, ...data })).toMatchObject({ result: "refused" });
    socket.end();
  });

  test.each([{ status: 7 }, { status: "" }, { status: "x".repeat(33) }, { status: "\u0000" }, {}])("with %j as its status is refused too", async (data) => {
    const { socket, commandId } = await given();
    expect(await answer(socket, { commandId, ...data })).toMatchObject({ status: "acknowledged", result: "refused", code: "ACK_STATUS_UNKNOWN" });
    socket.end();
  });

  test("never ends the session, however often it comes", async () => {
    const { socket, commandId } = await given();
    for (let count = 0; count < 10; count += 1) await answer(socket, { commandId, status: "running", progress: "half" });
    expect(socket.isOpen()).toBe(true);
    socket.end();
  });

  test("for an unknown command is answered as unknown", async () => {
    const socket = await online(node, await node.device());
    expect(await answer(socket, { commandId: "cmd_nobody", status: "perhaps" })).toEqual({ commandId: "cmd_nobody", status: null, result: "unknown" });
    socket.end();
  });

  test("that names no command gets an error frame", async () => {
    const socket = await online(node, await node.device());
    const id = socket.say("ack", { status: "succeeded" });
    expect(await socket.next("error")).toMatchObject({ ref: id, data: { code: "VALIDATION_FAILED" } });
    socket.end();
  });

  test("with an output beyond the largest frame keeps the beginning of the output, and the session continues", async () => {
    const { socket, commandId } = await given();
    expect(await answer(socket, { commandId, status: "succeeded", output: "x".repeat(200_000) })).toMatchObject({ status: "succeeded", result: "applied" });
    expect(await rowOf(commandId)).toMatchObject({ output: expect.stringMatching(/^x{60000}/), output_truncated: true });
    expect(socket.isOpen()).toBe(true);
    socket.end();
  });

  test("with a value that only the database rejects is kept without that value", async () => {
    const { socket, commandId } = await given();
    await node.db.query("alter table commands add constraint no_seven check (output is distinct from '7'::jsonb)");
    expect(await answer(socket, { commandId, status: "failed", output: 7 })).toEqual({
      commandId,
      status: "failed",
      result: "refused",
      code: "INTERNAL_ERROR",
    });
    await node.db.query("alter table commands drop constraint no_seven");
    expect(await rowOf(commandId)).toMatchObject({ status: "failed", output: null, output_truncated: true });
    expect(node.complaints).not.toEqual([]);
    socket.end();
  });
});

test("every frame that fails in the gateway is answered and logged", async () => {
  const own = await startNode();
  const socket = await online(own, await own.device());
  await own.db.query("alter table device_presence rename to presence_away");
  const id = socket.say("goodbye", { reason: "restart" });
  expect(await socket.next("error")).toMatchObject({ ref: id, data: { code: "INTERNAL_ERROR", retryable: true } });
  expect(own.complaints).not.toEqual([]);
  await own.db.query("alter table presence_away rename to device_presence");
  socket.end();
  await own.close();
});

describe("a command that asks for no ack", () => {
  test.each(["received", "succeeded", "failed", "perhaps"])("stays delivered after an ack of %j", async (status) => {
    const { socket, commandId } = await given({}, { requiresAck: false });
    const { result } = await answer(socket, { commandId, status });
    expect(result).toBe(status === "perhaps" ? "refused" : "duplicate");
    expect(await rowOf(commandId)).toMatchObject({ status: "delivered" });
    await eventually(async () => expect(await rowOf(commandId)).toMatchObject({ status: "delivered", failure_code: null }));
    socket.end();
  });
});

/** Announces only its journal, takes one command at a time and sends one final ack for each. */
const SIMPLE = { capabilities: ["journal.v1"], maxInFlight: 1 };
const again = async (device: TestDevice) => online(node, device, SIMPLE);

describe("an agent without inflight.v1", () => {
  test("has not lost a command that it does not list: its final ack counts", async () => {
    const { device, socket, commandId } = await given(SIMPLE);
    await answer(socket, { commandId, status: "running" });
    socket.end();
    const next = await again(device);
    expect(await rowOf(commandId)).toMatchObject({ status: "running", attempt: 1 });
    expect(await answer(next, { commandId, status: "succeeded" })).toMatchObject({ result: "applied", status: "succeeded" });
    next.end();
  });

  test("gets a command that it never acknowledged again in its next session", async () => {
    const { device, socket, commandId } = await given(SIMPLE);
    socket.end();
    const next = await again(device);
    expect((await next.next("command")).data).toMatchObject({ command: { commandId }, delivery: { attempt: 2, redelivered: true } });
    next.end();
  });

  test("that lists what it holds has lost every other command", async () => {
    const { device, socket, commandId } = await given({ ...SIMPLE, capabilities: ["journal.v1", "inflight.v1"] });
    await answer(socket, { commandId, status: "running" });
    socket.end();
    const next = await online(node, device, { ...SIMPLE, capabilities: ["journal.v1", "inflight.v1"] });
    expect((await next.next("command")).data.command.commandId).toBe(commandId);
    expect(await codesOf(commandId)).toContain("AGENT_LOST_STATE");
    next.end();
  });

  test("gets no second command before it acknowledges the first, which is redelivered before any other", async () => {
    const { device, socket, commandId } = await given(SIMPLE);
    const second = await node.queue(device);
    await node.db.query("update command_queue set priority = 9 where command_id = $1", [second]);
    await overdue(commandId);
    expect(await rowOf(commandId)).toMatchObject({ status: "queued" });
    node.notifier.nudge([device.deviceId]);
    socket.say("heartbeat", { status: "online" });
    await socket.next("heartbeat_ack");
    expect(await rowOf(second)).toMatchObject({ status: "queued" });
    await node.db.query("update command_queue set available_at = now() - interval '1 second' where command_id = $1", [commandId]);
    node.notifier.nudge([device.deviceId]);
    expect((await socket.next("command")).data).toMatchObject({ command: { commandId }, delivery: { attempt: 2 } });
    // The redelivered command is running, and so the agent answers.
    expect(await answer(socket, { commandId, status: "running" })).toMatchObject({ status: "running", result: "applied" });
    await answer(socket, { commandId, status: "succeeded" });
    expect((await socket.next("command")).data.command.commandId).toBe(second);
    socket.end();
  });

  test("that works longer than the redeliveries last makes the command undeliverable, and its late result replaces that", async () => {
    const { socket, commandId } = await given(SIMPLE);
    await node.commands.writeSent();
    await node.db.query("update command_queue set attempt = max_attempts where command_id = $1", [commandId]);
    await overdue(commandId);
    expect(await rowOf(commandId)).toMatchObject({ status: "undeliverable", failure_code: "DELIVERY_ATTEMPTS_EXCEEDED" });
    expect(await answer(socket, { commandId, status: "succeeded", output: { n: 1 } })).toMatchObject({ status: "succeeded", result: "applied" });
    expect(await rowOf(commandId)).toMatchObject({ status: "succeeded", late: true, output: { n: 1 } });
    socket.end();
  });

  test.each([
    [0, 1],
    [-5, 1],
    [1.9, 1],
    [33, 32],
    [1e300, 32],
  ])("that takes %d commands at once gets %d", async (maxInFlight, given_) => {
    const device = await node.device();
    const socket = await online(node, device, { ...SIMPLE, maxInFlight });
    const [row] = await node.db.query("select max_in_flight from device_presence where device_id = $1", [device.deviceId]);
    expect(row).toEqual({ max_in_flight: given_ });
    socket.end();
  });
});
