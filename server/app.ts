// The composition root: opens everything in order, hands it around, closes it in reverse. It knows every name and holds no logic.
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { createBootstrap } from "./bootstrap.ts";
import { type Certificate, openCertificate } from "./certificate.ts";
import { type Config, publicUrlOf } from "./config.ts";
import { systemClock } from "./core/clock.ts";
import { newSecret } from "./core/ids.ts";
import { createLifecycle, type Lifecycle } from "./core/lifecycle.ts";
import type { Tracing } from "./core/trace.ts";
import { createDeparture, type Leave } from "./departure.ts";
import { createDoors, type Doors } from "./doors.ts";
import type { AdminSettings, ThisNode } from "./features/admin/index.ts";
import type { CommandSettings } from "./features/commands/index.ts";
import { type ChannelSettings, SOCKET_LIMITS } from "./gateway/channel/settings.ts";
import { listenInternal } from "./gateway/internal.ts";
import { type Listener, listen } from "./gateway/uws/listen.ts";
import { registerAgentSocket } from "./gateway/uws/socket.ts";
import { openInstallation } from "./installation.ts";
import { type MeshSettings, openMesh } from "./mesh.ts";
import { keep } from "./platform/data-dir.ts";
import { startJobs } from "./platform/jobs.ts";
import type { Log } from "./platform/log.ts";
import { createMetrics } from "./platform/metrics.ts";
import { createRooms, type Rooms } from "./rooms.ts";
import { packageFile, version } from "./version.ts";

export interface AppDeps {
  readonly log: Log;
  /** Shorter periods, for tests. */
  readonly settings?: AppSettings;
  /** Other processes of this service listen on the same ports. */
  readonly sharedPort?: boolean;
  /** Takes the internal port over from a process that still holds it. */
  readonly inherits?: boolean;
}

export interface AppSettings {
  readonly mesh?: MeshSettings;
  readonly commands?: Partial<CommandSettings>;
  readonly channel?: Partial<ChannelSettings>;
  readonly admin?: Partial<AdminSettings>;
  readonly lingerMs?: number;
  readonly certificateEveryMs?: number;
}

interface NodeState {
  draining: boolean;
  listeners: readonly Listener[];
  port: number;
  internalPort: number;
}

interface OpenDeps extends AppDeps {
  readonly certificate: Certificate;
  readonly config: Config;
  readonly life: Lifecycle;
  readonly rooms: Rooms;
  readonly doors: Doors;
  readonly state: NodeState;
}

interface TraceDeps extends Pick<OpenDeps, "life" | "log"> {
  readonly nodeId: string;
}

/** From the inside out: what works in the background first, then the listeners, then the agents. */
const openDoors = async ({ config, life, rooms, doors, state, certificate, log, sharedPort = false, inherits = false }: OpenDeps): Promise<void> => {
  life.use("outbox", rooms.outbox);
  await rooms.tidings.open();
  life.use("tidings", rooms.tidings);
  await rooms.commands.elsewhere.open();
  life.use("calls that wait elsewhere", rooms.commands.elsewhere);
  life.use("agent directory", { close: await rooms.devices.directory.listen() });
  const onError = (job: string, error: unknown): void => log.error({ job, error }, "job failed");
  life.use("jobs", startJobs([...rooms.jobs, ...doors.jobs], { signal: life.signal, onError }));
  const onLate = (error: Error): void => log.warn({ error }, "the internal listener still waits for its port");
  const internalAt = { host: config.INTERNAL_HOST, port: config.INTERNAL_PORT };
  const internal = life.use("internal listener", await listenInternal({ ...internalAt, routes: doors.internal, inherits, onLate }));
  const sockets: Parameters<typeof listen>[0]["sockets"] = (uws, upgraded) => registerAgentSocket(uws, doors.hub.door, SOCKET_LIMITS, upgraded);
  const front = life.use(
    "listener",
    await listen({ host: config.HOST, port: config.PORT, transport: doors.front, sockets, sharedPort, tls: certificate.files }),
  );
  certificate.renewing(front.renew);
  state.listeners = [front, internal];
  state.port = front.port;
  state.internalPort = internal.port;
  await doors.hub.start();
  await rooms.admin.open();
  life.use("node", rooms.admin);
  // Opened last, so closed first: agents are let go while the listener still carries their frames.
  life.use("agent sockets", doors.hub);
};

/** Loaded only where traces are wanted: the SDK takes a fifth of a second and 15 MB. */
const openTraces = async ({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }: Config, { life, nodeId, log }: TraceDeps): Promise<Tracing | null> => {
  if (endpoint === undefined) return null;
  const { openTracing } = await import("./platform/tracing.ts");
  return life.use("traces", await openTracing({ endpoint, service: { version, nodeId }, log }));
};

/** Opens what a node stands on; the doors open with `listen`. */
const openNode = async (config: Config, life: Lifecycle, { log, settings = {}, sharedPort = false, inherits = false }: AppDeps) => {
  const clock = systemClock;
  const nodeId = config.NODE_ID ?? `node_${randomUUID().slice(0, 8)}`;
  const state: NodeState = { draining: false, listeners: [], port: config.PORT, internalPort: config.INTERNAL_PORT };
  const publicUrl = (): string => publicUrlOf(config, state.port);
  const certificate = await openCertificate(config, { log, everyMs: settings.certificateEveryMs });
  if (certificate.files !== null) life.use("certificate", certificate);
  const installation = await openInstallation(config, life, log);
  const tracing = await openTraces(config, { life, nodeId, log });
  const mesh = openMesh({ config, life, nodeId, clock, log, liveNodes: () => rooms.admin.liveNodes(), settings: settings.mesh });
  const { bus } = mesh;
  const metrics = createMetrics();
  const node: ThisNode = {
    report: () => {
      const { connections, ready, overloaded } = doors.hub.stats;
      return { nodeId, address: publicUrl(), host: hostname(), pid: process.pid, version, draining: state.draining, overloaded, connections, ready };
    },
    drain: () => void leave(),
  };
  const rooms = createRooms({
    config,
    ...installation,
    log,
    metrics,
    ...mesh,
    nodeId,
    publicUrl,
    clock,
    node,
    probe: (device, instanceId) => doors.hub.probe(device, instanceId),
    tracing,
    commands: settings.commands,
    admin: settings.admin,
  });
  const internalToken = config.INTERNAL_TOKEN ?? (await keep(config.DATA_DIR, "internal.token", newSecret));
  const changelog = await readFile(packageFile("CHANGELOG.md"), "utf8");
  const doors = createDoors({
    config,
    ...installation,
    log,
    metrics,
    rooms,
    bus,
    mesh,
    nodeId,
    internalToken,
    tracing,
    changelog,
    publicUrl,
    state,
    leave: () => void leave(),
    channel: settings.channel,
  });
  // What hints may have been lost for is looked up, and what the directory may have forgotten is told again.
  bus.onResync(() => {
    for (const made of [rooms.commands.sweep(), doors.hub.resync()])
      void made.catch((error: unknown) => log.error({ error }, "could not make up for lost hints"));
  });
  const noticeMs = config.LEAVE_NOTICE_SECONDS * 1_000;
  const leave = createDeparture({ doors, rooms, listeners: () => state.listeners, noticeMs, lingerMs: settings.lingerMs, log });
  const open = async (): Promise<void> => {
    await openDoors({ config, life, rooms, doors, state, certificate, log, sharedPort, inherits });
    log.info({ nodeId, url: publicUrl(), internalPort: state.internalPort, version }, "listening");
  };
  return {
    open,
    leave,
    publicUrl,
    nodeId,
    internalToken,
    internalPort: () => state.internalPort,
    /** Looks at the files of the certificate now. */
    renewCertificate: certificate.look,
    hub: doors.hub,
    entries: doors.entries,
    db: installation.db,
    ...createBootstrap({ baseUrl: publicUrl, tokens: installation.tokens, ...rooms }),
  };
};

export const createApp = async (config: Config, deps: AppDeps) => {
  const { log } = deps;
  const life = createLifecycle({
    partTimeoutMs: config.SHUTDOWN_SECONDS * 1_000,
    onStep: (part, outcome, error) => (outcome === "closed" ? log.debug({ part }, "closed") : log.error({ part, outcome, error }, "did not close")),
  });
  // Whatever goes wrong while opening, what was opened is closed.
  const orClose = async (error: unknown): Promise<never> => {
    await life.close();
    throw error;
  };
  const { open, leave, ...node } = await openNode(config, life, deps).catch(orClose);
  return {
    ...node,
    listen: () => open().catch(orClose),
    /** Leaves in good order, then closes what is open. */
    close: async (how?: Leave) => {
      await leave(how);
      await life.close();
    },
    /** The order in which parts were opened; they close in reverse. */
    parts: () => life.names,
  };
};
export type App = Awaited<ReturnType<typeof createApp>>;
