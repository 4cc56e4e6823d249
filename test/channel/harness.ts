// Starts a node for a test: real PostgreSQL, real features devices and commands, real sockets, and a clock that the test controls.

import WebSocket from "ws";
import { type AgentIdentity, CONNECT_PATHS, HEADERS, type ServerFrame, SUBPROTOCOL, sign, signedHeaders, type TenantId } from "../../protocol/index.ts";
import type { Clock } from "../../server/core/clock.ts";
import { systemClock } from "../../server/core/clock.ts";
import { newId } from "../../server/core/ids.ts";
import { nothingBlocked, unwatched } from "../../server/core/ports/security.ts";
import type { SignatureMemory } from "../../server/core/ports/signature-memory.ts";
import type { TenantFacts } from "../../server/core/scope.ts";
import { createAuditTrail } from "../../server/features/audit/index.ts";
import { createCommands } from "../../server/features/commands/index.ts";
import { deploymentGroups } from "../../server/features/deployments/index.ts";
import { createAgentSessions, createDevices, deviceSettings } from "../../server/features/devices/index.ts";
import { createLimits } from "../../server/gateway/call/rate-limits.ts";
import { type AgentChannelDeps, createAgentChannel } from "../../server/gateway/channel/agent-channel.ts";
import { createDeviceNotifier, nodeChannel } from "../../server/gateway/channel/device-notifier.ts";
import { type ChannelSettings, channelSettings, SOCKET_LIMITS } from "../../server/gateway/channel/settings.ts";
import { createRequestInfo } from "../../server/gateway/http/request-info.ts";
import { listen } from "../../server/gateway/uws/listen.ts";
import { registerAgentSocket } from "../../server/gateway/uws/socket.ts";
import { openMemoryBus, openMemorySessionOwners } from "../../server/platform/cluster/bus-memory.ts";
import { createMemoryRateLimiter } from "../../server/platform/cluster/rate-limit.ts";
import { createBatch } from "../../server/platform/database/batch.ts";
import { openDb } from "../../server/platform/database/db.ts";
import { databaseError } from "../../server/platform/database/db-errors.ts";
import { createSecretBox } from "../../server/platform/keys/secrets.ts";
import { createOutbox } from "../../server/platform/outbox/outbox.ts";
import { createSignatureMemory } from "../../server/platform/signature-memory.ts";
import { silentLog } from "../../server/platform/telemetry/log.ts";
import { insertOpenCommand } from "../kit/gateway/open-commands.ts";
import { createTestDatabase, namedStatements } from "../kit/stores/database.ts";
import { undeclared } from "./frames/declared.ts";

/** Runs with the real clock; `advance` moves it forward and `freeze` stops its time of day. */
export const createShiftedClock = (): Clock & { advance(ms: number): void; freeze(): Date } => {
  let shift = 0;
  let frozen: Date | null = null;
  return {
    now: () => new Date(frozen ?? Date.now() + shift),
    elapsed: () => performance.now() + shift,
    advance: (ms) => {
      shift += ms;
    },
    freeze: () => {
      frozen = new Date(Date.now() + shift);
      return frozen;
    },
  };
};

export interface NodeOptions {
  readonly settings?: Partial<ChannelSettings>;
  readonly databaseUrl?: string;
  readonly bus?: ReturnType<typeof openMemoryBus>;
  readonly owners?: ReturnType<typeof openMemorySessionOwners>;
  /** Shared with another node on the same database. */
  readonly tenants?: Map<string, TenantFacts>;
  readonly cluster?: AgentChannelDeps["cluster"];
  readonly signatures?: SignatureMemory;
  readonly startMeter?: AgentChannelDeps["startMeter"];
}

export const startNode = async (options: NodeOptions = {}) => {
  const databaseUrl = options.databaseUrl ?? (await createTestDatabase());
  const clock = createShiftedClock();
  const nodeId = newId("node");
  const db = await openDb({ clock: systemClock, url: databaseUrl, poolSize: 4, log: silentLog, namedStatements });
  const bus = options.bus ?? openMemoryBus();
  const owners = options.owners ?? openMemorySessionOwners();
  const tenants = options.tenants ?? new Map<string, TenantFacts>();
  const box = createSecretBox(Buffer.alloc(32, 7));
  const complaints: unknown[] = [];
  const outbox = createOutbox({ db, onError: (_, error) => complaints.push(error) });
  const notifier = createDeviceNotifier({ bus, owners, onError: (error) => complaints.push(error) });
  const devices = createDevices({
    onError: (error) => complaints.push(error),
    db,
    clock,
    bus,
    emit: outbox.emit,
    audit: createAuditTrail({ secretBox: box }),
    watch: unwatched,
    secrets: box,
    plan: { require: async () => undefined },
    deployments: deploymentGroups,
    evictor: notifier,
    resetCommands: (tx, device, reason) => commands.resetDevice(tx, device, reason),
    pendingCommands: (device) => commands.pending(device),
    probe: (device, instanceId) => channel.probe(device, instanceId),
    nodeId,
    enqueue: (tx, scope, orders) => commands.enqueue(tx, scope, orders),
    socketUrl: () => "wss://api.example/v1/agent/connect",
    createBatch,
    countApps: async () => new Map(),
    history: async () => Promise.reject(new Error("no history here")),
    until: async () => Promise.reject(new Error("nobody waits here")),
    settings: deviceSettings(30),
  });
  const commands = createCommands({
    db,
    clock,
    emit: outbox.emit,
    wakeRelay: outbox.wake,
    hint: () => undefined,
    notifier,
    createBatch,
    nodeId,
    bus,
    channelOf: nodeChannel,
    devices: { ...devices, find: devices.findSummary },
    presence: devices.presence,
  });
  const settings = channelSettings(30, { acceptPerSecond: 10_000, acceptBurst: 10_000, connectsPerMinute: 6_000, connectBurst: 1_000, ...options.settings });
  // A test that advances the clock makes every running claim look old.
  const overload = { ...settings.overload, claimWaitMs: Number.MAX_SAFE_INTEGER };
  const channel = createAgentChannel({
    nodeId,
    agents: devices.registry,
    tenants: {
      find: async (tenantId) => tenants.get(tenantId) ?? null,
      peek: (tenantId) => tenants.get(tenantId) ?? null,
      suspended: async (tenantIds) => new Set(tenantIds.filter((tenantId) => tenants.get(tenantId)?.status === "suspended")),
    },
    signatures: options.signatures ?? createSignatureMemory(),
    sessions: createAgentSessions({ db, presence: devices.presence, delivery: commands.delivery, createBatch }),
    presence: devices.presence,
    delivery: commands.delivery,
    bus,
    owners,
    notifier,
    limits: createLimits({ limiter: createMemoryRateLimiter({ clock }), configured: {} }),
    facts: createRequestInfo([]),
    blocks: nothingBlocked,
    watch: unwatched,
    databaseError,
    clock,
    log: { info: () => undefined, warn: (fields) => void complaints.push(fields) },
    settings: { ...settings, overload },
    ...(options.cluster === undefined ? {} : { cluster: options.cluster }),
    startMeter: options.startMeter ?? (() => ({ delayMs: () => 0, stop: () => undefined })),
  });
  await devices.registry.listen();
  await channel.start();
  const listener = await listen({
    host: "127.0.0.1",
    port: 0,
    sockets: (app) => registerAgentSocket(app, channel.transport, SOCKET_LIMITS),
    transport: { receive: () => ({ maxBodyBytes: 0, handle: async (context) => context.respond({ status: 404, headers: {}, body: null }) }) },
  });

  const tenant = async (facts: Partial<TenantFacts> = {}): Promise<TenantId> => {
    const tenantId = newId("ten");
    const slug = tenantId.slice(4).toLowerCase();
    await db.query(
      "insert into tenants (tenant_id, name, slug, plan, owner_user_id, durable_object_id, updated_at) values ($1, $2, $2, 'free', 'u', $3, now())",
      [tenantId, slug, newId("dob")],
    );
    await db.query(
      "insert into deployments (deployment_id, tenant_id, name, status, is_default, updated_at) values ($1, $2, 'default', 'active', true, now())",
      [newId("dep"), tenantId],
    );
    tenants.set(tenantId, { tenantId, slug, plan: "free", status: "active", limitOverrides: {}, rateLimitOverrides: {}, ...facts });
    return tenantId;
  };
  const device = async (tenantId?: TenantId): Promise<TestDevice> => {
    const scope = { tenantId: tenantId ?? (await tenant()) };
    const [made] = await db.tx((tx) => devices.enrol(tx, scope, [{ fingerprint: newId("fp") }]));
    if (made === undefined) throw new Error("nothing was paired");
    return {
      deviceId: made.device_id,
      tenantId: scope.tenantId,
      fingerprint: made.fingerprint,
      identity: { agentId: made.agent_id, tenantId: made.tenant_id, secret: made.shared_secret },
    };
  };
  const queue = async ({ tenantId, deviceId }: TestDevice, input: { readonly requiresAck?: boolean } = {}): Promise<string> => {
    const commandId = newId("cmd");
    await insertOpenCommand((text, values) => db.query(text, values), { commandId, tenantId, deviceId, payload: '{"n":1}', ...input });
    notifier.nudge([deviceId]);
    return commandId;
  };

  return {
    url: `ws://127.0.0.1:${listener.port}`,
    db,
    channel,
    devices,
    commands,
    notifier,
    clock,
    complaints,
    databaseUrl,
    bus,
    owners,
    nodeId,
    tenant,
    device,
    queue,
    tenants,
    close: async () => {
      await channel.close();
      await listener.close();
      await db.close();
    },
  };
};
export type TestNode = Awaited<ReturnType<typeof startNode>>;

/** The part of a node that a connection needs. */
export interface Reachable {
  readonly url: string;
  readonly clock: Pick<Clock, "now">;
}

export interface TestDevice {
  readonly deviceId: string;
  readonly tenantId: TenantId;
  readonly fingerprint: string;
  readonly identity: AgentIdentity;
}

export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads any answer
  readonly body: any;
}

type FrameOf<Op extends ServerFrame["op"]> = Extract<ServerFrame, { op: Op }>;
// Longer than the five seconds between two checks of quiet sessions, on a machine that does five other things.
const WAIT_MS = 30_000;

/** An agent's socket; received frames queue until the test asks for them. */
export const wrapSocket = (socket: WebSocket) => {
  const frames: ServerFrame[] = [];
  const waiting = new Set<() => void>();
  const state: { close: { code: number; reason: string } | null; error: unknown; undeclared: Error | null } = { close: null, error: null, undeclared: null };
  const stir = () => {
    for (const wake of waiting) wake();
  };
  socket.on("message", (data) => {
    const frame = JSON.parse(String(data));
    state.undeclared ??= undeclared(frame);
    frames.push(frame);
    stir();
  });
  socket.on("close", (code, reason) => {
    state.close = { code, reason: String(reason) };
    stir();
  });
  socket.on("error", (error) => {
    state.error = error;
  });
  const until = async <T>(look: () => T | undefined, what: string): Promise<T> => {
    const deadline = performance.now() + WAIT_MS;
    for (;;) {
      if (state.undeclared !== null) throw state.undeclared;
      const found = look();
      if (found !== undefined) return found;
      if (performance.now() > deadline)
        throw new Error(`no ${what}; frames: ${JSON.stringify(frames)}; close: ${JSON.stringify(state.close)}; error: ${String(state.error)}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(done, WAIT_MS);
        function done(): void {
          clearTimeout(timer);
          waiting.delete(done);
          resolve();
        }
        waiting.add(done);
      });
    }
  };
  let sent = 0;
  return {
    socket,
    frames,
    next: <Op extends ServerFrame["op"]>(op: Op): Promise<FrameOf<Op>> =>
      until(() => {
        const at = frames.findIndex((frame) => frame.op === op);
        return at === -1 ? undefined : (frames.splice(at, 1)[0] as FrameOf<Op>);
      }, op),
    closed: () => until(() => state.close ?? undefined, "close"),
    isOpen: () => state.close === null,
    say: (op: string, data: object = {}) => {
      sent += 1;
      socket.send(JSON.stringify({ op, id: `a${sent}`, ts: new Date().toISOString(), data }));
      return `a${sent}`;
    },
    raw: (data: string | Buffer) => socket.send(data),
    end: () => socket.terminate(),
  };
};
export type AgentSocket = ReturnType<typeof wrapSocket>;

export interface ConnectOptions {
  readonly at?: Date;
  readonly headers?: Readonly<Record<string, string>>;
  /** Replaces all four signed headers. */
  readonly signed?: Readonly<Record<string, string>>;
  readonly protocols?: readonly string[];
  readonly path?: string;
}

/** By clock, because one test's clock may be far ahead of another's. */
const lastMs = new WeakMap<object, number>();
/** Two upgrades signed in the same millisecond would share their signature. */
export const freshTime = ({ clock }: Pick<Reachable, "clock">): Date => {
  const ms = Math.max((lastMs.get(clock) ?? 0) + 1, clock.now().getTime());
  lastMs.set(clock, ms);
  return new Date(ms);
};

export const connect = async (node: Reachable, { identity }: Pick<TestDevice, "identity">, options: ConnectOptions = {}): Promise<AgentSocket> => {
  const answer = await attempt(node, { identity }, options);
  if ("status" in answer) throw new Error(`refused: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer;
};

export const attempt = (node: Reachable, { identity }: Pick<TestDevice, "identity">, options: ConnectOptions = {}): Promise<AgentSocket | Refusal> => {
  const signed = options.signed ?? signedHeaders(identity, "", options.at ?? freshTime(node));
  const socket = new WebSocket(`${node.url}${options.path ?? CONNECT_PATHS[0]}`, [...(options.protocols ?? [SUBPROTOCOL])], {
    headers: { ...signed, ...options.headers },
    handshakeTimeout: WAIT_MS,
  });
  const wrapped = wrapSocket(socket);
  return new Promise((resolve, reject) => {
    socket.once("open", () => resolve(wrapped));
    socket.once("unexpected-response", (_, response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += String(chunk);
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text === "" ? null : JSON.parse(text) }));
    });
    socket.once("error", reject);
  });
};

/** Sends a hello with a good proof and returns `ready`. */
export const greet = async (node: Reachable, socket: AgentSocket, { identity }: Pick<TestDevice, "identity">, more: object = {}): Promise<FrameOf<"ready">> => {
  const { data } = await socket.next("welcome");
  const timestamp = node.clock.now().toISOString();
  socket.say("hello", {
    proof: { timestamp, signature: sign(identity.secret, data.nonce, timestamp) },
    capabilities: ["journal.v1", "cancel.v1"],
    instanceId: "one",
    ...more,
  });
  return socket.next("ready");
};

export const online = async (node: Reachable, device: Pick<TestDevice, "identity">, more: object = {}): Promise<AgentSocket> => {
  const socket = await connect(node, device);
  await greet(node, socket, device, more);
  return socket;
};

export const timestampHeader = HEADERS.timestamp;
