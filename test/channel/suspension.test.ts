// A suspended tenant loses its sockets, whoever else is connected keeps theirs.
import { expect, test } from "vitest";
import { attempt, online, type Refusal, startNode } from "./harness.ts";

test("live sockets close with 4503 at the next look, new ones are refused, others stay", async () => {
  const node = await startNode();
  const [theirs, other] = [await node.device(), await node.device()];
  const sockets = [await online(node, theirs), await online(node, other)];
  const facts = node.tenants.get(theirs.tenantId);
  if (facts === undefined) throw new Error("no such tenant");
  node.tenants.set(theirs.tenantId, { ...facts, status: "suspended" });
  node.channel.tick();
  expect(sockets[0]?.isOpen()).toBe(true);
  node.clock.advance(3_000);
  node.channel.tick();
  expect(await sockets[0]?.closed()).toEqual({ code: 4503, reason: expect.stringMatching(/^tenant_suspended;ra=\d+$/) });
  expect(sockets[1]?.isOpen()).toBe(true);
  const refused = (await attempt(node, theirs)) as Refusal; // as: a suspended tenant's agent is not taken in
  expect(refused.status).toBe(403);
  expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(3_600);
  sockets[1]?.end();
  await node.close();
});
