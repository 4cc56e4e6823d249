// The simulator reads a real gateway's lists to their ends.
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHttp, createRandom, type Http, type RetryOptions, systemTime as time } from "../../agent-sim/agent/index.ts";
import { createAgentGroup } from "../../agent-sim/fleet/agent-group.ts";
import { createCommandTracker } from "../../agent-sim/fleet/command-tracker.ts";
import { createDeploymentPortal, untilDeployed } from "../../agent-sim/fleet/deployments.ts";
import { createFleetMachines } from "../../agent-sim/fleet/machines.ts";
import { createPortal, type PortalCredentials } from "../../agent-sim/fleet/portal.ts";
import { provision } from "../../agent-sim/fleet/provision.ts";
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

test("a key alone names its tenant", async () => {
  const { apiKey } = credentials();
  const portal = createPortal(http, { apiKey });
  const [device] = await portal.provision(["portal-test-2"], "portal-test-alone", retry(), { platform: "linux", tags: [] });
  expect(device).toMatchObject({ tenantId: credentials().tenantId, fingerprint: "portal-test-2" });
  expect((await createDeploymentPortal(http, { apiKey }).list(1, null, retry())).meta.pagination.hasMore).toBe(false);
});

test("a deployment that waits for another device does not keep the simulator waiting for its own", async () => {
  const portal = createDeploymentPortal(http, credentials());
  const [device] = await createPortal(http, credentials()).provision(["portal-test-3"], "portal-test-waits", retry(), { platform: "linux", tags: [] });
  const order = { deviceId: device?.deviceId ?? "", appName: "static-site", configuration: { port: 21_000 }, timeoutSeconds: 60 };
  const deploymentId = await portal.create(order, "portal-test-order", retry());
  expect(await untilDeployed(portal, [], retry())).toBe(true);
  expect(await untilDeployed(portal, [{ deploymentId }], { ...retry(), untilMs: 0 })).toBe(false);
});

test.each([
  ["a socket", 0],
  ["polls", 100],
])("a simulated device tells over %s the figures of its own machine", async (how, pollOnlyPct) => {
  const machines = createFleetMachines({ count: 1, seed: 1, time });
  const members = await provision(createPortal(http, credentials()), machines, retry());
  const group = createAgentGroup({
    ...{ url: world.url, members, machines, time, seed: 1, heartbeatSec: 1, pollOnlyPct, rampPerSecond: 10, onAlarm: () => undefined },
    tracker: createCommandTracker(time.elapsedMs),
    random: createRandom(1),
  });
  group.start();
  try {
    const user = await tenant.user();
    await expect
      .poll(async () => (await world.call(user, "GET", `/v1/devices/${members[0]?.deviceId}`)).body.data, { timeout: 20_000 })
      .toMatchObject({
        metrics: { cpu: expect.any(Number), disk: expect.any(Number), temperature: expect.any(Number) },
        tags: machines[0]?.tags,
        ...(how === "polls" ? {} : { hostname: "berlin-01-gw-01", arch: "arm64", agentVersion: machines[0]?.agentVersion }),
      });
  } finally {
    await group.stop();
  }
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
