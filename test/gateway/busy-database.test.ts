// A database that answers but will not get to it in time: the caller is told to come back, and is not blamed on a defect.
import { afterAll, beforeAll, expect, test } from "vitest";
import { startWorld, type World } from "../kit/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

test("a wait for a lock that is not given answers 503 with the time to come back, and changes nothing", async () => {
  const tenant = await world.tenant();
  const { deviceId } = await tenant.device();
  const path = `/v1/devices/${deviceId}/commands`;
  const holder = await world.sql.connect();
  try {
    await holder.query("begin");
    await holder.query("lock table commands in exclusive mode");
    const { status, body, headers } = await world.call(tenant.apiKey, "POST", path, { body: { type: "ping" } });
    expect({ status, code: body.code, retryable: body.retryable }).toEqual({ status: 503, code: "DATABASE_UNAVAILABLE", retryable: true });
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    await holder.query("rollback");
  } finally {
    holder.release();
  }
  expect((await world.call(tenant.apiKey, "GET", path)).body.data.items ?? (await world.call(tenant.apiKey, "GET", path)).body.data).toEqual([]);
});
