// 3,000 connections that break off in a burst leave their carrier alone, and the control that aborts them by RST_STREAM loses it.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AskedService, abortMany, startAskedService } from "../../edge/behind-carrier.ts";
import { startEdgeRig } from "../../edge/rig.ts";

let service: AskedService;
beforeAll(async () => {
  service = await startAskedService();
});
afterAll(() => service.close());

test("3,000 aborts in a burst cost no other connection anything", { timeout: 120_000 }, async () => {
  const rig = await startEdgeRig();
  await rig.agent("dev_1", { tun_a: service.port });
  expect(await abortMany(rig, service, 3_000)).toBe(0);
  expect(rig.carriers.list("dev_1")).toHaveLength(1);
  await rig.close();
});

test("control: aborted by RST_STREAM, the same burst ends the carrier", { timeout: 120_000 }, async () => {
  const rig = await startEdgeRig({ settings: { abortByReset: true } });
  await rig.agent("dev_1", { tun_a: service.port });
  const [first] = rig.carriers.list("dev_1");
  const failures = await abortMany(rig, service, 3_000);
  const [last] = rig.carriers.list("dev_1");
  expect(failures > 0 || first?.carrierId !== last?.carrierId).toBe(true);
  await rig.close();
});
