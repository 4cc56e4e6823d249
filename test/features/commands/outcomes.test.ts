// A feature learns of the end of every command that it ordered, in the transaction that ends it, and what goes wrong there harms nobody else.
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { command } from "../../../protocol/index.ts";
import { type Outcome, type OutcomeHandler, orderOf, type RegisteredOutcome } from "../../../server/core/ports/command-outcomes.ts";
import type { Db } from "../../../server/platform/database/db.ts";
import { addDevice, age, asOperator, connectDevice, createCommandsFeature, openTestDb, runJob } from "./kit.ts";

const backup = command("backup-create", {
  summary: "Back up an app",
  payload: z.object({ appId: z.string() }),
  output: z.object({ bytes: z.int() }),
  lane: "app",
});

let db: Db;
beforeAll(async () => {
  db = await openTestDb();
  await db.query("create table outcomes_seen (command_id text, kind text, tenant_id text)");
});
afterAll(() => db.close());

const setUp = async (handle?: OutcomeHandler<typeof backup>) => {
  const told: Outcome<typeof backup>[] = [];
  const record: OutcomeHandler<typeof backup> = async (tx, outcome) => {
    await tx.query("insert into outcomes_seen values ($1, $2, $3)", [outcome.commandId, outcome.kind, outcome.scope.tenantId]);
    await handle?.(tx, outcome);
    told.push(outcome);
  };
  const errors: unknown[] = [];
  const outcomes = new Map<string, RegisteredOutcome>([[backup.type, { command: backup, handle: record as OutcomeHandler }]]);
  const feature = createCommandsFeature(db, { outcomes, onError: (error) => void errors.push(error) });
  const device = await addDevice(db);
  const order = async (key = "k", payload = { appId: key }): Promise<string> =>
    db.tx(async (tx) => {
      const { commandIds } = await feature.enqueue(tx, device, [orderOf(backup, { deviceId: device.deviceId, key, orderedBy: "system", payload })]);
      return commandIds[0] ?? "";
    });
  const sent = async (...keys: string[]): Promise<readonly string[]> => {
    const ids: string[] = [];
    for (const key of keys) ids.push(await order(key));
    const epoch = await connectDevice(db, device);
    await feature.delivery.claim({ deviceId: device.deviceId, epoch, maxInFlight: 32 });
    return ids;
  };
  const ack = (commandId: string, status: string, output?: unknown) =>
    feature.delivery.ack(device, { commandId, status, ...(output === undefined ? {} : { output }) });
  const seen = async (commandId: string) =>
    (await db.query<{ kind: string }>("select kind from outcomes_seen where command_id = $1", [commandId])).map(({ kind }) => kind);
  const statusOf = async (commandId: string) => (await asOperator(feature, device).get(commandId)).status;
  return { feature, device, order, sent, ack, told, errors, seen, statusOf, operator: asOperator(feature, device) };
};

describe("a handler is told of", () => {
  test("a success, with the payload and the output as its schema reads it", async () => {
    const { sent, ack, told, device } = await setUp();
    const [commandId = ""] = await sent("a");
    await ack(commandId, "running");
    expect(told).toEqual([]);
    expect(await ack(commandId, "succeeded", { bytes: 7, more: true })).toMatchObject({ result: "applied", status: "succeeded" });
    expect(told).toEqual([
      {
        kind: "succeeded",
        commandId,
        deviceId: device.deviceId,
        late: false,
        payload: { appId: "a" },
        output: { bytes: 7 },
        scope: { tenantId: device.tenantId, traceparent: null },
      },
    ]);
    await ack(commandId, "succeeded", { bytes: 7 });
    expect(told).toHaveLength(1);
  });

  test("an output that does not fit, while the command ends as told", async () => {
    const { sent, ack, told, statusOf } = await setUp();
    const [commandId = ""] = await sent("a");
    expect(await ack(commandId, "succeeded", { bytes: "many" })).toMatchObject({ result: "refused", status: "succeeded", code: "INVALID_OUTPUT" });
    expect(told).toMatchObject([{ kind: "invalid_output", output: { bytes: "many" }, issues: [expect.stringContaining("bytes: ")] }]);
    expect(await statusOf(commandId)).toBe("succeeded");
  });

  test.each([{ bytes: 7 }, { bytes: "many" }])("an output that was read once: %j", async (output) => {
    const { sent, ack, told } = await setUp();
    const [commandId = ""] = await sent("a");
    const read = vi.spyOn(backup.output, "safeParse");
    await ack(commandId, "succeeded", output);
    expect([told.length, read.mock.calls]).toEqual([1, [[output]]]);
    read.mockRestore();
  });

  test("a failure and a rejection, with code and output", async () => {
    const { sent, ack, told } = await setUp();
    const [failed = "", rejected = ""] = await sent("a", "b");
    await ack(failed, "failed", { reason: "disk" });
    await ack(rejected, "rejected");
    expect(told).toMatchObject([
      { kind: "unsuccessful", status: "failed", code: "AGENT_FAILED", output: { reason: "disk" } },
      { kind: "unsuccessful", status: "rejected", code: "AGENT_REJECTED" },
    ]);
  });

  test("a cancel, a purge and a reset of the device", async () => {
    const { order, told, operator, feature, device } = await setUp();
    await operator.cancel(await order("a"));
    await order("b");
    await operator.run("purge", { deviceId: device.deviceId });
    await order("c");
    await db.sqlTx((tx) => feature.resetDevice(tx, device, "device_removed"));
    expect(told.map((outcome) => outcome.kind === "unsuccessful" && outcome.status)).toEqual(["canceled", "canceled", "canceled"]);
  });

  test("an expiry, an exhausted execution time and a delivery that was given up", async () => {
    const { order, sent, ack, told, feature } = await setUp();
    const [running = "", silent = ""] = await sent("a", "b");
    await ack(running, "running");
    const waiting = await order("c");
    await db.query("update command_queue set max_attempts = attempt where command_id = $1", [silent]);
    for (const commandId of [running, silent, waiting]) await age(db, commandId, 40 * 86_400);
    await runJob(feature, "commands.reaper");
    expect(told.map((outcome) => outcome.kind === "unsuccessful" && [outcome.commandId, outcome.status]).sort()).toEqual(
      [
        [running, "timed_out"],
        [silent, expect.stringMatching(/undeliverable|expired/)],
        [waiting, "expired"],
      ].sort(),
    );
  });

  test("a late result, again and marked as late", async () => {
    const { sent, ack, told, feature } = await setUp();
    const [commandId = ""] = await sent("a");
    await ack(commandId, "running");
    await db.query("update command_queue set deadline_at = now() - interval '1 second' where command_id = $1", [commandId]);
    await runJob(feature, "commands.reaper");
    await ack(commandId, "succeeded", { bytes: 1 });
    expect(told).toMatchObject([
      { kind: "unsuccessful", status: "timed_out", late: false },
      { kind: "succeeded", output: { bytes: 1 }, late: true },
    ]);
  });
});

test("what a handler writes commits with the end of the command, through Prisma too", async () => {
  const { sent, ack, seen } = await setUp(async (tx, { scope }) => {
    expect(await tx.for(scope).device.count()).toBe(1);
  });
  const [commandId = ""] = await sent("a");
  await ack(commandId, "succeeded", { bytes: 1 });
  expect(await seen(commandId)).toEqual(["succeeded"]);
});

test("a command of another type costs no handler a call", async () => {
  const { operator, told } = await setUp();
  await operator.cancel((await operator.queue({ type: "echo" })).commandId);
  expect(told).toEqual([]);
});

describe("a handler that throws", () => {
  test("ends its own command, undoes what it wrote, and leaves its neighbours' acks alone", async () => {
    const broken = { id: "" };
    const { sent, ack, seen, statusOf, errors } = await setUp(async (tx, { commandId }) => {
      if (commandId === broken.id) await tx.query("select 1 / 0");
    });
    const ids = await sent("a", "b", "c");
    broken.id = ids[1] ?? "";
    const answers = await Promise.all(ids.map((commandId) => ack(commandId, "succeeded", { bytes: 1 })));
    expect(answers.map(({ result }) => result)).toEqual(["applied", "applied", "applied"]);
    expect(await Promise.all(ids.map(statusOf))).toEqual(["succeeded", "succeeded", "succeeded"]);
    expect(await Promise.all(ids.map(seen))).toEqual([["succeeded"], [], ["succeeded"]]);
    expect(errors).toMatchObject([{ message: expect.stringContaining(broken.id) }]);
  });

  test("is called again until it succeeds, once", async () => {
    const state = { broken: true };
    const { sent, ack, seen, feature } = await setUp(async () => {
      if (state.broken) throw new Error("not today");
    });
    const [commandId = ""] = await sent("a");
    await ack(commandId, "succeeded", { bytes: 1 });
    const retry = async () => {
      await db.query("update untold_outcomes set retry_at = now() - interval '1 second' where command_id = $1", [commandId]);
      await runJob(feature, "commands.outcomes");
      return seen(commandId);
    };
    expect(await retry()).toEqual([]);
    state.broken = false;
    expect(await retry()).toEqual(["succeeded"]);
    expect(await retry()).toEqual(["succeeded"]);
    expect(await db.query("select 1 from untold_outcomes where command_id = $1", [commandId])).toEqual([]);
  });

  test("is not called for an end that a late result has replaced", async () => {
    const state = { broken: true };
    const { sent, ack, seen, feature } = await setUp(async () => {
      if (state.broken) throw new Error("not today");
    });
    const [commandId = ""] = await sent("a");
    await db.query("update command_queue set deadline_at = now() - interval '1 second', max_attempts = attempt where command_id = $1", [commandId]);
    await runJob(feature, "commands.reaper");
    state.broken = false;
    await ack(commandId, "succeeded", { bytes: 1 });
    expect(await seen(commandId)).toEqual(["succeeded"]);
    expect(await db.query("select 1 from untold_outcomes where command_id = $1", [commandId])).toEqual([]);
  });
});
