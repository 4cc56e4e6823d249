// A database that runs but answers too late: the caller learns so and when to come back, and nobody searches for an outage or a defect.
import { afterAll, beforeAll, expect, test } from "vitest";
import { asBearer, startWorld, type World } from "../kit/gateway/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ DATABASE_SESSIONS_LISTS: "40", DATABASE_TENANT_PERCENT: "100" });
});
afterAll(() => world.close());

test("a call that waits too long for a lock answers 503 with the time to come back, and changes nothing", async () => {
  const tenant = await world.tenant();
  const { deviceId } = await tenant.device();
  const path = `/v1/devices/${deviceId}/commands`;
  const holder = await world.sql.connect();
  try {
    await holder.query("begin");
    await holder.query("lock table commands in exclusive mode");
    const { status, body, headers } = await world.call(tenant.apiKey, "POST", path, { body: { type: "ping" } });
    expect({ status, code: body.code, retryable: body.retryable, details: body.details }).toEqual({
      status: 503,
      code: "DATABASE_BUSY",
      retryable: true,
      details: { reason: "lock_timeout" },
    });
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    await holder.query("rollback");
  } finally {
    holder.release();
  }
  expect((await world.call(tenant.apiKey, "GET", path)).body.data.items ?? (await world.call(tenant.apiKey, "GET", path)).body.data).toEqual([]);
});

test("a slow statement is answered with its own reason and counted by code", async () => {
  const tenant = await world.tenant();
  const { deviceId } = await tenant.device();
  // Fill the caches before the lock, so that only the operation's own statement waits.
  expect((await world.call(tenant.apiKey, "GET", `/v1/devices/${deviceId}`)).status).toBe(200);
  const holder = await world.sql.connect();
  const told = ({ status, body }: { status: number; body: { code: string; details?: unknown; message: string } }) => ({
    status,
    code: body.code,
    details: body.details,
  });
  try {
    await holder.query("begin");
    await holder.query("lock table devices in access exclusive mode");
    const reads = await Promise.all(Array.from({ length: 10 }, () => world.call(tenant.apiKey, "GET", `/v1/devices/${deviceId}`)));
    expect(reads.map(told)).toEqual(reads.map(() => ({ status: 503, code: "DATABASE_BUSY", details: { reason: "no_answer" } })));
  } finally {
    await holder.query("rollback");
    holder.release();
  }
  const text = await (await fetch(`http://127.0.0.1:${world.app.internalPort()}/metrics`, { headers: asBearer(world.app.internalToken).headers("") })).text();
  expect(Number(/^mooring_call_errors_total\{code="DATABASE_BUSY"\} (\d+)$/m.exec(text)?.[1])).toBeGreaterThanOrEqual(10);
});
