// The apps of a fleet: orders that hang, reports that begin with the first order, and the summary of what was deployed.
import { describe, expect, test } from "vitest";
import { type Http, type HttpAnswer, NoAnswer } from "../../agent-sim/agent/index.ts";
import { allEnded, deployToFleet, ordersFor } from "../../agent-sim/fleet/deployments.ts";
import { type AppFailures, createFleetApps } from "../../agent-sim/fleet/fleet-apps.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { createFastTime } from "./clocks.ts";
import { desiredApp } from "./host/desired.ts";

const fleetApps = (failures: AppFailures, deaf = 0, mayHaveApps = false) => {
  let unheard = deaf;
  const calls: { readonly request: string; readonly body: unknown }[] = [];
  const call = async (method: string, path: string, body?: unknown): Promise<HttpAnswer> => {
    unheard -= 1;
    if (unheard >= 0) throw new NoAnswer("the gateway is down");
    calls.push({ request: `${method} ${path}`, body });
    return { status: 200, headers: {}, body: { data: path.endsWith("/secrets") ? { SECRET: "any secret" } : { desiredVersion: 7 } } };
  };
  return { calls, apps: createFleetApps({ time: createFastTime(), seed: 1, failures, call, mayHaveApps }) };
};
const context = { commandId: "cmd_1", signal: new AbortController().signal, traceparent: null, progress: () => undefined };
const order = (apps: ReturnType<typeof fleetApps>["apps"], port: number) =>
  apps.handlers["app.deploy"]?.run({ app: desiredApp(port), desiredVersion: 7 }, context) ?? Promise.reject(new Error("no such command"));

test("an agent reports nothing before its first order, and then what runs and the version that it carries out", async () => {
  const { apps, calls } = fleetApps({});
  expect(calls).toEqual([]);
  await order(apps, 10_000);
  await eventually(() => expect(calls.at(-1)?.body).toMatchObject({ version: 7, apps: [{ state: "running", revision: 1 }] }));
  expect(calls.at(-1)?.request).toBe("PUT /v1/agent/reported-state");
  apps.stop();
});
test("an agent whose apps an earlier process may have deployed asks for them", async () => {
  const { apps, calls } = fleetApps({}, 0, true);
  await eventually(() => expect(calls.map(({ request }) => request)).toContain("GET /v1/agent/desired-state"));
  expect(calls[0]).toMatchObject({ request: "PUT /v1/agent/reported-state", body: { version: 0, apps: [] } });
  apps.stop();
});
test("an order that hangs never ends and installs nothing, but other apps go on", async () => {
  const { apps } = fleetApps({ hanging: 0.5 });
  const ends = new Set<number>();
  const ports = Array.from({ length: 40 }, (_, n) => 10_000 + n);
  for (const port of ports) void order(apps, port).then(() => ends.add(port));
  await eventually(() => {
    expect(ends.size).toBeGreaterThan(8);
    expect(apps.report().map(({ state }) => state)).toEqual(Array.from(ends, () => "running"));
  });
  expect(ends.size).toBeLessThan(32);
  apps.stop();
});
test("an order waits for its secrets while the gateway is down", async () => {
  const { apps } = fleetApps({}, 3);
  expect(await order(apps, 10_000)).toMatchObject({ app: { state: "running", failure: null } });
  apps.stop();
});

describe("the summary of deployments to a fleet", () => {
  const orders = ordersFor([{ deviceId: "dev_1" }], 3, 60);
  const ends: Readonly<Record<string, object>> = {
    dep_00000000000000000000000000: { status: "active", failure: null, updatedAt: new Date(2_000).toISOString() },
    dep_00000000000000000000000001: {
      status: "failed",
      failure: { stage: null, reason: "EXITED", message: "", revision: 1, commandId: null, lines: [] },
      updatedAt: new Date(3_000).toISOString(),
    },
    dep_00000000000000000000000002: { status: "deploying", failure: null, updatedAt: new Date(3_000).toISOString() },
  };
  const http: Http = {
    close: () => undefined,
    call: async ({ method, body }) => {
      const index = method === "POST" ? orders.findIndex(({ appName }) => body?.includes(appName)) : 0;
      const shown = Object.entries(ends).map(([deploymentId, end]) => ({ deploymentId, ...end }));
      const pagination = { page: 1, pageSize: 100, hasMore: false, hasNext: false, hasPrev: false, limit: 100, nextCursor: null };
      return method === "POST"
        ? { status: 201, headers: {}, body: { data: shown[index] } }
        : { status: 200, headers: {}, body: { data: shown, meta: { pagination } } };
    },
  };
  const time = { ...createFastTime(), wallMs: () => 1_000 };
  const members = [{ deviceId: "dev_1", agentId: "agt_1", tenantId: "ten_1", secret: "", fingerprint: "" }];
  test("tells what is active after which time, what failed for which reason, and what is still open", async () => {
    const credentials = { apiKey: "", tenantId: "ten_1" };
    const summary = await deployToFleet({ http, credentials, members, perDevice: 3, time, withinMs: 0, signal: new AbortController().signal });
    expect(summary).toEqual({ ordered: 3, active: 1, failed: { EXITED: 1 }, open: 1, toActiveMs: { p50: 1_000, p99: 1_000 }, allActiveMs: 1_000 });
    expect([allEnded(summary, true), allEnded({ ...summary, open: 0 }, true), allEnded({ ...summary, open: 0 }, false)]).toEqual([false, true, false]);
  });
  test("each device gets one of each template on a port of its own", () => {
    expect(new Set(orders.map(({ appName }) => appName)).size).toBe(3);
    expect(new Set(orders.map(({ configuration }) => configuration["port"])).size).toBe(3);
  });
});
