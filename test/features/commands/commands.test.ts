// The queue on a real database: its guarantees for callers, sessions, pollers and several nodes.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { unpackData } from "../../../server/core/rows/event-data.ts";
import type { Db } from "../../../server/platform/database/db.ts";
import { addDevice, age, as, asOperator, connectDevice, createCommandsFeature, type DeviceRef, disconnectDevice, openTestDb, runJob } from "./kit.ts";

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
});
afterAll(async () => {
  await db.close();
});

const setUp = async (settings: Parameters<typeof createCommandsFeature>[1] = {}) => {
  const feature = createCommandsFeature(db, settings);
  const device = await addDevice(db);
  return { feature, device, operator: asOperator(feature, device) };
};

const ackOf =
  (feature: ReturnType<typeof createCommandsFeature>, device: DeviceRef) =>
  (commandId: string, status: string, more: object = {}) =>
    feature.delivery.ack(device, { commandId, status, ...more });
const claimOf =
  (feature: ReturnType<typeof createCommandsFeature>, { deviceId }: DeviceRef, epoch: number) =>
  async (maxInFlight = 8) => {
    const { commands } = await feature.delivery.claim({ deviceId, epoch, maxInFlight });
    await feature.writeSent();
    return commands.map(({ command }) => command.commandId);
  };
const outboxOf = async (commandId: string) =>
  (await db.query<{ type: string; data: unknown }>(`select type, data from outbox_events where subject_id = $1 order by position`, [commandId])).map(
    ({ type, data }) => ({ type, data: unpackData(commandId, data) }),
  );

describe("queueing", () => {
  test("a queued command gets the settings of its type, tells its viewers and nudges its device", async () => {
    const { feature, device, operator } = await setUp();
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
    expect(feature.recorded.nudges).toEqual([device.deviceId]);
    expect(feature.recorded.hints.map(({ event }) => event.type)).toEqual(["command.queued"]);
  });

  test("a command that never expires is delivered, and still has a deadline in the table", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const { commandId, expiresAt } = await operator.queue({ expiresAt: null });
    expect(expiresAt).toBeNull();
    expect(await db.query(`select 1 from commands_now where command_id = $1 and deadline_at = 'infinity'`, [commandId])).toHaveLength(1);
    await runJob(feature, "commands.reaper");
    expect(await claimOf(feature, device, epoch)()).toEqual([commandId]);
  });

  test("50 equal requests at once over two nodes make one command and get equal answers", async () => {
    const { feature, device, operator } = await setUp();
    const other = asOperator(createCommandsFeature(db, { nodeId: "node-b" }), device);
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        (index % 2 ? other : operator).run("queue", { deviceId: device.deviceId, type: "echo", payload: { n: 1 } }, "same"),
      ),
    );
    expect(new Set(answers.map(({ result }) => JSON.stringify(result))).size).toBe(1);
    expect(answers.filter(({ reply }) => reply.replayed !== true)).toHaveLength(1);
    expect((await operator.run("list", { deviceId: device.deviceId })).result.total).toBe(1);
    expect(feature.recorded.nudges.length).toBeLessThanOrEqual(1);
  });

  test("a repeated request gets the first answer, whatever has become of the command since", async () => {
    const { device, operator } = await setUp();
    const first = await operator.queue({ notBefore: new Date(Date.now() + 60_000).toISOString() }, "key");
    await operator.cancel(first.commandId);
    await db.query(`update devices set status = 'offline' where device_id = $1`, [device.deviceId]);
    const again = await operator.run("queue", { deviceId: device.deviceId, type: "echo", notBefore: first.notBefore }, "key");
    expect(again.result).toEqual(first);
    expect(again.reply.replayed).toBe(true);
  });

  test("a key with another body is refused, but another caller may use the same key", async () => {
    const { device, operator } = await setUp();
    const first = await operator.queue({}, "key");
    await expect(operator.queue({ payload: { other: true } }, "key")).rejects.toMatchObject({ code: "IDEMPOTENCY_KEY_REUSED" });
    const other = await asOperator(createCommandsFeature(db), device, as("admin")).queue({ payload: { other: true } }, "key");
    expect(other.commandId).not.toBe(first.commandId);
  });

  test("a full queue refuses, a purged one accepts, and other devices in the same batch are not affected", async () => {
    const feature = createCommandsFeature(db, { settings: { maxOpenPerDevice: 3 } });
    const [device, neighbour] = [await addDevice(db), await addDevice(db)];
    const [mine, theirs] = [asOperator(feature, device), asOperator(feature, neighbour)];
    const results = await Promise.allSettled([...Array.from({ length: 5 }, () => mine.queue()), theirs.queue()]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled", "rejected", "rejected", "fulfilled"]);
    await expect(mine.queue()).rejects.toMatchObject({ code: "COMMAND_QUEUE_FULL", details: { deviceId: device.deviceId, limit: 3 } });
    expect((await mine.run("purge", { deviceId: device.deviceId })).result.canceled).toBe(3);
    expect((await mine.queue()).status).toBe("queued");
  });

  test("a tenant's limit counts the commands of all its devices", async () => {
    const feature = createCommandsFeature(db, { settings: { maxOpenPerTenant: 2 } });
    const device = await addDevice(db);
    const other = await addDevice(db, { tenantId: device.tenantId });
    await asOperator(feature, device).queue();
    await asOperator(feature, other).queue();
    await expect(asOperator(feature, device).queue()).rejects.toMatchObject({ code: "COMMAND_QUEUE_FULL", details: { scope: "tenant" } });
  });

  test.each([
    ["an unknown device", { deviceId: "dev_nobody" }, "DEVICE_NOT_FOUND"],
    ["a reserved type", { type: "svc.rotate-secret" }, "COMMAND_TYPE_UNKNOWN"],
    ["a payload that does not fit its type", { type: "restart-app", payload: { appId: 7 } }, "COMMAND_PAYLOAD_INVALID"],
    ["too large a payload", { payload: { text: "x".repeat(65_536) } }, "COMMAND_PAYLOAD_INVALID"],
    ["too deeply nested a payload", { payload: JSON.parse(`${'{"a":'.repeat(12)}1${"}".repeat(12)}`) as object }, "COMMAND_PAYLOAD_INVALID"],
    ["an expiry in the past", { expiresAt: "2020-01-01T00:00:00Z" }, "VALIDATION_FAILED"],
    ["a request with two expiries", { expiresAt: null, ttlSeconds: 60 }, "VALIDATION_FAILED"],
    ["an invalid idempotency key", { idempotencyKey: "ü" }, "IDEMPOTENCY_KEY_INVALID"],
  ])("%s is refused", async (_, input, code) => {
    const { operator } = await setUp();
    await expect(operator.queue(input)).rejects.toMatchObject({ code });
  });

  test("another tenant's device is unknown, like one that does not exist", async () => {
    const { operator } = await setUp();
    const foreign = await addDevice(db);
    await expect(operator.queue({ deviceId: foreign.deviceId })).rejects.toMatchObject({ code: "DEVICE_NOT_FOUND", details: { deviceId: foreign.deviceId } });
  });

  test("a shell command needs its own permission", async () => {
    const { feature, device, operator } = await setUp();
    await expect(operator.queue({ type: "shell", payload: { command: "id" } })).rejects.toMatchObject({
      code: "FORBIDDEN",
      details: { requiredPermission: "device:shell" },
    });
    expect((await asOperator(feature, device, as("admin")).queue({ type: "shell", payload: { command: "id" } })).status).toBe("queued");
  });

  test("ifOffline: fail refuses a command for an offline device only", async () => {
    const feature = createCommandsFeature(db);
    const absent = await addDevice(db, { status: "offline" });
    await expect(asOperator(feature, absent).queue({ ifOffline: "fail" })).rejects.toMatchObject({ code: "DEVICE_OFFLINE" });
    expect((await asOperator(feature, await addDevice(db)).queue({ ifOffline: "fail" })).status).toBe("queued");
  });
});

describe("claims", () => {
  test("only the newest epoch claims, even when an older one asks at the same moment", async () => {
    const { feature, device, operator } = await setUp();
    const old = await connectDevice(db, device);
    await operator.queue();
    const current = await connectDevice(db, device, "node-b");
    const claims = await Promise.all([claimOf(feature, device, old)(), claimOf(createCommandsFeature(db, { nodeId: "node-b" }), device, current)()]);
    expect(claims.map((ids) => ids.length)).toEqual([0, 1]);
  });

  test("a claimed command is sent, counts one attempt and is due for its ack in 20 s", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const { commandId } = await operator.queue();
    await claimOf(feature, device, epoch)();
    const command = await operator.get(commandId);
    expect(command).toMatchObject({ status: "sent", attempts: 1 });
    expect(Date.parse(command.deadlineAt ?? "") - Date.parse(command.sentAt ?? "")).toBe(20_000);
  });

  test("commands of one lane run one after another, and commands outside it do not wait", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const claim = claimOf(feature, device, epoch);
    const [a1, a2, b1, free] = [
      await operator.queue({ lane: "a" }),
      await operator.queue({ lane: "a", priority: 9 }),
      await operator.queue({ lane: "b" }),
      await operator.queue(),
    ].map(({ commandId }) => commandId);
    expect(await claim()).toEqual([a1, b1, free]);
    expect(await claim()).toEqual([]);
    expect((await operator.timeline(a2 ?? "")).blockedBy).toMatchObject({ kind: "lane", commandId: a1 });
    await ackOf(feature, device)(a1 ?? "", "succeeded");
    expect(feature.recorded.freed).toEqual([device.deviceId]);
    expect(await claim()).toEqual([a2]);
  });

  test("a command of higher priority goes first, and commands in flight use up the credit", async () => {
    const { feature, device, operator } = await setUp();
    const claim = claimOf(feature, device, await connectDevice(db, device));
    const low = await operator.queue({ priority: 1 });
    const high = await operator.queue({ priority: 9 });
    expect(await claim(1)).toEqual([high.commandId]);
    expect(await claim(1)).toEqual([]);
    expect(await claim(2)).toEqual([low.commandId]);
  });

  test("a claim says whether it left commands in the queue", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const claim = async (maxInFlight: number) => {
      const { commands, left } = await feature.delivery.claim({ deviceId: device.deviceId, epoch, maxInFlight });
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

  test("20 devices that claim at once each get their own command", async () => {
    const feature = createCommandsFeature(db);
    const devices = await Promise.all(Array.from({ length: 20 }, () => addDevice(db)));
    const epochs = await Promise.all(devices.map((device) => connectDevice(db, device)));
    const queued = await Promise.all(devices.map((device) => asOperator(feature, device).queue()));
    const claimed = await Promise.all(devices.map((device, index) => claimOf(feature, device, epochs[index] ?? 0)()));
    expect(claimed).toEqual(queued.map(({ commandId }) => [commandId]));
  });

  test("claims for one session at once never get the same command", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    await Promise.all(Array.from({ length: 20 }, () => operator.queue()));
    const claimed = (await Promise.all(Array.from({ length: 8 }, () => claimOf(feature, device, epoch)(4)))).flat();
    expect(new Set(claimed).size).toBe(claimed.length);
  });

  test("a command that the socket refuses returns to the queue without costing an attempt", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const { commandId } = await operator.queue();
    await claimOf(feature, device, epoch)();
    feature.recorded.nudges.length = 0;
    await feature.delivery.refused(device, epoch, [commandId]);
    expect(await operator.get(commandId)).toMatchObject({ status: "queued", attempts: 0 });
    expect(feature.recorded.nudges, "a full socket gets no nudge to try again at once").toEqual([]);
  });

  test("a command that asks for no ack ends once it is written", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const [quiet, loud] = [await operator.queue({ requiresAck: false }), await operator.queue()];
    await claimOf(feature, device, epoch)();
    await feature.delivery.delivered(device, epoch, [quiet.commandId, loud.commandId]);
    expect((await operator.get(quiet.commandId)).status).toBe("delivered");
    expect((await operator.get(loud.commandId)).status).toBe("sent");
    expect((await outboxOf(quiet.commandId)).map(({ type }) => type)).toEqual(["command.completed"]);
  });
});

describe("acks", () => {
  const delivered = async () => {
    const given = await setUp();
    const epoch = await connectDevice(db, given.device);
    const { commandId } = await given.operator.queue();
    await claimOf(given.feature, given.device, epoch)();
    return { ...given, commandId, ack: ackOf(given.feature, given.device) };
  };

  test("received, running and succeeded in one burst are each recorded in order", async () => {
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

  test("the first outcome wins; the same again is a duplicate, another one a conflict", async () => {
    const { operator, commandId, ack } = await delivered();
    expect((await ack(commandId, "succeeded")).result).toBe("applied");
    expect((await ack(commandId, "succeeded")).result).toBe("duplicate");
    expect(await ack(commandId, "failed")).toEqual({ commandId, status: "succeeded", result: "conflict" });
    expect((await operator.get(commandId)).status).toBe("succeeded");
    expect(await outboxOf(commandId)).toHaveLength(1);
  });

  test("a late result replaces a timeout and is announced as late", async () => {
    const { feature, operator, commandId, ack } = await delivered();
    await ack(commandId, "received");
    await age(db, commandId, 901);
    await runJob(feature, "commands.reaper");
    expect((await operator.get(commandId)).status).toBe("timed_out");
    expect(feature.recorded.cancels).toMatchObject([{ commandId, reason: "EXECUTION_TIMED_OUT" }]);
    expect((await ack(commandId, "succeeded")).result).toBe("applied");
    expect(await operator.get(commandId)).toMatchObject({ status: "succeeded", late: true, failureCode: null });
    expect((await outboxOf(commandId)).map(({ type }) => type)).toEqual(["command.timed_out", "command.late_result"]);
  });

  test("an ack for another device's command is answered as unknown and changes nothing", async () => {
    const { feature, operator, commandId } = await delivered();
    const stranger = await addDevice(db);
    expect(await feature.delivery.ack(stranger, { commandId, status: "failed" })).toEqual({ commandId, status: null, result: "unknown" });
    expect((await operator.get(commandId)).status).toBe("sent");
    await expect(operator.run("ack", { deviceId: stranger.deviceId, commandId, status: "failed" })).rejects.toMatchObject({ code: "COMMAND_NOT_FOUND" });
  });

  test("an ack with an unknown status is refused but proves the delivery; over REST the refusal lists the accepted statuses", async () => {
    const { device, operator, commandId, ack } = await delivered();
    expect(await ack(commandId, "whatever")).toEqual({ commandId, status: "acknowledged", result: "refused", code: "ACK_STATUS_UNKNOWN" });
    await expect(operator.run("ack", { deviceId: device.deviceId, commandId, status: "perhaps" })).rejects.toMatchObject({
      code: "VALIDATION_FAILED",
      details: { accepted: expect.arrayContaining(["succeeded"]) as unknown },
    });
    expect((await operator.get(commandId)).status).toBe("acknowledged");
    expect(await ack(commandId, "succeeded")).toMatchObject({ status: "succeeded", result: "applied" });
  });

  test("an ack that cannot be stored fails no other ack of its batch", async () => {
    const { feature, device, operator, commandId, ack } = await delivered();
    const other = await operator.queue();
    await claimOf(feature, device, 1)();
    const [bad, good] = await Promise.allSettled([ack(commandId, "succeeded", { output: "\u0000" }), ack(other.commandId, "succeeded")]);
    expect([bad?.status, good?.status]).toEqual(["rejected", "fulfilled"]);
    expect((await operator.get(other.commandId)).status).toBe("succeeded");
  });

  test("a long output is truncated and marked as such", async () => {
    const { operator, commandId, ack } = await delivered();
    await ack(commandId, "succeeded", { output: `${"é".repeat(40_000)}\u{1f600}` });
    const command = await operator.get(commandId);
    expect(command.outputTruncated).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(command.ack?.output))).toBeLessThanOrEqual(65_536);
  });

  test("of ten outcomes that two nodes report for one command at once, one is applied", async () => {
    const { feature, device, commandId } = await delivered();
    const other = createCommandsFeature(db, { nodeId: "node-b" });
    const results = await Promise.all(
      Array.from({ length: 10 }, (_, index) => ackOf(index % 2 ? other : feature, device)(commandId, index % 3 ? "succeeded" : "failed")),
    );
    expect(results.filter(({ result }) => result === "applied")).toHaveLength(1);
  });
});

describe("cancellation", () => {
  test("a queued command is cancelled at once and never claimed", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const { commandId } = await operator.queue();
    expect((await operator.cancel(commandId, { reason: "mistake" })).status).toBe("canceled");
    expect(await claimOf(feature, device, epoch)()).toEqual([]);
    expect(feature.recorded.cancels).toEqual([]);
    expect((await outboxOf(commandId)).map(({ type }) => type)).toEqual(["command.canceled"]);
  });

  test.each(["sent", "acknowledged", "running"])("the agent is asked to cancel a command that is %s, and has 60 s to answer", async (state) => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const { commandId } = await operator.queue();
    await claimOf(feature, device, epoch)();
    const ack = ackOf(feature, device);
    if (state !== "sent") await ack(commandId, state === "running" ? "running" : "received");
    const asked = await operator.cancel(commandId, { reason: "enough" });
    expect(asked.status).toBe("canceling");
    expect(Date.parse(asked.deadlineAt ?? "") - Date.parse(asked.cancelRequestedAt ?? "")).toBe(60_000);
    expect(feature.recorded.cancels).toMatchObject([{ deviceId: device.deviceId, commandId, reason: "enough", deadline: asked.deadlineAt }]);
    expect((await ack(commandId, "cancel_rejected")).status).toBe(state);
    await operator.cancel(commandId);
    expect((await ack(commandId, "canceled")).status).toBe("canceled");
  });

  test("a forced cancel ends the command at once, and an outcome that follows is kept beside it", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const { commandId } = await operator.queue();
    await claimOf(feature, device, epoch)();
    expect(await operator.cancel(commandId, { force: true })).toMatchObject({ status: "canceled", failureCode: "CANCEL_UNCONFIRMED" });
    expect(feature.recorded.cancels).toHaveLength(1);
    expect((await ackOf(feature, device)(commandId, "succeeded", { output: 1 })).result).toBe("conflict");
    expect(await db.query(`select late_outcome->>'status' as status from commands_now where command_id = $1`, [commandId])).toEqual([{ status: "succeeded" }]);
  });

  test("a cancel that the agent does not answer ends the command at its deadline", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const { commandId } = await operator.queue();
    await claimOf(feature, device, epoch)();
    await operator.cancel(commandId);
    await age(db, commandId, 61);
    await runJob(feature, "commands.reaper");
    expect(await operator.get(commandId)).toMatchObject({ status: "canceled", failureCode: "CANCEL_UNCONFIRMED" });
  });

  test("a command that has ended cannot be cancelled", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const { commandId } = await operator.queue();
    await claimOf(feature, device, epoch)();
    await ackOf(feature, device)(commandId, "succeeded");
    await expect(operator.cancel(commandId)).rejects.toMatchObject({ code: "COMMAND_ALREADY_FINAL", details: { status: "succeeded" } });
  });
});

describe("deadlines", () => {
  test("when two nodes reap at once, each command expires once", async () => {
    const { feature, device, operator } = await setUp({ settings: { reaperBatch: 10 } });
    const other = createCommandsFeature(db, { nodeId: "node-b", settings: { reaperBatch: 10 } });
    const commands = await Promise.all(Array.from({ length: 60 }, () => operator.queue({ ttlSeconds: 60 })));
    await db.query(`update command_queue set expires_at = now() - interval '1 s', deadline_at = now() - interval '1 s' where device_id = $1`, [
      device.deviceId,
    ]);
    await Promise.all([runJob(feature, "commands.reaper"), runJob(other, "commands.reaper"), runJob(feature, "commands.reaper")]);
    await runJob(feature, "commands.reaper");
    const ends = await db.query<{ count: number }>(
      `select count(*) from commands_now c, json_array_elements(c.history) as e where c.device_id = $1 and e->>'to' = 'expired' group by c.command_id`,
      [device.deviceId],
    );
    expect(ends).toEqual(commands.map(() => ({ count: 1 })));
    expect((await outboxOf(commands[0]?.commandId ?? "")).map(({ type }) => type)).toEqual(["command.expired"]);
  });

  test("a command without an ack goes out again after a backoff, until its attempts are used up", async () => {
    const { feature, device, operator } = await setUp();
    const claim = claimOf(feature, device, await connectDevice(db, device));
    const { commandId } = await operator.queue({ maxAttempts: 2 });
    await claim();
    await age(db, commandId, 21);
    await runJob(feature, "commands.reaper");
    expect(await claim(), "not before its backoff is over").toEqual([]);
    expect((await operator.timeline(commandId)).blockedBy.kind).toBe("window");
    await age(db, commandId, 25);
    const [again] = (await feature.delivery.claim({ deviceId: device.deviceId, epoch: 1, maxInFlight: 8 })).commands;
    expect(again?.delivery).toMatchObject({ attempt: 2, redelivered: true });
    await feature.writeSent();
    await age(db, commandId, 21);
    await runJob(feature, "commands.reaper");
    expect(await operator.get(commandId)).toMatchObject({ status: "undeliverable", failureCode: "DELIVERY_ATTEMPTS_EXCEEDED" });
  });

  test("a command that expires after it was sent says that it was not acknowledged", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const { commandId } = await operator.queue({ ttlSeconds: 60 });
    await claimOf(feature, device, epoch)();
    await age(db, commandId, 61);
    await runJob(feature, "commands.reaper");
    expect(await operator.get(commandId)).toMatchObject({ status: "expired", failureCode: "EXPIRED_UNACKED" });
  });

  test("the database refuses an open command without a deadline", async () => {
    const { operator } = await setUp();
    const { commandId } = await operator.queue();
    await expect(db.query(`update command_queue set deadline_at = null where command_id = $1`, [commandId])).rejects.toThrow(/deadline_at/);
  });
});

describe("polling", () => {
  test("a poll repeats commands without an ack at no cost in attempts within their lease, and counts as a sign of life", async () => {
    const { feature, device, operator } = await setUp();
    const [first, second] = [await operator.queue({ lane: "a" }), await operator.queue({ lane: "a" })];
    const polled = await operator.run("poll", { deviceId: device.deviceId });
    expect(polled.result.items.map(({ commandId, delivery }) => [commandId, delivery.attempt])).toEqual([
      [first.commandId, 1],
      [second.commandId, 1],
    ]);
    expect(polled.reply.headers["x-svc-poll-interval"]).toBe("30");
    expect(feature.recorded.polls).toEqual([device.deviceId]);
    expect((await operator.poll()).map(({ delivery }) => delivery.attempt)).toEqual([1, 1]);
    await ackOf(feature, device)(first.commandId, "received");
    expect((await operator.poll()).map(({ commandId }) => commandId)).toEqual([second.commandId]);
    await age(db, second.commandId, 61);
    expect((await operator.poll()).map(({ delivery }) => delivery.attempt)).toEqual([2]);
  });

  test("a poll skips a command that was sent over a socket and the rest of its lane", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    await operator.queue({ lane: "a" });
    await claimOf(feature, device, epoch)();
    await operator.queue({ lane: "a" });
    const free = await operator.queue();
    expect(await operator.poll(), "the socket has not had the time to send it").toEqual([]);
    await age(db, free.commandId, 2);
    expect((await operator.poll()).map(({ commandId }) => commandId)).toEqual([free.commandId]);
  });

  test("a poll with a limit never takes a later command of a lane before an earlier one", async () => {
    const { operator } = await setUp();
    const first = await operator.queue({ lane: "a", priority: 1 });
    await operator.queue({ lane: "a", priority: 9 });
    expect((await operator.poll(1)).map(({ commandId }) => commandId)).toEqual([first.commandId]);
  });

  test("a command that asks for no ack ends with its first poll and is not polled again", async () => {
    const { operator } = await setUp();
    const { commandId } = await operator.queue({ requiresAck: false });
    expect(await operator.poll()).toHaveLength(1);
    expect((await operator.get(commandId)).status).toBe("delivered");
    expect(await operator.poll()).toEqual([]);
  });
});

describe("sessions", () => {
  const settle = (
    feature: ReturnType<typeof createCommandsFeature>,
    device: DeviceRef,
    epoch: number,
    inFlight: { commandId: string; status: string }[] = [],
    more: object = {},
  ) => db.sqlTx((tx) => feature.delivery.settle(tx, [{ ...device, epoch, inFlight, journal: true, listsAll: true, cancels: true, ...more }]));

  test("a new session continues the commands that the agent lists and repeats those that it lost", async () => {
    const { feature, device, operator } = await setUp();
    const claim = claimOf(feature, device, await connectDevice(db, device));
    const [listed, lost, stopped, done, waiting] = [
      await operator.queue(),
      await operator.queue(),
      await operator.queue(),
      await operator.queue(),
      await operator.queue({ notBefore: new Date(Date.now() + 60_000).toISOString() }),
    ].map(({ commandId }) => commandId) as [string, string, string, string, string];
    await claim();
    await ackOf(feature, device)(done, "succeeded");
    await operator.cancel(stopped);
    const epoch = await connectDevice(db, device);
    const [settled] = await settle(feature, device, epoch, [
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
    expect(await claimOf(feature, device, epoch)()).toEqual([lost]);
    expect((await operator.timeline(lost)).events.map(({ to, code }) => [to, code])).toEqual([
      ["queued", null],
      ["sent", null],
      ["queued", "SESSION_LOST"],
      ["sent", null],
    ]);
  });

  test("a handoff keeps commands in flight", async () => {
    const { feature, device, operator } = await setUp();
    await connectDevice(db, device);
    const { commandId } = await operator.queue();
    await claimOf(feature, device, 1)();
    const epoch = await connectDevice(db, device, "node-b");
    await settle(feature, device, epoch, [], { handoff: true });
    expect(await operator.get(commandId)).toMatchObject({ status: "sent", attempts: 1 });
    expect((await ackOf(feature, device)(commandId, "received")).status).toBe("acknowledged");
  });

  test("an ack counts although its session is superseded", async () => {
    const { feature, device, operator } = await setUp();
    await connectDevice(db, device);
    const { commandId } = await operator.queue();
    await claimOf(feature, device, 1)();
    await connectDevice(db, device);
    expect((await ackOf(feature, device)(commandId, "succeeded")).result).toBe("applied");
  });

  test("a reset cancels every open command, sent or waiting", async () => {
    const { feature, device, operator } = await setUp();
    const epoch = await connectDevice(db, device);
    const [a, b] = [await operator.queue(), await operator.queue({ notBefore: new Date(Date.now() + 60_000).toISOString() })];
    await claimOf(feature, device, epoch)();
    const { canceled, notify } = await db.sqlTx((tx) => feature.resetDevice(tx, device, "paired anew"));
    notify();
    expect(canceled).toBe(2);
    for (const { commandId } of [a, b]) expect(await operator.get(commandId)).toMatchObject({ status: "canceled", failureCode: "DEVICE_RESET" });
    expect((await feature.commandGauges()).pastDeadline).toBe(0);
  });
});

describe("timeline", () => {
  test("the timeline says whether a command waits for its device, for its agent or for nothing", async () => {
    const { feature, device, operator } = await setUp();
    const { commandId } = await operator.queue();
    expect((await operator.timeline(commandId)).blockedBy).toMatchObject({ kind: "offline", explanation: "The device has never been connected." });
    const epoch = await connectDevice(db, device);
    expect((await operator.timeline(commandId)).blockedBy.kind).toBe("none");
    await claimOf(feature, device, epoch)();
    expect((await operator.timeline(commandId)).blockedBy.kind).toBe("agent");
    await disconnectDevice(db, device);
    expect((await operator.timeline(commandId)).blockedBy.kind).toBe("offline");
  });
});
