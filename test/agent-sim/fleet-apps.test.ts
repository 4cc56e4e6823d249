// The apps of a fleet's agent: orders that hang, and reports that begin with the first order.
import { expect, test } from "vitest";
import { type HttpAnswer, NoAnswer } from "../../agent-sim/agent/index.ts";
import { type AppFailures, createFleetApps } from "../../agent-sim/fleet/fleet-apps.ts";
import { eventually } from "../kit/eventually.ts";
import { createFastTime } from "./clocks.ts";
import { desiredApp } from "./host/desired.ts";

const fleetApps = (failures: AppFailures, deaf = 0) => {
  let unheard = deaf;
  const calls: { readonly request: string; readonly body: unknown }[] = [];
  const call = async (method: string, path: string, body?: unknown): Promise<HttpAnswer> => {
    unheard -= 1;
    if (unheard >= 0) throw new NoAnswer("the gateway is down");
    calls.push({ request: `${method} ${path}`, body });
    return { status: 200, headers: {}, body: { data: path.endsWith("/secrets") ? { SECRET: "any secret" } : { desiredVersion: 7 } } };
  };
  return { calls, apps: createFleetApps({ time: createFastTime(), seed: 1, failures, call }) };
};
const context = { signal: new AbortController().signal, traceparent: null, progress: () => undefined };
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
