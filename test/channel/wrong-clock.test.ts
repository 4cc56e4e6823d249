// A node whose own clock is an hour wrong serves agents, tokens and commands like any other, and says that its clock is wrong.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../server/core/clock.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { openAgent } from "../kit/gateway/agents.ts";
import { anonymous, startWorld, type World } from "../kit/gateway/world.ts";

const HOUR_MS = 3_600_000;

describe.each([
  ["ahead", HOUR_MS],
  ["behind", -HOUR_MS],
])("an hour %s", (word, offsetMs) => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld({}, { clock: { ...systemClock, now: () => new Date(Date.now() + offsetMs) } });
  });
  afterAll(() => world.close());

  test("an agent connects, and a command with a short deadline runs", async () => {
    const tenant = await world.tenant();
    const device = await tenant.device();
    const { agent, stop } = openAgent(world.url, device);
    agent.start();
    await eventually(() => expect(agent.state).toBe("ready"));
    expect(Math.abs(agent.clockOffsetMs)).toBeLessThan(10_000);
    const owner = await tenant.user("owner");
    const created = await world.call(owner, "POST", `/v1/devices/${device.deviceId}/commands`, {
      body: { type: "ping", ttlSeconds: 60 },
    });
    expect(created.status).toBe(201);
    const { commandId } = created.body.data;
    await eventually(async () =>
      expect((await world.call(owner, "GET", `/v1/commands/${commandId}`)).body.data).toMatchObject({ status: "succeeded", failureCode: null }),
    );
    await stop();
  });

  test("it is ready, and its health and metrics say how wrong its clock is", async () => {
    const { status, body } = await world.call(anonymous, "GET", "/v1/health/full");
    expect([status, body.data.checks]).toEqual([200, expect.arrayContaining([expect.objectContaining({ name: "clock", status: "degraded" })])]);
    const ready = await world.call(anonymous, "GET", "/v1/health/ready");
    const message = `is 3600 s ${word === "ahead" ? "ahead of" : "behind"} the database's, which counts; set the one that is wrong`;
    expect([ready.status, JSON.stringify(ready.body)]).toEqual([200, expect.stringContaining(message)]);
  });
});
