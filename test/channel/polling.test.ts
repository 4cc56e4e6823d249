// Agents without a socket: of two processes with one identity only one gets commands, and the next poll brings a cancellation.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../kit/checks/eventually.ts";
import { type Answer, type Device, startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";
import { online } from "./harness.ts";

let world: World;
let tenant: TestTenant;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_AGENT: "off", RATE_LIMIT_STANDARD: "off" });
  tenant = await world.tenant();
});
afterAll(() => world.close());

const poll = ({ as, deviceId }: Device, process: string | null, query = ""): Promise<Answer> =>
  world.call(as, "GET", `/v1/devices/${deviceId}/commands${query}`, process === null ? {} : { headers: { "x-svc-instance-id": process } });
const pollAfter = ({ as, deviceId }: Device, process: string, former: string): Promise<Answer> =>
  world.call(as, "GET", `/v1/devices/${deviceId}/commands`, { headers: { "x-svc-instance-id": process, "x-svc-instance-after": former } });
const queue = async ({ deviceId }: Device, more: object = {}): Promise<string> =>
  (await world.call(tenant.apiKey, "POST", `/v1/devices/${deviceId}/commands`, { body: { type: "ping", ...more } })).body.data.commandId;
const ack = ({ as, deviceId }: Device, commandId: string, status: string): Promise<Answer> =>
  world.call(as, "POST", `/v1/devices/${deviceId}/commands/${commandId}/ack`, { body: { status } });
const beat = ({ as, deviceId }: Device, status = "online"): Promise<Answer> =>
  world.call(as, "POST", `/v1/devices/${deviceId}/heartbeat`, { body: { status } });
const cancel = (commandId: string, more: object = {}): Promise<Answer> => world.call(tenant.apiKey, "POST", `/v1/commands/${commandId}/cancel`, { body: more });
const statusOf = async (commandId: string): Promise<string> => (await world.call(tenant.apiKey, "GET", `/v1/commands/${commandId}`)).body.data.status;
const idsOf = ({ status, body }: Answer): unknown =>
  status === 200 ? body.data.map(({ commandId }: { commandId: string }) => commandId) : [status, body.code];
const told = async ({ deviceId }: Device): Promise<number> =>
  (await world.sql.query("select 1 from outbox_events where type = 'device.duplicate_identity' and subject_id = $1", [deviceId])).rows.length;
const DUPLICATE = [409, "DUPLICATE_IDENTITY"];

describe("beside a session of another process", () => {
  test("a poll is refused and gets no command, but its acks count, and the holder's own polls continue", async () => {
    const device = await tenant.device();
    const holder = await online({ url: world.url.replace(/^http/, "ws"), clock: { now: () => new Date() } }, device, { instanceId: "holder", maxInFlight: 1 });
    const [first, second] = [await queue(device), await queue(device)];
    expect((await holder.next("command")).data.command.commandId).toBe(first);
    const refused = await poll(device, "clone");
    expect(idsOf(refused)).toEqual(DUPLICATE);
    expect([refused.headers.get("retry-after"), refused.body.retryAfter]).toEqual(["900", 900]);
    expect(await statusOf(second)).toBe("queued");
    expect((await ack(device, first, "succeeded")).body.data).toMatchObject({ result: "applied" });
    expect((await poll(device, "holder")).status).toBe(200);
    expect((await poll(device, null)).status).toBe(200);
    expect(await told(device)).toBe(1);
    holder.end();
  });

  test("a poll that waits when the session begins ends without a command", async () => {
    const device = await tenant.device();
    const waiting = poll(device, "poller", "?wait=20");
    await eventually(async () => {
      const { rows } = await world.sql.query("select poll_instance_id as id from device_presence where device_id = $1", [device.deviceId]);
      expect(rows).toEqual([{ id: "poller" }]);
    });
    const session = await online({ url: world.url.replace(/^http/, "ws"), clock: { now: () => new Date() } }, device, { instanceId: "newcomer" });
    const commandId = await queue(device);
    expect((await session.next("command")).data.command.commandId).toBe(commandId);
    expect(idsOf(await waiting)).toEqual(DUPLICATE);
    session.end();
  });
});

describe("with two processes that poll", () => {
  const silence = ({ deviceId }: Device) =>
    world.sql.query("update device_presence set poll_until = now() - interval '1 second' where device_id = $1", [deviceId]);

  test("the live one keeps the queue, and its next poll reports the duplicate", async () => {
    const device = await tenant.device();
    const commandId = await queue(device);
    expect(idsOf(await poll(device, "first"))).toEqual([commandId]);
    const refused = await poll(device, "second");
    expect(idsOf(refused)).toEqual(DUPLICATE);
    expect(refused.body.details).toEqual({ reason: "duplicate_identity", holder: "poll" });
    expect(refused.body.retryAfter).toBeGreaterThan(50);
    expect(refused.body.retryAfter).toBeLessThanOrEqual(60);
    expect(await told(device)).toBe(0);
    expect(idsOf(await poll(device, "first"))).toEqual([commandId]);
    expect(await told(device)).toBe(1);
    expect((await poll(device, null)).status).toBe(200);
  });

  test("a new one takes over from one that is silent or has said goodbye, without a duplicate event", async () => {
    const device = await tenant.device();
    await poll(device, "first");
    expect(idsOf(await poll(device, "second"))).toEqual(DUPLICATE);
    await silence(device);
    expect((await poll(device, "second")).status).toBe(200);
    expect(idsOf(await poll(device, "first"))).toEqual(DUPLICATE);
    expect((await beat(device, "offline")).status).toBe(200);
    expect((await poll(device, "third")).status).toBe(200);
    expect(await told(device)).toBe(0);
  });

  test("a successor that names the one that has ended takes its place at once, and a copy of that one is refused and reported", async () => {
    const device = await tenant.device();
    await poll(device, "first");
    expect(idsOf(await pollAfter(device, "second", "zeroth"))).toEqual(DUPLICATE);
    const commandId = await queue(device);
    expect(idsOf(await pollAfter(device, "second", "first"))).toEqual([commandId]);
    expect(await told(device)).toBe(0);
    expect(idsOf(await poll(device, "first"))).toEqual(DUPLICATE);
    expect((await pollAfter(device, "second", "first")).status).toBe(200);
    expect(await told(device)).toBe(1);
  });

  test("only one wins if both poll at once", async () => {
    const device = await tenant.device();
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => poll(device, `process-${n}`)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });
});

test("the instance id is refused in the URL and above 64 characters: it belongs in its header", async () => {
  const device = await tenant.device();
  expect((await poll(device, null, "?instanceId=one")).body.details.issues).toEqual([expect.objectContaining({ path: "query.instanceId" })]);
  expect((await poll(device, "x".repeat(65))).status).toBe(400);
  expect((await poll(device, "x".repeat(64))).status).toBe(200);
});

describe("a cancellation", () => {
  test("is listed in polls and heartbeats until it is acknowledged", async () => {
    const device = await tenant.device();
    const [stopped, other] = [await queue(device), await queue(device)];
    await poll(device, "p");
    expect([(await ack(device, stopped, "running")).status, (await ack(device, other, "running")).status]).toEqual([200, 200]);
    expect((await beat(device)).body.data.cancel).toEqual([]);
    await cancel(stopped);
    for (let round = 0; round < 2; round += 1) {
      expect((await poll(device, "p")).body).toMatchObject({ data: [], cancel: [stopped] });
      expect((await beat(device)).body.data).toMatchObject({ cancel: [stopped], pendingCommands: 0 });
    }
    await ack(device, stopped, "canceled");
    expect((await poll(device, "p")).body.cancel).toEqual([]);
    expect((await beat(device)).body.data.cancel).toEqual([]);
    expect([await statusOf(stopped), await statusOf(other)]).toEqual(["canceled", "running"]);
  });

  test("is no longer listed once its deadline has passed", async () => {
    const device = await tenant.device();
    const commandId = await queue(device);
    await poll(device, "p");
    await cancel(commandId);
    expect((await poll(device, "p")).body.cancel).toEqual([commandId]);
    await world.sql.query("update command_queue set deadline_at = now() - interval '1 millisecond' where command_id = $1", [commandId]);
    expect((await poll(device, "p")).body.cancel).toEqual([]);
    await eventually(async () => expect(await statusOf(commandId)).toBe("canceled"));
  });

  test("ends a waiting poll at once", async () => {
    const device = await tenant.device();
    const commandId = await queue(device);
    await poll(device, "p");
    await ack(device, commandId, "running");
    const waiting = poll(device, "p", "?wait=14");
    await cancel(commandId);
    expect((await waiting).body).toMatchObject({ data: [], cancel: [commandId] });
  });
});
