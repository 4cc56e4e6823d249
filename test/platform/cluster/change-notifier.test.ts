// Change notices between nodes: each tenant is named once per tick, a node does not hear itself, and a flood is split into messages that fit.
import { expect, test } from "vitest";
import type { BusMessage } from "../../../server/core/ports/pub-sub.ts";
import { openMemoryBus } from "../../../server/platform/cluster/bus-memory.ts";
import { createChangeNotifier } from "../../../server/platform/cluster/change-notifier.ts";
import { eventually } from "../../kit/checks/eventually.ts";

const setUp = async () => {
  const bus = openMemoryBus();
  const said: BusMessage[] = [];
  await bus.subscribe("tenants", (message) => said.push(message));
  const node = async (nodeId: string) => {
    const notifier = createChangeNotifier({ bus, nodeId, onError: () => undefined });
    const heard: string[] = [];
    notifier.listen((tenantIds) => heard.push(...tenantIds));
    await notifier.open();
    return { notifier, heard };
  };
  return { said, one: await node("one"), two: await node("two") };
};

test("however often a tenant changes within a tick, other nodes hear of it once and the sender never", async () => {
  const { said, one, two } = await setUp();
  for (let n = 0; n < 1_000; n += 1) one.notifier.changed(n % 2 === 0 ? "ten_a" : "ten_b");
  await eventually(() => expect(two.heard).toEqual(["ten_a", "ten_b"]));
  expect([said.length, one.heard]).toEqual([1, []]);
  one.notifier.changed("ten_a");
  await eventually(() => expect(two.heard).toEqual(["ten_a", "ten_b", "ten_a"]));
});

test("a thousand tenants that change at once are all named, in messages that fit the bus", async () => {
  const { said, one, two } = await setUp();
  const ids = Array.from({ length: 1_200 }, (_, n) => `ten_${String(n).padStart(26, "0")}`);
  for (const id of ids) one.notifier.changed(id);
  await eventually(() => expect(new Set(two.heard)).toEqual(new Set(ids)));
  expect(said.length).toBe(ids.length / 25);
});
