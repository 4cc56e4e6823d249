// The simulator reads a real gateway's lists to their ends.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHttp, type Http, type RetryOptions, systemTime as time } from "../../agent-sim/agent/index.ts";
import { createDeploymentPortal } from "../../agent-sim/fleet/deployments.ts";
import { createPortal, type PortalCredentials } from "../../agent-sim/fleet/portal.ts";
import { startWorld, type TestTenant, type World } from "../kit/gateway/world.ts";

let world: World;
let tenant: TestTenant;
let http: Http;
beforeAll(async () => {
  world = await startWorld();
  tenant = await world.tenant();
  http = createHttp(world.url, 4);
});
afterAll(async () => {
  http.close();
  await world.close();
});

const retry = (): RetryOptions => ({ time, random: Math.random, untilMs: time.elapsedMs() + 5_000 });
const credentials = (): PortalCredentials => {
  const headers = tenant.apiKey.headers("");
  return { apiKey: headers["x-api-key"] ?? "", tenantId: headers["x-svc-tenant-id"] ?? "" };
};

test("the simulator reads the pages of deployments", async () => {
  const portal = createDeploymentPortal(http, credentials());
  const { data, meta } = await portal.list(1, null, retry());
  expect(meta.pagination).toMatchObject({ hasMore: false, total: data.length });
});

test("the simulator reads the pages of a device's commands, and takes from the answer whether more follow", async () => {
  const portal = createPortal(http, credentials());
  const [device] = await portal.provision(["portal-test-1"], "portal-test-devices", retry(), { platform: "linux", tags: ["site:berlin"] });
  const deviceId = device?.deviceId ?? "";
  const queue = (n: number) =>
    portal.queue({ deviceId, type: "ping", payload: {}, requiresAck: true }, `portal-${n}`, { ...retry(), onAttempt: () => undefined });
  const { commandId } = await queue(0);
  expect(await portal.list(deviceId, 1, retry())).toEqual({ items: [{ commandId, status: "queued" }], hasMore: false });
  expect(await portal.list(deviceId, 2, retry())).toEqual({ items: [], hasMore: false });
});
