// A device whose agent has an app with a log that a test writes, and viewers of that log over REST.
import { setTimeout as wait } from "node:timers/promises";
import { systemTime } from "../../../agent-sim/agent/index.ts";
import type { Host } from "../../../agent-sim/host/host.ts";
import { createLogHandlers } from "../../../agent-sim/host/log-handlers.ts";
import { AppSpec, type LogBatch } from "../../../protocol/index.ts";
import { newId } from "../../../server/core/ids.ts";
import { eventually } from "../../kit/checks/eventually.ts";
import { openAgent } from "../../kit/gateway/agents.ts";
import type { Caller, Device, TestTenant, World } from "../../kit/gateway/world.ts";
import { reportOf } from "./kit.ts";

/** As a host names the time of a line. */
export const stamped = (text: string): string => `${new Date().toISOString()} ${text}`;

export interface FakeHost extends Pick<Host, "tail" | "follow"> {
  readonly lines: string[];
  /** The log of those that follow at this moment. */
  write(...lines: readonly string[]): void;
  followers(): number;
}

export const createFakeHost = (): FakeHost => {
  const lines: string[] = [];
  const readers = new Set<{ at: number }>();
  return {
    lines,
    write: (...more) => void lines.push(...more.map(stamped)),
    followers: () => readers.size,
    tail: async (_appId, count) => lines.slice(-count),
    follow: (_appId, signal) => {
      const reader = { at: lines.length };
      readers.add(reader);
      signal.addEventListener("abort", () => readers.delete(reader), { once: true });
      return (async function* () {
        while (!signal.aborted) {
          const line = lines[reader.at];
          if (line === undefined) await wait(5);
          else {
            reader.at += 1;
            yield line;
          }
        }
      })();
    },
  };
};

export const insertApp = async (
  world: World,
  tenant: TestTenant,
  device: Pick<Device, "deviceId">,
  { reported = true, deploymentId = null as string | null } = {},
): Promise<string> => {
  const appId = newId("app");
  const content = [JSON.stringify({ port: 8_701 }), JSON.stringify(AppSpec.parse({ kind: "process", program: "key-value", health: {} }))];
  await world.sql.query(
    `insert into apps (app_id, tenant_id, device_id, deployment_id, app_type, template_version, name, status, config, spec, desired_version, created_by, reported)
     values ($1, $2, $3, $4, 'key-value', '1.0.0', 'store', 'running', $5, $6, 1, 'user:u', $7)`,
    [appId, tenant.tenantId, device.deviceId, deploymentId, ...content, reported ? JSON.stringify(reportOf(appId)) : null],
  );
  return appId;
};

export interface LoggedDevice {
  readonly tenant: TestTenant;
  readonly device: Device;
  readonly appId: string;
  readonly host: FakeHost;
  stop(): Promise<void>;
  /** Connects a new agent of the device. */
  start(): Promise<void>;
}

/** The agent is connected to `url`. */
export const openLoggedDevice = async (world: World, url = world.url): Promise<LoggedDevice> => {
  const tenant = await world.tenant();
  const device = await tenant.device();
  const host = createFakeHost();
  let end = async (): Promise<void> => undefined;
  const start = async (): Promise<void> => {
    const logs = createLogHandlers({ host, time: systemTime, call: (...called) => agent.call(...called) });
    const { agent, stop } = openAgent(url, device, { handlers: logs.handlers });
    end = async () => {
      logs.stop();
      await stop();
    };
    agent.start();
    await eventually(() => {
      if (agent.state !== "ready") throw new Error(`the agent is ${agent.state}`);
    });
  };
  await start();
  return { tenant, device, host, start, appId: await insertApp(world, tenant, device), stop: () => end() };
};

export interface Viewer {
  readonly status: number;
  readonly batches: LogBatch[];
  texts(): readonly string[];
  readonly ended: Promise<void>;
  /** Of an answer that is no stream. */
  readonly body: { readonly code?: string; readonly details?: unknown } | null;
  close(): void;
}

/** Opens the stream and reads it to its end. */
export const openViewer = async (url: string, path: string, as: Caller): Promise<Viewer> => {
  const stop = new AbortController();
  const response = await fetch(`${url}/v1${path}`, { headers: as.headers(""), signal: stop.signal });
  const batches: LogBatch[] = [];
  const isStream = response.headers.get("content-type") === "text/event-stream";
  const body = isStream ? null : JSON.parse(await response.text());
  const read = async (): Promise<void> => {
    let text = "";
    for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part;
      const events = text.split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) if (event.startsWith("data: ")) batches.push(JSON.parse(event.slice("data: ".length)));
    }
  };
  const ended = isStream ? read() : Promise.resolve();
  ended.catch(() => undefined);
  return {
    ...{ status: response.status, batches, ended, body },
    texts: () => batches.flatMap(({ lines }) => lines.map(({ text }) => text)),
    close: () => stop.abort(),
  };
};
