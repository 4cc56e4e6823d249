// Bulk operations: whom they concern, how they stop, and that every item gets an answer.
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../server/core/ids.ts";
import { type Caller, emailOf, startWorld, type TestTenant, type World } from "../../kit/gateway/world.ts";
import { begun, endCommands, finished, readBulk, stepNow, steppedUntil } from "./finished.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_STANDARD: "off", RATE_LIMIT_TENANT: "off" }, { inProcess: true });
});
afterAll(() => world.close());

const PING = { operation: "device.command", params: { type: "ping" } } as const;
interface Place {
  readonly tenant: TestTenant;
  readonly owner: Caller;
  readonly deviceIds: readonly string[];
}
const open = async (devices: number, tags: readonly string[] = []): Promise<Place> => {
  const tenant = await world.tenant();
  const owner = await tenant.user("owner");
  const made = await world.call(owner, "POST", "/v1/devices/provision", { body: { count: devices, tags } });
  return { tenant, owner, deviceIds: made.body.data.map(({ device_id }: { device_id: string }) => device_id) };
};
const post = (as: Caller, body: object, path = "") => world.call(as, "POST", `/v1/bulk-operations${path}`, { body });
const create = async (as: Caller, body: object): Promise<string> => {
  const { status, body: answer } = await post(as, body);
  expect([status, answer.code]).toEqual([201, undefined]);
  return answer.data.operationId;
};
const itemsOf = async (as: Caller, operationId: string, query = ""): Promise<Record<string, string>[]> =>
  (await world.call(as, "GET", `/v1/bulk-operations/${operationId}/items?pageSize=500${query}`)).body.data;
const commandsOf = async ({ tenant }: Place): Promise<number> =>
  (await world.sql.query("select count(*)::int as n from commands where tenant_id = $1", [tenant.tenantId])).rows[0].n;
const eventsOf = async (operationId: string) =>
  (await world.sql.query("select type from outbox_events where subject_id = $1 order by position", [operationId])).rows.map(({ type }) => type);
/** An operator who sees the devices with the tag. */
const limitedTo = async ({ tenant }: Place, tag: string) => {
  const userId = newId("usr");
  const { token } = await world.app.mint({ userId, email: emailOf(userId), tenantId: tenant.tenantId, role: "operator", ttlSeconds: 3_600 });
  const { rows } = await world.sql.query("update memberships set selector = $2 where user_id = $1 returning member_id", [
    userId,
    { deviceIds: [], tags: [tag] },
  ]);
  const memberId: string = rows[0].member_id;
  return { memberId, as: { kind: "user", headers: () => ({ authorization: `Bearer ${token}` }) } as Caller };
};

describe("a limited operator", () => {
  test("commands the 40 devices that she sees of 100, and nothing tells the other 60 from unknown ones", async () => {
    const seen = await open(40, ["site:porto"]);
    const hidden = (await world.call(seen.owner, "POST", "/v1/devices/provision", { body: { count: 60 } })).body.data.map(
      ({ device_id }: { device_id: string }) => device_id,
    );
    const { as } = await limitedTo(seen, "site:porto");
    const unknown = hidden.map(() => newId("dev"));
    const answers = [];
    for (const others of [hidden, unknown]) {
      const target = { deviceIds: [...seen.deviceIds, ...others] };
      const preview = (await post(as, { ...PING, target }, "/preview")).body.data;
      const operationId = await create(as, { ...PING, target, await: "ordered" });
      const { counts } = await finished(world, as, operationId);
      expect(counts).toMatchObject({ total: 100, succeeded: 40, skipped: 60 });
      const items = (await itemsOf(as, operationId)).map(({ n, targetId, status, code, message }) => [
        n,
        others.includes(targetId ?? "") ? "other" : targetId,
        status,
        code,
        message,
      ]);
      answers.push([preview.total, preview.refused, items]);
    }
    expect(answers[0]).toEqual(answers[1]);
    expect(await commandsOf(seen)).toBe(80);
    expect((await post(as, { ...PING, target: { deviceIds: hidden } })).body.code).toBe("BULK_NO_TARGETS");
  });

  test("stops at what she no longer sees, and altogether once she has lost the permission", async () => {
    const place = await open(6, ["site:faro"]);
    const { as, memberId } = await limitedTo(place, "site:faro");
    const operationId = await create(as, { ...PING, target: { deviceIds: place.deviceIds }, maxParallel: 2 });
    await begun(world, place.owner, operationId);
    await world.call(place.owner, "PATCH", `/v1/members/${memberId}`, { body: { selector: { tags: ["site:nowhere"] } } });
    await endCommands(world, operationId);
    const ended = await finished(world, place.owner, operationId);
    expect(ended).toMatchObject({ status: "completed", counts: { succeeded: 2, skipped: 4, failed: 0 } });
    expect((await itemsOf(place.owner, operationId, "&status=skipped")).map(({ code }) => code)).toEqual(Array(4).fill("NOT_VISIBLE"));

    await world.sql.query("update devices set tags = array['site:nowhere'] where tenant_id = $1", [place.tenant.tenantId]);
    const second = await create(as, { ...PING, target: { deviceIds: place.deviceIds }, maxParallel: 2 });
    await begun(world, place.owner, second);
    await world.call(place.owner, "DELETE", `/v1/members/${memberId}`);
    expect(await steppedUntil(world, place.owner, second, ({ status }) => status === "paused")).toMatchObject({
      status: "paused",
      statusReason: "ACCESS_LOST",
      // No device had the two commands yet.
      counts: { running: 0, pending: 6 },
    });
  });

  test.each([
    ["device.tag", { add: ["mine"] }],
    ["device.move", { deploymentId: "dep_any" }],
    ["device.fleet", { add: ["flt_any"] }],
  ])("may not use %s, which decides who sees a device", async (operation, params) => {
    const place = await open(1, ["site:beja"]);
    const { as } = await limitedTo(place, "site:beja");
    const answer = await post(as, { operation, params, target: { deviceIds: place.deviceIds } });
    expect([answer.status, answer.body.details?.reason]).toEqual([403, "limited_access"]);
  });

  test("sees her own operations only", async () => {
    const place = await open(1, ["site:evora"]);
    const operationId = await create(place.owner, { ...PING, target: { deviceIds: place.deviceIds } });
    const { as } = await limitedTo(place, "site:evora");
    expect((await world.call(as, "GET", `/v1/bulk-operations/${operationId}`)).body.code).toBe("BULK_OPERATION_NOT_FOUND");
    expect((await world.call(as, "GET", "/v1/bulk-operations")).body.data).toEqual([]);
  });
});

describe("an operation", () => {
  test("tags the devices of a selector in few statements, tells of each, and ends with counts that add up", async () => {
    const place = await open(30, ["floor:1"]);
    const operationId = await create(place.owner, {
      operation: "device.tag",
      params: { add: ["kiosk"], remove: ["floor:1"] },
      target: { selector: { tags: ["floor:1"] } },
    });
    const ended = await finished(world, place.owner, operationId);
    expect(ended).toMatchObject({ status: "completed", counts: { total: 30, succeeded: 30, pending: 0, running: 0, failed: 0, skipped: 0, cancelled: 0 } });
    const { rows } = await world.sql.query("select distinct tags from devices where tenant_id = $1", [place.tenant.tenantId]);
    expect(rows).toEqual([{ tags: ["kiosk"] }]);
    const told = await world.sql.query("select count(*)::int as n from outbox_events where tenant_id = $1 and type = 'device.changed'", [
      place.tenant.tenantId,
    ]);
    expect(told.rows[0].n).toBe(30);
    expect(await eventsOf(operationId)).toEqual(["bulk_operation.started", "bulk_operation.completed"]);
  });

  test("waits for the ends of its commands, repeats what failed in a child, and leaves itself as it was", async () => {
    const place = await open(3);
    const operationId = await create(place.owner, { ...PING, target: { deviceIds: place.deviceIds } });
    expect(await begun(world, place.owner, operationId)).toMatchObject({ status: "running", counts: { running: 3 }, actions: ["pause", "cancel"] });
    await endCommands(world, operationId, "failed");
    const ended = await finished(world, place.owner, operationId);
    expect(ended).toMatchObject({ status: "completed_with_errors", counts: { failed: 3 }, actions: ["retryFailed"] });
    expect((await itemsOf(place.owner, operationId)).map(({ code }) => code)).toEqual(["NO_LUCK", "NO_LUCK", "NO_LUCK"]);
    expect((await post(place.owner, { codes: ["OTHER"] }, `/${operationId}/retry-failed`)).body.code).toBe("BULK_NO_TARGETS");
    const child = (await post(place.owner, { codes: ["NO_LUCK"] }, `/${operationId}/retry-failed`)).body.data;
    expect(child).toMatchObject({ retryOf: operationId, target: { kind: "retry" } });
    await begun(world, place.owner, child.operationId);
    await endCommands(world, child.operationId);
    expect(await finished(world, place.owner, child.operationId)).toMatchObject({ status: "completed", counts: { total: 3, succeeded: 3 } });
    expect(await readBulk(world, place.owner, operationId)).toEqual(ended);
  });

  test("stops as failed when too many items fail, and begins none after that", async () => {
    const place = await open(20);
    const body = { ...PING, target: { deviceIds: place.deviceIds }, maxParallel: 5, failureThreshold: { percent: 10 } };
    const operationId = await create(place.owner, body);
    await begun(world, place.owner, operationId);
    await endCommands(world, operationId, "failed");
    const ended = await finished(world, place.owner, operationId);
    expect(ended).toMatchObject({ status: "failed", statusReason: "THRESHOLD", counts: { failed: 5, cancelled: 15 } });
    expect(await commandsOf(place)).toBe(5);
    expect(await eventsOf(operationId)).toEqual(["bulk_operation.started", "bulk_operation.failed"]);
  });

  test("begins nothing while it is paused, and nothing more once it is cancelled", async () => {
    const place = await open(6);
    const operationId = await create(place.owner, { ...PING, target: { deviceIds: place.deviceIds }, maxParallel: 2 });
    await begun(world, place.owner, operationId);
    expect((await post(place.owner, { reason: "lunch" }, `/${operationId}/pause`)).body.data).toMatchObject({
      status: "paused",
      statusReason: "lunch",
      actions: ["resume", "cancel"],
    });
    await endCommands(world, operationId);
    const quiet = await steppedUntil(world, place.owner, operationId, ({ counts }) => counts.running === 0);
    expect(quiet.counts).toMatchObject({ succeeded: 2, pending: 4, running: 0 });
    expect((await post(place.owner, {}, `/${operationId}/pause`)).body).toMatchObject({
      code: "INVALID_STATE_TRANSITION",
      details: { from: "paused", allowed: ["pending", "cancelled"] },
    });
    await post(place.owner, {}, `/${operationId}/resume`);
    await begun(world, place.owner, operationId);
    await post(place.owner, { reason: "the wrong ones" }, `/${operationId}/cancel`);
    await endCommands(world, operationId);
    const ended = await finished(world, place.owner, operationId);
    expect(ended).toMatchObject({ status: "cancelled", statusReason: "the wrong ones", counts: { succeeded: 4, cancelled: 2 } });
    expect(await commandsOf(place)).toBe(4);
  });

  test("takes back the commands that no device has got when it is stopped, and lets the others run to their end", async () => {
    const place = await open(4);
    const operationId = await create(place.owner, { ...PING, target: { deviceIds: place.deviceIds } });
    await begun(world, place.owner, operationId);
    const [first, second, third] = (await itemsOf(place.owner, operationId)).map(({ commandId }) => commandId);
    await world.sql.query("update command_queue set status = 'acknowledged', sent_at = now() where command_id = $1", [first]);
    await post(place.owner, {}, `/${operationId}/pause`);
    const quiet = await steppedUntil(world, place.owner, operationId, ({ counts }) => counts.running < 4);
    expect(quiet).toMatchObject({ status: "paused", counts: { running: 1, pending: 3, cancelled: 0 } });
    expect((await world.call(place.owner, "GET", `/v1/commands/${second}`)).body.data.status).toBe("canceled");
    await post(place.owner, {}, `/${operationId}/resume`);
    await steppedUntil(world, place.owner, operationId, ({ counts }) => counts.running === 4);
    const again = await itemsOf(place.owner, operationId);
    expect(again.map(({ attempt }) => attempt)).toEqual([1, 2, 2, 2]);
    expect(again[2]?.commandId).not.toBe(third);
    await post(place.owner, { reason: "the wrong ones" }, `/${operationId}/cancel`);
    await steppedUntil(world, place.owner, operationId, ({ counts }) => counts.running === 1);
    await endCommands(world, operationId);
    expect(await finished(world, place.owner, operationId)).toMatchObject({ status: "cancelled", counts: { succeeded: 1, cancelled: 3 } });
    expect((await itemsOf(place.owner, operationId)).map(({ code }) => code)).toEqual([null, "WITHDRAWN", "WITHDRAWN", "WITHDRAWN"]);
  });

  test("expires: what has not begun by then is cancelled", async () => {
    const place = await open(2);
    const startAt = new Date(Date.now() + 3_600_000).toISOString();
    const operationId = await create(place.owner, { ...PING, target: { deviceIds: place.deviceIds }, startAt });
    await stepNow(world, operationId);
    expect((await readBulk(world, place.owner, operationId)).status).toBe("pending");
    await world.sql.query("update bulk_operations set expires_at = now() - interval '1 s' where operation_id = $1", [operationId]);
    expect(await finished(world, place.owner, operationId)).toMatchObject({ status: "cancelled", statusReason: "EXPIRED", counts: { cancelled: 2 } });
    expect((await itemsOf(place.owner, operationId)).map(({ code }) => code)).toEqual(["EXPIRED", "EXPIRED"]);
  });

  test("wants the number of devices before it deletes them", async () => {
    const place = await open(2);
    const body = (confirm: number) => ({ operation: "device.delete", params: { confirm }, target: { deviceIds: place.deviceIds } });
    expect((await post(place.owner, body(3))).body.details).toMatchObject({ reason: "not_confirmed", found: 2 });
    expect((await finished(world, place.owner, await create(place.owner, body(2)))).counts).toMatchObject({ succeeded: 2 });
  });
});

describe("uploaded items", () => {
  const part = (ids: readonly string[]) => ids.map((id) => `${JSON.stringify({ id })}\n`).join("");
  const send = (as: Caller, operationId: string, number: number, text: string, sha256 = createHash("sha256").update(text).digest("hex")) =>
    world.call(as, "POST", `/v1/bulk-operations/${operationId}/items?part=${number}&sha256=${sha256}`, {
      rawBody: text,
      headers: { "content-type": "application/x-ndjson" },
    });

  test("come in parts that may come again, and count once", async () => {
    const place = await open(4);
    const operationId = await create(place.owner, { ...PING, target: { upload: true }, await: "ordered" });
    expect((await post(place.owner, {}, `/${operationId}/start`)).body.code).toBe("BULK_NO_TARGETS");
    const [one, two] = [part(place.deviceIds.slice(0, 3)), part([...place.deviceIds.slice(2), "dev_unknown"])];
    expect((await send(place.owner, operationId, 2, two)).body).toMatchObject({ code: "BULK_PART_INVALID", details: { reason: "part 1 is missing" } });
    for (let again = 0; again < 2; again += 1) expect((await send(place.owner, operationId, 1, one)).body.data).toMatchObject({ part: 1, added: 3, total: 3 });
    expect((await send(place.owner, operationId, 1, two)).body.details.reason).toContain("another content");
    expect((await send(place.owner, operationId, 2, two)).body.data).toMatchObject({ added: 2, total: 5 });
    expect((await send(place.owner, operationId, 3, '{"id":"a"}\n{"id":1}\n')).body.details).toMatchObject({ line: 2 });
    await post(place.owner, {}, `/${operationId}/start`);
    expect(await finished(world, place.owner, operationId)).toMatchObject({ status: "completed", counts: { total: 5, succeeded: 4, skipped: 1 } });
    expect((await itemsOf(place.owner, operationId)).map(({ code }) => code)).toEqual([null, null, null, null, "NOT_FOUND"]);
  });

  test("are results as lines, in order and from any of them on", async () => {
    const place = await open(3);
    const operationId = await create(place.owner, { ...PING, target: { deviceIds: place.deviceIds }, await: "ordered" });
    await finished(world, place.owner, operationId);
    const read = async (query: string) => {
      const answer = await world.callOverHttp(place.owner, "GET", `/v1/bulk-operations/${operationId}/results${query}`);
      return String(answer.body)
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).n);
    };
    expect([await read(""), await read("?after=1&follow=true")]).toEqual([
      [1, 2, 3],
      [2, 3],
    ]);
  });
});
