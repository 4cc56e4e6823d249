// The queue on a real database: what callers, sessions, pollers and several nodes can rely on.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Db } from "../../server/platform/db.ts";
import { addDevice, age, as, asOperator, connect, createRoom, type Device, disconnect, openTestDb, runJob } from "./commands-kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(async () => {
  await db.close();
});

const setUp = async (settings: Parameters<typeof createRoom>[1] = {}) => {
  const room = createRoom(db, settings);
  const device = await addDevice(db);
  return { room, device, operator: asOperator(room, device) };
};

const ackOf =
  (room: ReturnType<typeof createRoom>, device: Device) =>
  (commandId: string, status: string, more: object = {}) =>
    room.delivery.ack(device, { commandId, status, ...more });
const claimOf =
  (room: ReturnType<typeof createRoom>, { deviceId }: Device, epoch: number) =>
  async (maxInFlight = 8) =>
    (await room.delivery.claim({ deviceId, epoch, maxInFlight })).commands.map(({ command }) => command.commandId);
const outboxOf = (commandId: string) =>
  db.query<{ type: string; data: object }>(`select type, data from outbox_events where subject_id = $1 order by position`, [commandId]);

describe("queueing", () => {
  test("a command is queued with the figures of its type, told and nudged", async () => {
    const { room, device, operator } = await setUp();
    const command = await operator.queue({ type: "restart-app", payload: { appId: "app_1" } });
    expect(command).toMatchObject({
      status: "queued",
      lane: "app:app_1",
      attempts: 0,
      requiresAck: true,
      executionTimeoutSeconds: 900,
      createdBy: "user:usr_1",
    });
    expect(Date.parse(command.expiresAt ?? "") - Date.parse(command.issuedAt)).toBe(3_600_000);
    expect(command.deadlineAt).toBe(command.expiresAt);
    expect(await operator.get(command.commandId)).toEqual(command);
    expect(room.recorded.nudges).toEqual([device.deviceId]);
    expect(room.recorded.hints.map(({ event }) => event.type)).toEqual(["command.queued"]);
  });

  test("a command without an end is delivered, and still has a deadline in the table", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const { commandId, expiresAt } = await operator.queue({ expiresAt: null });
    expect(expiresAt).toBeNull();
    expect(await db.query(`select 1 from commands where command_id = $1 and deadline_at = 'infinity'`, [commandId])).toHaveLength(1);
    await runJob(room, "commands.reaper");
    expect(await claimOf(room, device, epoch)()).toEqual([commandId]);
  });

  test("50 equal requests at once, over two nodes, make one command and 50 equal answers", async () => {
    const { room, device, operator } = await setUp();
    const other = asOperator(createRoom(db, { nodeId: "node-b" }), device);
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        (index % 2 ? other : operator).run("queue", { deviceId: device.deviceId, type: "echo", payload: { n: 1 } }, "same"),
      ),
    );
    expect(new Set(answers.map(({ result }) => JSON.stringify(result))).size).toBe(1);
    expect(answers.filter(({ reply }) => reply.replayed !== true)).toHaveLength(1);
    expect((await operator.run("list", { deviceId: device.deviceId })).result.total).toBe(1);
    expect(room.recorded.nudges.length).toBeLessThanOrEqual(1);
  });

  test("a repeated request answers as at first, whatever has become of the command", async () => {
    const { device, operator } = await setUp();
    const first = await operator.queue({ notBefore: new Date(Date.now() + 60_000).toISOString() }, "key");
    await operator.cancel(first.commandId);
    await db.query(`update devices set status = 'offline' where device_id = $1`, [device.deviceId]);
    const again = await operator.run("queue", { deviceId: device.deviceId, type: "echo", notBefore: first.notBefore }, "key");
    expect(again.result).toEqual(first);
    expect(again.reply.replayed).toBe(true);
  });

  test("the same key with another body is refused; keys of other callers are their own", async () => {
    const { device, operator } = await setUp();
    const first = await operator.queue({}, "key");
    await expect(operator.queue({ payload: { other: true } }, "key")).rejects.toMatchObject({ code: "IDEMPOTENCY_KEY_REUSED" });
    const other = await asOperator(createRoom(db), device, as("admin")).queue({ payload: { other: true } }, "key");
    expect(other.commandId).not.toBe(first.commandId);
  });

  test("a full queue refuses, an emptied one accepts, and neighbours in the same batch are not touched", async () => {
    const room = createRoom(db, { settings: { maxOpenPerDevice: 3 } });
    const [device, neighbour] = [await addDevice(db), await addDevice(db)];
    const [mine, theirs] = [asOperator(room, device), asOperator(room, neighbour)];
    const results = await Promise.allSettled([...Array.from({ length: 5 }, () => mine.queue()), theirs.queue()]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled", "rejected", "rejected", "fulfilled"]);
    await expect(mine.queue()).rejects.toMatchObject({ code: "COMMAND_QUEUE_FULL", details: { deviceId: device.deviceId, limit: 3 } });
    expect((await mine.run("purge", { deviceId: device.deviceId })).result.canceled).toBe(3);
    expect((await mine.queue()).status).toBe("queued");
  });

  test("a tenant's limit counts over its devices", async () => {
    const room = createRoom(db, { settings: { maxOpenPerTenant: 2 } });
    const device = await addDevice(db);
    const other = await addDevice(db, { tenantId: device.tenantId });
    await asOperator(room, device).queue();
    await asOperator(room, other).queue();
    await expect(asOperator(room, device).queue()).rejects.toMatchObject({ code: "COMMAND_QUEUE_FULL", details: { scope: "tenant" } });
  });

  test.each([
    ["an unknown device", { deviceId: "dev_nobody" }, "DEVICE_NOT_FOUND"],
    ["a reserved type", { type: "svc.rotate-secret" }, "COMMAND_TYPE_UNKNOWN"],
    ["a payload that does not fit its type", { type: "restart-app", payload: { appId: 7 } }, "COMMAND_PAYLOAD_INVALID"],
    ["a payload that is too large", { payload: { text: "x".repeat(65_536) } }, "COMMAND_PAYLOAD_INVALID"],
    ["a payload that is too deep", { payload: JSON.parse(`${'{"a":'.repeat(12)}1${"}".repeat(12)}`) as object }, "COMMAND_PAYLOAD_INVALID"],
    ["an end in the past", { expiresAt: "2020-01-01T00:00:00Z" }, "VALIDATION_FAILED"],
    ["two ends", { expiresAt: null, ttlSeconds: 60 }, "VALIDATION_FAILED"],
    ["a key that cannot be one", { idempotencyKey: "ü" }, "IDEMPOTENCY_KEY_INVALID"],
  ])("%s is refused", async (_, input, code) => {
    const { operator } = await setUp();
    await expect(operator.queue(input)).rejects.toMatchObject({ code });
  });

  test("another tenant's device is as unknown as one that does not exist", async () => {
    const { operator } = await setUp();
    const foreign = await addDevice(db);
    await expect(operator.queue({ deviceId: foreign.deviceId })).rejects.toMatchObject({ code: "DEVICE_NOT_FOUND", details: { deviceId: foreign.deviceId } });
  });

  test("a shell command needs its own permission", async () => {
    const { room, device, operator } = await setUp();
    await expect(operator.queue({ type: "shell", payload: { command: "id" } })).rejects.toMatchObject({
      code: "FORBIDDEN",
      details: { requiredPermission: "device:shell" },
    });
    expect((await asOperator(room, device, as("admin")).queue({ type: "shell", payload: { command: "id" } })).status).toBe("queued");
  });

  test("ifOffline: fail refuses for an absent device only", async () => {
    const room = createRoom(db);
    const absent = await addDevice(db, { status: "offline" });
    await expect(asOperator(room, absent).queue({ ifOffline: "fail" })).rejects.toMatchObject({ code: "DEVICE_OFFLINE" });
    expect((await asOperator(room, await addDevice(db)).queue({ ifOffline: "fail" })).status).toBe("queued");
  });
});

describe("claims", () => {
  test("only the newest epoch claims, even when the older one asks at the same moment", async () => {
    const { room, device, operator } = await setUp();
    const old = await connect(db, device);
    await operator.queue();
    const current = await connect(db, device, "node-b");
    const claims = await Promise.all([claimOf(room, device, old)(), claimOf(createRoom(db, { nodeId: "node-b" }), device, current)()]);
    expect(claims.map((ids) => ids.length)).toEqual([0, 1]);
  });

  test("the claim matches the rules: sent, counted, due for its ack in 20 s", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const { commandId } = await operator.queue();
    await claimOf(room, device, epoch)();
    const command = await operator.get(commandId);
    expect(command).toMatchObject({ status: "sent", attempts: 1 });
    expect(Date.parse(command.deadlineAt ?? "") - Date.parse(command.sentAt ?? "")).toBe(20_000);
  });

  test("a lane runs one after the other, and nothing outside it waits", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const claim = claimOf(room, device, epoch);
    const [a1, a2, b1, free] = [
      await operator.queue({ lane: "a" }),
      await operator.queue({ lane: "a", priority: 9 }),
      await operator.queue({ lane: "b" }),
      await operator.queue(),
    ].map(({ commandId }) => commandId);
    expect(await claim()).toEqual([a1, b1, free]);
    expect(await claim()).toEqual([]);
    expect((await operator.timeline(a2 ?? "")).blockedBy).toMatchObject({ kind: "lane", commandId: a1 });
    await ackOf(room, device)(a1 ?? "", "succeeded");
    expect(room.recorded.freed).toEqual([device.deviceId]);
    expect(await claim()).toEqual([a2]);
  });

  test("higher priority goes first and what is in flight uses up the credit", async () => {
    const { room, device, operator } = await setUp();
    const claim = claimOf(room, device, await connect(db, device));
    const low = await operator.queue({ priority: 1 });
    const high = await operator.queue({ priority: 9 });
    expect(await claim(1)).toEqual([high.commandId]);
    expect(await claim(1)).toEqual([]);
    expect(await claim(2)).toEqual([low.commandId]);
  });

  test("a claim says whether it left something, so that only then an end leads to the next", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const claim = async (maxInFlight: number) => {
      const { commands, left } = await room.delivery.claim({ deviceId: device.deviceId, epoch, maxInFlight });
      return [commands.length, left];
    };
    expect(await claim(8)).toEqual([0, false]);
    await operator.queue({ lane: "a" });
    await operator.queue({ lane: "a" });
    await operator.queue();
    expect(await claim(1), "no credit").toEqual([1, true]);
    expect(await claim(8), "the lane is taken").toEqual([1, true]);
    await operator.queue({ notBefore: new Date(Date.now() + 60_000).toISOString() });
    expect(await claim(8), "not yet due").toEqual([0, true]);
  });

  test("many devices at once each get their own", async () => {
    const room = createRoom(db);
    const devices = await Promise.all(Array.from({ length: 20 }, () => addDevice(db)));
    const epochs = await Promise.all(devices.map((device) => connect(db, device)));
    const queued = await Promise.all(devices.map((device) => asOperator(room, device).queue()));
    const claimed = await Promise.all(devices.map((device, index) => claimOf(room, device, epochs[index] ?? 0)()));
    expect(claimed).toEqual(queued.map(({ commandId }) => [commandId]));
  });

  test("two nodes that claim for one session at once never take the same command", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    await Promise.all(Array.from({ length: 20 }, () => operator.queue()));
    const other = createRoom(db, { nodeId: "node-b" });
    const claimed = (await Promise.all(Array.from({ length: 8 }, (_, index) => claimOf(index % 2 ? other : room, device, epoch)(4)))).flat();
    expect(new Set(claimed).size).toBe(claimed.length);
  });

  test("a refused write costs no attempt and gives the command back", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const { commandId } = await operator.queue();
    await claimOf(room, device, epoch)();
    room.recorded.nudges.length = 0;
    await room.delivery.refused(device.deviceId, epoch, [commandId]);
    expect(await operator.get(commandId)).toMatchObject({ status: "queued", attempts: 0 });
    expect(room.recorded.nudges, "a full socket is not asked to try again at once").toEqual([]);
  });

  test("a command that asks for no ack ends with its write", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const [quiet, loud] = [await operator.queue({ requiresAck: false }), await operator.queue()];
    await claimOf(room, device, epoch)();
    await room.delivery.delivered(device.deviceId, epoch, [quiet.commandId, loud.commandId]);
    expect((await operator.get(quiet.commandId)).status).toBe("delivered");
    expect((await operator.get(loud.commandId)).status).toBe("sent");
    expect((await outboxOf(quiet.commandId)).map(({ type }) => type)).toEqual(["command.completed"]);
  });
});

describe("acks", () => {
  const delivered = async () => {
    const given = await setUp();
    const epoch = await connect(db, given.device);
    const { commandId } = await given.operator.queue();
    await claimOf(given.room, given.device, epoch)();
    return { ...given, commandId, ack: ackOf(given.room, given.device) };
  };

  test("received, running and succeeded in one burst are each recorded, in order", async () => {
    const { operator, commandId, ack } = await delivered();
    const answers = await Promise.all([ack(commandId, "received"), ack(commandId, "RUNNING"), ack(commandId, "ok", { output: { n: 1 } })]);
    expect(answers.map(({ status, result }) => [status, result])).toEqual([
      ["acknowledged", "applied"],
      ["running", "applied"],
      ["succeeded", "applied"],
    ]);
    const { events, blockedBy } = await operator.timeline(commandId);
    expect(events.map(({ to }) => to)).toEqual(["queued", "sent", "acknowledged", "running", "succeeded"]);
    expect(blockedBy.kind).toBe("none");
    expect(await operator.get(commandId)).toMatchObject({ ack: { status: "ok", output: { n: 1 } }, deadlineAt: null });
    expect(await outboxOf(commandId)).toMatchObject([{ type: "command.completed", data: { commandId, previous: "running", status: "succeeded" } }]);
  });

  test("the first final word wins; the same again is a duplicate, another a conflict", async () => {
    const { operator, commandId, ack } = await delivered();
    expect((await ack(commandId, "succeeded")).result).toBe("applied");
    expect((await ack(commandId, "succeeded")).result).toBe("duplicate");
    expect(await ack(commandId, "failed")).toEqual({ commandId, status: "succeeded", result: "conflict" });
    expect((await operator.get(commandId)).status).toBe("succeeded");
    expect(await outboxOf(commandId)).toHaveLength(1);
  });

  test("a result that comes late replaces giving up, once, and is told as late", async () => {
    const { room, operator, commandId, ack } = await delivered();
    await ack(commandId, "received");
    await age(db, commandId, 901);
    await runJob(room, "commands.reaper");
    expect((await operator.get(commandId)).status).toBe("timed_out");
    expect(room.recorded.cancels).toMatchObject([{ commandId, reason: "EXECUTION_TIMED_OUT" }]);
    expect((await ack(commandId, "succeeded")).result).toBe("applied");
    expect(await operator.get(commandId)).toMatchObject({ status: "succeeded", late: true, failureCode: null });
    expect((await outboxOf(commandId)).map(({ type }) => type)).toEqual(["command.timed_out", "command.late_result"]);
  });

  test("unknown ids and other devices' commands are unknown alike, and nothing changes", async () => {
    const { room, operator, commandId } = await delivered();
    const stranger = await addDevice(db);
    expect(await room.delivery.ack(stranger, { commandId, status: "failed" })).toEqual({ commandId, status: null, result: "unknown" });
    expect((await operator.get(commandId)).status).toBe("sent");
    await expect(operator.run("ack", { deviceId: stranger.deviceId, commandId, status: "failed" })).rejects.toMatchObject({ code: "COMMAND_NOT_FOUND" });
  });

  test("an unknown status shows that the agent has the command, and is refused; over REST with the accepted ones", async () => {
    const { device, operator, commandId, ack } = await delivered();
    expect(await ack(commandId, "whatever")).toEqual({ commandId, status: "acknowledged", result: "refused", code: "ACK_STATUS_UNKNOWN" });
    await expect(operator.run("ack", { deviceId: device.deviceId, commandId, status: "perhaps" })).rejects.toMatchObject({
      code: "VALIDATION_FAILED",
      details: { accepted: expect.arrayContaining(["succeeded"]) as unknown },
    });
    expect((await operator.get(commandId)).status).toBe("acknowledged");
    expect(await ack(commandId, "succeeded")).toMatchObject({ status: "succeeded", result: "applied" });
  });

  test("one ack that cannot be stored does not fail its neighbours", async () => {
    const { room, device, operator, commandId, ack } = await delivered();
    const other = await operator.queue();
    await claimOf(room, device, 1)();
    const [bad, good] = await Promise.allSettled([ack(commandId, "succeeded", { output: "\u0000" }), ack(other.commandId, "succeeded")]);
    expect([bad?.status, good?.status]).toEqual(["rejected", "fulfilled"]);
    expect((await operator.get(other.commandId)).status).toBe("succeeded");
  });

  test("a long output is cut and says so", async () => {
    const { operator, commandId, ack } = await delivered();
    await ack(commandId, "succeeded", { output: `${"é".repeat(40_000)}\u{1f600}` });
    const command = await operator.get(commandId);
    expect(command.outputTruncated).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(command.ack?.output))).toBeLessThanOrEqual(65_536);
  });

  test("acks of two nodes for one command are applied one after the other", async () => {
    const { room, device, commandId } = await delivered();
    const other = createRoom(db, { nodeId: "node-b" });
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, index) => ackOf(index % 2 ? other : room, device)(commandId, index % 3 ? "succeeded" : "failed")),
    );
    expect(results.filter(({ result }) => result === "applied")).toHaveLength(1);
  });
});

describe("cancelling", () => {
  test("a queued command is cancelled at once and never claimed", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const { commandId } = await operator.queue();
    expect((await operator.cancel(commandId, { reason: "mistake" })).status).toBe("canceled");
    expect(await claimOf(room, device, epoch)()).toEqual([]);
    expect(room.recorded.cancels).toEqual([]);
    expect((await outboxOf(commandId)).map(({ type }) => type)).toEqual(["command.canceled"]);
  });

  test.each(["sent", "acknowledged", "running"])("a command that is %s is asked back, with a deadline", async (state) => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const { commandId } = await operator.queue();
    await claimOf(room, device, epoch)();
    const ack = ackOf(room, device);
    if (state !== "sent") await ack(commandId, state === "running" ? "running" : "received");
    const asked = await operator.cancel(commandId, { reason: "enough" });
    expect(asked.status).toBe("canceling");
    expect(Date.parse(asked.deadlineAt ?? "") - Date.parse(asked.cancelRequestedAt ?? "")).toBe(60_000);
    expect(room.recorded.cancels).toMatchObject([{ deviceId: device.deviceId, commandId, reason: "enough", deadline: asked.deadlineAt }]);
    expect((await ack(commandId, "cancel_rejected")).status).toBe(state);
    await operator.cancel(commandId);
    expect((await ack(commandId, "canceled")).status).toBe("canceled");
  });

  test("force ends it without asking, and what the agent did after all is kept beside", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const { commandId } = await operator.queue();
    await claimOf(room, device, epoch)();
    expect(await operator.cancel(commandId, { force: true })).toMatchObject({ status: "canceled", failureCode: "CANCEL_UNCONFIRMED" });
    expect(room.recorded.cancels).toHaveLength(1);
    expect((await ackOf(room, device)(commandId, "succeeded", { output: 1 })).result).toBe("conflict");
    expect(await db.query(`select late_outcome->>'status' as status from commands where command_id = $1`, [commandId])).toEqual([{ status: "succeeded" }]);
  });

  test("an unanswered cancellation ends by its deadline", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const { commandId } = await operator.queue();
    await claimOf(room, device, epoch)();
    await operator.cancel(commandId);
    await age(db, commandId, 61);
    await runJob(room, "commands.reaper");
    expect(await operator.get(commandId)).toMatchObject({ status: "canceled", failureCode: "CANCEL_UNCONFIRMED" });
  });

  test("what has ended cannot be cancelled", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const { commandId } = await operator.queue();
    await claimOf(room, device, epoch)();
    await ackOf(room, device)(commandId, "succeeded");
    await expect(operator.cancel(commandId)).rejects.toMatchObject({ code: "COMMAND_ALREADY_FINAL", details: { status: "succeeded" } });
  });
});

describe("deadlines", () => {
  test("two nodes reap at once and each transition happens once", async () => {
    const { room, device, operator } = await setUp({ settings: { reaperBatch: 10 } });
    const other = createRoom(db, { nodeId: "node-b", settings: { reaperBatch: 10 } });
    const commands = await Promise.all(Array.from({ length: 60 }, () => operator.queue({ ttlSeconds: 60 })));
    await db.query(`update commands set expires_at = now() - interval '1 s', deadline_at = now() - interval '1 s' where device_id = $1`, [device.deviceId]);
    await Promise.all([runJob(room, "commands.reaper"), runJob(other, "commands.reaper"), runJob(room, "commands.reaper")]);
    await runJob(room, "commands.reaper");
    const ends = await db.query<{ count: number }>(
      `select count(*) from command_events e join commands c using (command_id) where c.device_id = $1 and e.to_status = 'expired' group by e.command_id`,
      [device.deviceId],
    );
    expect(ends).toEqual(commands.map(() => ({ count: 1 })));
    expect((await outboxOf(commands[0]?.commandId ?? "")).map(({ type }) => type)).toEqual(["command.expired"]);
  });

  test("what is not acknowledged goes out again after a pause, until its attempts are used up", async () => {
    const { room, device, operator } = await setUp();
    const claim = claimOf(room, device, await connect(db, device));
    const { commandId } = await operator.queue({ maxAttempts: 2 });
    await claim();
    await age(db, commandId, 21);
    await runJob(room, "commands.reaper");
    expect(await claim(), "not before its pause is over").toEqual([]);
    expect((await operator.timeline(commandId)).blockedBy.kind).toBe("window");
    await age(db, commandId, 25);
    const [again] = (await room.delivery.claim({ deviceId: device.deviceId, epoch: 1, maxInFlight: 8 })).commands;
    expect(again?.delivery).toMatchObject({ attempt: 2, redelivered: true });
    await age(db, commandId, 21);
    await runJob(room, "commands.reaper");
    expect(await operator.get(commandId)).toMatchObject({ status: "undeliverable", failureCode: "DELIVERY_ATTEMPTS_EXCEEDED" });
  });

  test("expiry while under way says so", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const { commandId } = await operator.queue({ ttlSeconds: 60 });
    await claimOf(room, device, epoch)();
    await age(db, commandId, 61);
    await runJob(room, "commands.reaper");
    expect(await operator.get(commandId)).toMatchObject({ status: "expired", failureCode: "EXPIRED_UNACKED" });
  });

  test("the database itself refuses an open command without a deadline", async () => {
    const { operator } = await setUp();
    const { commandId } = await operator.queue();
    await expect(db.query(`update commands set deadline_at = null where command_id = $1`, [commandId])).rejects.toThrow(/commands_open_has_deadline/);
  });
});

describe("polling", () => {
  test("a poll repeats what is not acknowledged without counting it again, and counts as life", async () => {
    const { room, device, operator } = await setUp();
    const [first, second] = [await operator.queue({ lane: "a" }), await operator.queue({ lane: "a" })];
    const polled = await operator.run("poll", { deviceId: device.deviceId });
    expect(polled.result.items.map(({ commandId, delivery }) => [commandId, delivery.attempt])).toEqual([
      [first.commandId, 1],
      [second.commandId, 1],
    ]);
    expect(polled.reply.headers["x-svc-poll-interval"]).toBe("30");
    expect(room.recorded.polls).toEqual([device.deviceId]);
    expect((await operator.poll()).map(({ delivery }) => delivery.attempt)).toEqual([1, 1]);
    await ackOf(room, device)(first.commandId, "received");
    expect((await operator.poll()).map(({ commandId }) => commandId)).toEqual([second.commandId]);
    await age(db, second.commandId, 61);
    expect((await operator.poll()).map(({ delivery }) => delivery.attempt)).toEqual([2]);
  });

  test("what travels over a socket is not polled, nor is what comes after it in its lane", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    await operator.queue({ lane: "a" });
    await claimOf(room, device, epoch)();
    await operator.queue({ lane: "a" });
    const free = await operator.queue();
    expect((await operator.poll()).map(({ commandId }) => commandId)).toEqual([free.commandId]);
  });

  test("the limit never takes a later command of a lane before an earlier one", async () => {
    const { operator } = await setUp();
    const first = await operator.queue({ lane: "a", priority: 1 });
    await operator.queue({ lane: "a", priority: 9 });
    expect((await operator.poll(1)).map(({ commandId }) => commandId)).toEqual([first.commandId]);
  });

  test("a polled command that asks for no ack has ended and is not polled again", async () => {
    const { operator } = await setUp();
    const { commandId } = await operator.queue({ requiresAck: false });
    expect(await operator.poll()).toHaveLength(1);
    expect((await operator.get(commandId)).status).toBe("delivered");
    expect(await operator.poll()).toEqual([]);
  });
});

describe("sessions", () => {
  const settle = (
    room: ReturnType<typeof createRoom>,
    device: Device,
    epoch: number,
    inFlight: { commandId: string; status: string }[] = [],
    more: object = {},
  ) => db.sqlTx((tx) => room.delivery.settle(tx, [{ ...device, epoch, inFlight, journal: true, listsAll: true, cancels: true, ...more }]));

  test("a new session takes up what the agent has and repeats what it has not", async () => {
    const { room, device, operator } = await setUp();
    const claim = claimOf(room, device, await connect(db, device));
    const [listed, lost, stopped, done, waiting] = [
      await operator.queue(),
      await operator.queue(),
      await operator.queue(),
      await operator.queue(),
      await operator.queue({ notBefore: new Date(Date.now() + 60_000).toISOString() }),
    ].map(({ commandId }) => commandId) as [string, string, string, string, string];
    await claim();
    await ackOf(room, device)(done, "succeeded");
    await operator.cancel(stopped);
    const epoch = await connect(db, device);
    const [settled] = await settle(room, device, epoch, [
      { commandId: listed, status: "running" },
      { commandId: stopped, status: "running" },
      { commandId: done, status: "succeeded" },
      { commandId: "cmd_unknown", status: "received" },
    ]);
    settled?.notify();
    expect(settled?.reconcile.map(({ action }) => action)).toEqual(["continue", "stop", "forget", "forget"]);
    expect(settled?.queuedCount).toBe(2);
    expect((await operator.get(listed)).status).toBe("running");
    expect(await operator.get(lost)).toMatchObject({ status: "queued", attempts: 1 });
    expect((await operator.get(waiting)).status).toBe("queued");
    expect(await claimOf(room, device, epoch)()).toEqual([lost]);
    expect((await operator.timeline(lost)).events.map(({ to, code }) => [to, code])).toEqual([
      ["queued", null],
      ["sent", null],
      ["queued", "SESSION_LOST"],
      ["sent", null],
    ]);
  });

  test("a handoff keeps what is under way", async () => {
    const { room, device, operator } = await setUp();
    await connect(db, device);
    const { commandId } = await operator.queue();
    await claimOf(room, device, 1)();
    const epoch = await connect(db, device, "node-b");
    await settle(room, device, epoch, [], { handoff: true });
    expect(await operator.get(commandId)).toMatchObject({ status: "sent", attempts: 1 });
    expect((await ackOf(room, device)(commandId, "received")).status).toBe("acknowledged");
  });

  test("an ack of a superseded session counts: it is a fact", async () => {
    const { room, device, operator } = await setUp();
    await connect(db, device);
    const { commandId } = await operator.queue();
    await claimOf(room, device, 1)();
    await connect(db, device);
    expect((await ackOf(room, device)(commandId, "succeeded")).result).toBe("applied");
  });

  test("a reset cancels everything that is open, whatever its state", async () => {
    const { room, device, operator } = await setUp();
    const epoch = await connect(db, device);
    const [a, b] = [await operator.queue(), await operator.queue({ notBefore: new Date(Date.now() + 60_000).toISOString() })];
    await claimOf(room, device, epoch)();
    const { canceled, notify } = await db.sqlTx((tx) => room.resetDevice(tx, device, "paired anew"));
    notify();
    expect(canceled).toBe(2);
    for (const { commandId } of [a, b]) expect(await operator.get(commandId)).toMatchObject({ status: "canceled", failureCode: "DEVICE_RESET" });
    expect((await room.commandGauges()).pastDeadline).toBe(0);
  });
});

describe("what a command waits for", () => {
  test("the device, its agent, or nothing", async () => {
    const { room, device, operator } = await setUp();
    const { commandId } = await operator.queue();
    expect((await operator.timeline(commandId)).blockedBy).toMatchObject({ kind: "offline", explanation: "The device has never been connected." });
    const epoch = await connect(db, device);
    expect((await operator.timeline(commandId)).blockedBy.kind).toBe("none");
    await claimOf(room, device, epoch)();
    expect((await operator.timeline(commandId)).blockedBy.kind).toBe("agent");
    await disconnect(db, device);
    expect((await operator.timeline(commandId)).blockedBy.kind).toBe("offline");
  });
});
