// Traces as a collector receives them: the call, the command's creation within it, delivery and ack linked to it; and a collector that is down.
import { afterEach, describe, expect, test, vi } from "vitest";
import { type Log, silentLog } from "../../server/platform/telemetry/log.ts";
import { withTimeout } from "../../server/platform/timeout.ts";
import { connect, greet } from "../channel/harness.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { anonymous, startWorld, type World } from "../kit/gateway/world.ts";
import { type CollectedSpan, startCollector } from "../kit/net/collector.ts";
import { freePort } from "../kit/net/free-port.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const close of closing.splice(0).reverse()) await close();
});
const opened = <T extends { close(): Promise<unknown> }>(thing: T): T => {
  closing.push(() => thing.close());
  return thing;
};

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT = `00-${TRACE}-00f067aa0ba902b7-01`;

/** Exports spans early, by the operator's settings; the default is five seconds. */
const start = async (url: string, log?: Log, more: Readonly<Record<string, string>> = {}): Promise<World> => {
  vi.stubEnv("OTEL_BSP_SCHEDULE_DELAY", "50");
  vi.stubEnv("OTEL_BSP_EXPORT_TIMEOUT", "500");
  vi.stubEnv("OTEL_EXPORTER_OTLP_TIMEOUT", "400");
  return opened(await startWorld({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...more }, log === undefined ? {} : { log }));
};
const at = ({ url }: World) => ({ url: url.replace(/^http/, "ws"), clock: { now: () => new Date() } });

/** Queues a command that an agent receives over its socket and acknowledges. */
const runCommand = async (world: World, headers: Record<string, string> = {}) => {
  const tenant = await world.tenant();
  const device = await tenant.device();
  const socket = await connect(at(world), device);
  await greet(at(world), socket, device);
  const queued = await world.call(tenant.apiKey, "POST", `/v1/devices/${device.deviceId}/commands`, { body: { type: "ping" }, headers });
  expect(queued.status).toBe(201);
  const { data } = await socket.next("command");
  socket.say("ack", { commandId: data.command.commandId, status: "succeeded" });
  await socket.next("ack_ok");
  socket.end();
  return { commandId: queued.body.data.commandId as string, delivered: data.delivery as { traceparent?: string } };
};

const named = (spans: readonly CollectedSpan[], name: string, commandId?: string): CollectedSpan => {
  const found = spans.filter((span) => span.name === name && (commandId === undefined || span.attributes["mooring.command_id"] === commandId));
  expect(found.map((span) => span.name)).toEqual([name]);
  return found[0] as CollectedSpan;
};

describe("collector", () => {
  test("that is the gateway itself is refused, and the log says why", async () => {
    const port = await freePort();
    const told: unknown[] = [];
    const log: Log = {
      ...silentLog,
      warn: (fields: object, message: string) => void told.push([message, "error" in fields ? String(fields.error) : ""]),
    };
    const world = await start(`http://localhost:${port}`, log, { PORT: String(port) });
    await world.call(anonymous, "GET", "/v1/devices");
    await eventually(() => expect(told).toContainEqual([expect.stringContaining("does not accept spans"), expect.stringContaining("this service itself")]));
  });

  test("a call continues its caller's trace, and the command's delivery and ack link to the call", async () => {
    const collector = opened(await startCollector());
    const world = await start(collector.url);
    const { commandId, delivered } = await runCommand(world, { traceparent: TRACEPARENT });
    const { call, create, deliver, ack } = await eventually(() => ({
      call: named(collector.spans, "commands.queue"),
      create: named(collector.spans, "command create", commandId),
      deliver: named(collector.spans, "command deliver", commandId),
      ack: named(collector.spans, "command ack", commandId),
    }));
    expect([call.traceId, call.parentSpanId, call.service]).toEqual([TRACE, "00f067aa0ba902b7", "mooring"]);
    expect(call.attributes).toMatchObject({ "http.request.method": "POST", "http.response.status_code": "201" });
    expect([create.traceId, create.parentSpanId]).toEqual([TRACE, call.spanId]);
    for (const later of [deliver, ack]) {
      expect(later.links).toEqual([{ traceId: TRACE, spanId: call.spanId }]);
      expect([later.traceId === TRACE, later.parentSpanId]).toEqual([false, ""]);
      expect(later.endMs).toBeGreaterThanOrEqual(later.startMs);
    }
    expect(ack.attributes).toMatchObject({ "mooring.command_status": "succeeded", "mooring.channel": "ws" });
    // The agent gets the call's span as parent for its own.
    expect(delivered.traceparent).toBe(`00-${TRACE}-${call.spanId}-01`);
  });

  test("a call without a trace begins one and passes it to the agent", async () => {
    const collector = opened(await startCollector());
    const world = await start(collector.url);
    const { commandId, delivered } = await runCommand(world);
    const call = await eventually(() => named(collector.spans, "commands.queue"));
    expect([call.parentSpanId, delivered.traceparent]).toEqual(["", `00-${call.traceId}-${call.spanId}-01`]);
    await eventually(() => named(collector.spans, "command ack", commandId));
  });

  test("an unsampled trace is passed to the agent but not exported", async () => {
    const collector = opened(await startCollector());
    const world = await start(collector.url);
    const { delivered } = await runCommand(world, { traceparent: `00-${TRACE}-00f067aa0ba902b7-00` });
    expect(delivered.traceparent).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`));
    await world.call(anonymous, "GET", "/v1/info");
    await eventually(() => named(collector.spans, "general.info"));
    expect(collector.spans.filter(({ name, traceId }) => traceId === TRACE || name.startsWith("command "))).toEqual([]);
  });

  test("refusals have spans, health checks have none, and no span holds a secret", async () => {
    const collector = opened(await startCollector());
    const world = await start(collector.url);
    await world.call(anonymous, "GET", "/readyz");
    await world.call(anonymous, "GET", "/v1/devices?token=hunter2", { headers: { authorization: "Bearer hunter2" } });
    await world.call(anonymous, "GET", "/nowhere/hunter2");
    const refused = await eventually(() => named(collector.spans, "devices.list"));
    expect(refused).toMatchObject({ failed: false, attributes: { "http.response.status_code": "401", "error.type": "UNAUTHORIZED" } });
    await eventually(() => named(collector.spans, "HTTP GET"));
    expect(collector.spans.filter(({ name }) => name.startsWith("health"))).toEqual([]);
    expect(JSON.stringify(collector.spans)).not.toContain("hunter2");
  });

  test("a node that stops exports its remaining spans", async () => {
    const collector = opened(await startCollector());
    vi.stubEnv("OTEL_BSP_SCHEDULE_DELAY", "3600000");
    const world = await startWorld({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await world.call(anonymous, "GET", "/v1/info");
    expect(collector.spans).toEqual([]);
    await world.close();
    named(collector.spans, "general.info");
  });
});

describe("unavailable collector", () => {
  const recorded = () => {
    const lines: string[] = [];
    const note = (_fields: object, message: string): void => {
      if (message.includes("collector")) lines.push(message);
    };
    return { lines, log: { debug: note, info: note, warn: note, error: note } };
  };

  test("a collector that is down fails no call, and its loss and return are logged once each", async () => {
    const first = await startCollector();
    await first.close();
    const { lines, log } = recorded();
    const world = await start(first.url, log);
    for (let count = 0; count < 5; count += 1) {
      expect((await world.call(anonymous, "GET", "/v1/info")).status).toBe(200);
      await eventually(() => expect(lines).toHaveLength(1));
    }
    const back = opened(await startCollector({ port: first.port }));
    await eventually(async () => {
      await world.call(anonymous, "GET", "/v1/info");
      expect(back.spans.length).toBeGreaterThan(0);
    });
    await eventually(() => expect(lines).toHaveLength(2));
    expect(lines[1]).toContain("again");
  });

  test("a collector that never answers delays neither calls nor the shutdown", async () => {
    const silent = opened(await startCollector({ silent: true }));
    vi.stubEnv("OTEL_BSP_SCHEDULE_DELAY", "20");
    const world = await startWorld({ OTEL_EXPORTER_OTLP_ENDPOINT: silent.url, SHUTDOWN_SECONDS: "60" });
    for (let count = 0; count < 20; count += 1) expect((await world.call(anonymous, "GET", "/v1/info")).status).toBe(200);
    await withTimeout(world.close(), 30_000, "the gateway did not close");
  });
});
