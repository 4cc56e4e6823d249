// How a device pairs with a person's approval, against a real gateway.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { enrollDevice, pairByApproval, type ShownCode } from "../../agent-sim/agent/index.ts";
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

describe("a device with a token that needs approval", () => {
  const create = async (more: object = {}) => {
    const tenant = await world.tenant();
    const owner = await tenant.user();
    const body = { name: "asks", approval: "required", tags: ["site:lisbon"], ...more };
    const made = await world.call(owner, "POST", "/v1/pairing/enrollment-tokens", { body });
    const waiting = async () => (await world.call(owner, "GET", "/v1/pairing/requests")).body.data as { requestId: string; comparison: string }[];
    const decide = async (what: "approve" | "reject", { comparison }: ShownCode) => {
      const [request] = await waiting();
      expect(request?.comparison).toBe(comparison);
      await world.call(owner, "POST", `/v1/pairing/${what}`, { body: { requestId: request?.requestId } });
    };
    const enroll = (onCode: (shown: ShownCode) => void) =>
      enrollDevice({ url: world.url, enrollmentToken: made.body.data.token, fingerprint: randomUUID(), name: "edge", time: createFastTime(), onCode });
    return { tenant, owner, tokenId: made.body.data.tokenId as string, decide, enroll };
  };

  test("waits, and collects the identity that a person approved in the list, with the token's tags", async () => {
    const { tenant, owner, decide, enroll } = await create();
    const identity = await enroll((shown) => void decide("approve", shown));
    expect(identity.tenant_id).toBe(tenant.tenantId);
    const device = await world.call(owner, "GET", `/v1/devices/${identity.device_id}`);
    expect(device.body.data).toMatchObject({ name: "edge", tags: ["site:lisbon"] });
  });

  test("gives up when a person rejects it", async () => {
    const { decide, enroll } = await create();
    await expect(enroll((shown) => void decide("reject", shown))).rejects.toThrow("the pairing ended as rejected");
  });

  test("asks again when its code has ended, and gives up when its token was revoked", async () => {
    const { owner, tokenId, enroll } = await create();
    const revoked = enroll(() => void world.call(owner, "DELETE", `/v1/pairing/enrollment-tokens/${tokenId}`));
    await expect(revoked).rejects.toMatchObject({ code: "ENROLLMENT_TOKEN_INVALID" });
  });
});
