// Volumes: what an agent reports, whose it is, and what may be removed.
import { afterAll, beforeAll, expect, test } from "vitest";
import { newApp } from "../../contract/samples/apps.ts";
import { openStock, type Stock } from "../../contract/samples.ts";
import { startWorld, type World } from "../../kit/gateway/world.ts";

let world: World;
let stock: Stock;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_AGENT: "off" });
  stock = await openStock(world);
});
afterAll(() => world.close());

test("a device has the volumes of its last report, with a size only where it was measured, and keeps those of its apps from removal", async () => {
  const { deviceId, as } = stock.device;
  const { appId } = await newApp(stock, { deviceId });
  const report = (volumes: readonly object[]) => world.call(as, "PUT", `/v1/devices/${deviceId}/volumes`, { body: { volumes } });
  const read = async () => (await world.call(stock.owner, "GET", `/v1/devices/${deviceId}/volumes`)).body.data;
  const own = { name: `${appId}.data`, mountpoint: "/a", size: 7, sizeState: "exact", appId };
  const left = { name: "left.data", mountpoint: "/b", size: 9, sizeState: "incomplete", appId: "app_00000000000000000000" };
  expect((await report([own, left])).status).toBe(200);
  expect(await read()).toMatchObject({
    totalVolumes: 2,
    totalSize: 7,
    volumes: [
      { name: own.name, size: 7, orphaned: false, appId },
      { name: left.name, orphaned: true, appId: null, sizeState: "incomplete" },
    ],
  });
  const remove = (name: string) => world.call(stock.owner, "DELETE", `/v1/devices/${deviceId}/volumes/${name}?confirm=${name}`);
  expect((await remove(own.name)).body.code).toBe("VOLUME_IN_USE");
  expect((await remove(left.name)).status).toBe(204);
  expect((await read()).volumes[1].status).toBe("removing");
  const orders = (await world.call(as, "GET", `/v1/devices/${deviceId}/commands`)).body;
  const order = (orders.data ?? orders.commands).find(({ type }: { type: string }) => type === "volume.remove");
  await world.call(as, "POST", `/v1/devices/${deviceId}/commands/${order.id ?? order.commandId}/ack`, { body: { status: "failed", code: "VOLUME_BUSY" } });
  expect((await read()).volumes[1].status).toBe("present");
  const told = await world.sql.query("select data ->> 'reason' as reason from outbox_events where type = 'volume.removal_failed' and subject_id = $1", [
    deviceId,
  ]);
  expect(told.rows).toEqual([{ reason: "VOLUME_BUSY" }]);
  await report([own]);
  expect((await read()).volumes).toHaveLength(1);
  const many = Array.from({ length: 1_001 }, (_, n) => ({ name: `v${n}`, mountpoint: "/v" }));
  expect((await report(many)).body.code).toBe("VALIDATION_FAILED");
});
