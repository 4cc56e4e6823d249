// One trace from the portal's call through the queue to the agent's ack, over two nodes: the gateway's own spans, the command's way, the agent's work.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../kit/checks/eventually.ts";
import { handlersOf, openAgent } from "../../kit/gateway/agents.ts";
import { anonymous, type Device, startWorld, type World } from "../../kit/gateway/world.ts";
import { startRedis, type TestRedis } from "../../kit/stores/redis.ts";
import { nanos, newSpanId, newTraceId, readTrace, send, text } from "./kit.ts";

let redis: TestRedis;
let world: World;
let other: World;
beforeAll(async () => {
  redis = await startRedis();
  world = await startWorld({ REDIS_URL: redis.url, NODE_ID: "node-a" });
  other = await startWorld({ REDIS_URL: redis.url, NODE_ID: "node-b" }, { beside: world });
}, 120_000);
afterAll(async () => {
  await other.close();
  await world.close();
  await redis.close();
});

const parentOf = (traceId: string, flags = "01"): string => `00-${traceId}-${newSpanId()}-${flags}`;

/** An agent on the other node that tells of its work over OTLP, as a child of what the command names. */
const tracingAgent = async (device: Device) => {
  const { identity, deviceId } = device;
  const work = async (_payload: unknown, { traceparent }: { readonly traceparent: string | null }) => {
    const [, traceId = "", parentSpanId] = traceparent?.split("-") ?? [];
    const at = { startTimeUnixNano: nanos(), endTimeUnixNano: nanos(Date.now() + 1) };
    const spans = [{ traceId, spanId: newSpanId(), parentSpanId, name: "agent work", kind: 1, ...at }];
    const { status, body } = await send(other, device.as, spans, [text("service.name", "agent")]);
    if (status !== 200) throw new Error(JSON.stringify(body));
    return { done: true };
  };
  const handlers = { ...handlersOf(), ping: { long: false, cancelable: false, run: work } };
  const { agent, stop } = openAgent(other.url, { identity, deviceId }, { handlers });
  agent.start();
  await eventually(() => expect(agent.state).toBe("ready"));
  return { stop };
};

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever came back
const named = (trace: any, operation: string): any => {
  const found = trace.spans.filter((each: { operation: string }) => each.operation === operation);
  expect([operation, found.length]).toEqual([operation, 1]);
  return found[0];
};

describe("a command's trace", () => {
  test("is one tree: the portal's call, the command, its queue, its delivery with the agent's work, and its ack", async () => {
    const tenant = await world.tenant();
    const device = await tenant.device();
    const agent = await tracingAgent(device);
    const [owner, traceId] = [await tenant.user(), newTraceId()];
    const portal = parentOf(traceId);
    try {
      const queued = await world.call(owner, "POST", `/v1/devices/${device.deviceId}/commands`, {
        body: { type: "ping" },
        headers: { traceparent: portal, "x-request-id": "request-of-the-portal" },
      });
      expect(queued.status).toBe(201);
      const { commandId } = queued.body.data;
      const trace = await eventually(async () => {
        const read = await readTrace(other, owner, traceId);
        expect(read?.spans.map(({ operation }: { operation: string }) => operation)).toEqual(
          expect.arrayContaining(["commands.queue", "command ping", "agent work", "command ack"]),
        );
        expect(named(read, "command ping").attributes["mooring.command_status"]).toBe("succeeded");
        return read;
      });
      const call = named(trace, "commands.queue");
      const command = named(trace, "command ping");
      const [queue, deliver, ack] = ["command queue", "command deliver", "command ack"].map((name) => named(trace, name));
      const work = named(trace, "agent work");
      expect(call).toMatchObject({ parentSpanId: portal.split("-")[2], service: "mooring", kind: "server", source: "gateway", deviceId: device.deviceId });
      expect(command).toMatchObject({ parentSpanId: call.spanId, commandId, source: "command" });
      expect([queue, deliver, ack].map(({ parentSpanId }) => parentSpanId)).toEqual([command.spanId, command.spanId, command.spanId]);
      expect(work).toMatchObject({ parentSpanId: deliver.spanId, service: "agent", source: "sent", deviceId: device.deviceId });
      expect(new Set(trace.spans.map(({ spanId }: { spanId: string }) => spanId)).size).toBe(trace.spans.length);
      const found = await world.call(owner, "GET", "/v1/traces?requestId=request-of-the-portal");
      expect(found.body.data).toMatchObject([{ traceId, rootService: "mooring", rootOperation: "commands.queue", services: ["agent", "mooring"] }]);
      const ofDevice = await world.call(owner, "GET", `/v1/traces?deviceId=${device.deviceId}`);
      expect(ofDevice.body.data.map((each: { traceId: string }) => each.traceId)).toEqual([traceId]);
    } finally {
      await agent.stop();
    }
  });

  test("waits in the queue as long as the device is away", async () => {
    const tenant = await world.tenant();
    const [device, traceId] = [await tenant.device(), newTraceId()];
    const path = `/v1/devices/${device.deviceId}/commands`;
    await world.call(tenant.apiKey, "POST", path, { body: { type: "ping" }, headers: { traceparent: parentOf(traceId) } });
    const trace = await eventually(async () => {
      const read = await readTrace(world, tenant.apiKey, traceId);
      expect(read?.spans).toHaveLength(3);
      return read;
    });
    expect(named(trace, "command queue").attributes).toMatchObject({ "mooring.command_status": "queued" });
    expect(trace.spans.some(({ operation }: { operation: string }) => operation === "command ack")).toBe(false);
  });
});

describe("the gateway's own spans", () => {
  const traced = async (count: number, flags: string) => {
    const tenant = await world.tenant();
    const ids = Array.from(
      { length: count },
      (_, at) =>
        `${newTraceId().slice(0, 28)}${Math.floor(((at + 0.5) * 0x10000) / count)
          .toString(16)
          .padStart(4, "0")}`,
    );
    for (const traceId of ids) await world.call(tenant.apiKey, "GET", "/v1/traces/services", { headers: { traceparent: parentOf(traceId, flags) } });
    return tenant;
  };
  const countOf = async (tenantId: string): Promise<number> =>
    (await world.sql.query("select count(*)::int as spans from trace_spans where tenant_id = $1", [tenantId])).rows[0].spans;

  test("are all kept for a recorded trace, and a tenth for one that is not recorded", async () => {
    const recorded = await traced(20, "01");
    await eventually(async () => expect(await countOf(recorded.tenantId)).toBe(20));
    const others = await traced(20, "00");
    await eventually(async () => expect(await countOf(others.tenantId)).toBe(2));
  });

  test("no call without a trace and none without a tenant is kept", async () => {
    const tenant = await world.tenant();
    await world.call(tenant.apiKey, "GET", "/v1/devices");
    await world.call(anonymous, "GET", "/v1/devices", { headers: { traceparent: parentOf(newTraceId()) } });
    const marked = newTraceId();
    await world.call(tenant.apiKey, "GET", "/v1/devices", { headers: { traceparent: parentOf(marked) } });
    await eventually(async () => expect(await countOf(tenant.tenantId)).toBe(1));
  });

  test("are written when the node stops", async () => {
    const tenant = await world.tenant();
    const third = await startWorld({ REDIS_URL: redis.url, NODE_ID: "node-c" }, { beside: world, settings: { withoutJobs: true } });
    const traceId = newTraceId();
    await third.call(tenant.apiKey, "GET", "/v1/devices", { headers: { traceparent: parentOf(traceId) } });
    expect(await countOf(tenant.tenantId)).toBe(0);
    await third.close();
    expect(await countOf(tenant.tenantId)).toBe(1);
  });

  test("their fate is in the metrics", async () => {
    const tenant = await world.tenant();
    await send(world, tenant.apiKey, [{}]);
    const response = await fetch(`http://127.0.0.1:${world.app.internalPort()}/metrics`, { headers: { authorization: `Bearer ${world.app.internalToken}` } });
    const metrics = await response.text();
    for (const outcome of ["received", "rejected", "dropped"]) expect(metrics).toMatch(new RegExp(`mooring_trace_spans\\{outcome="${outcome}"\\} \\d+`));
  });
});
