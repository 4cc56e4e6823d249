// Suspending a tenant closes its sockets and no others.
import { expect, test } from "vitest";
import { attempt, online, type Refusal, startNode } from "./harness.ts";

test("open sockets close with 4503 at the next check, new ones are refused, and other tenants keep theirs", async () => {
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
  const refused = (await attempt(node, theirs)) as Refusal; // as: a suspended tenant's agent is refused
  expect(refused.status).toBe(403);
  expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(3_600);
  sockets[1]?.end();
  await node.close();
});
