// How a device pairs with a person's approval, against a real gateway.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { pairByApproval } from "../../agent-sim/agent/index.ts";
import { startWorld, type World } from "../kit/gateway/world.ts";
import { createFastTime } from "./clocks.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_PAIRING: "off" });
});
afterAll(() => world.close());

const pair = (decide: (code: string) => Promise<unknown>) =>
  pairByApproval({ url: world.url, fingerprint: randomUUID(), name: "edge", time: createFastTime(), onCode: ({ code }) => void decide(code) });

test("a device shows its code and collects its identity when a person approves it", async () => {
  const tenant = await world.tenant();
  const user = await tenant.user();
  const identity = await pair((code) => world.call(user, "POST", "/v1/pairing/approve", { body: { code } }));
  expect(identity).toMatchObject({
    tenant_id: tenant.tenantId,
    shared_secret: expect.stringMatching(/^[\w-]{20,}$/),
    connect: { url: expect.stringMatching(/^ws:/) },
  });
});

test("a device gives up when a person rejects it", async () => {
  const user = await (await world.tenant()).user();
  await expect(pair((code) => world.call(user, "POST", "/v1/pairing/reject", { body: { code } }))).rejects.toThrow("the pairing ended as rejected");
});
