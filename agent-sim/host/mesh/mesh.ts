// The mesh routes of the device: as a router it connects where the gateway asks, within what was approved; as a consumer it offers programs of this machine a
// SOCKS proxy and fixed ports, on loopback only.
import { createServer, type Server, type Socket } from "node:net";
import { z } from "zod";
import { type CarrierClient, type Consumed, consumeCarrier, createCarrier, type Time } from "../../agent/index.ts";
import { connectForRoute, type Lookup, type RouterRoute } from "./allowed.ts";
import { handshake, replyBytes, type SocksReply, type SocksTarget } from "./socks.ts";

export const MeshState = z.object({
  url: z.string(),
  routes: z.array(
    z.object({
      routeId: z.string(),
      role: z.enum(["consumer", "router"]),
      kind: z.string(),
      network: z.string().nullable(),
      domains: z.array(z.string()),
      host: z.string().nullable(),
      port: z.int().nullable(),
      allowPublic: z.boolean(),
      listenPort: z.int().nullable(),
    }),
  ),
});
export type MeshState = z.infer<typeof MeshState>;

export interface DeviceMeshOptions {
  readonly headersFor: (url: string) => Readonly<Record<string, string>>;
  readonly time: Time;
  readonly random: () => number;
  /** Where programs find the proxy; null: there is none. */
  readonly socksPort: number | null;
  readonly lookup?: Lookup | undefined;
  readonly say?: ((text: string) => void) | undefined;
}

export interface DeviceMesh {
  apply(state: MeshState): void;
  /** Null: the stream is none of a route. */
  dial(authority: string): ReturnType<typeof connectForRoute>;
  /** It leads to some network, so it needs the carrier of tunnels. */
  readonly isRouter: boolean;
  readonly routes: number;
  /** The port of the proxy; null while there is none. */
  readonly socksPort: number | null;
  stop(): void;
}

const REPLIES: ReadonlyMap<string, SocksReply> = new Map([
  ["not_allowed", "not_allowed"],
  ["unknown", "not_allowed"],
  ["refused", "refused"],
  ["timeout", "host_unreachable"],
  ["unreachable", "host_unreachable"],
  ["offline", "network_unreachable"],
]);
const LOOPBACK = "127.0.0.1";
/** A port that another program holds is tried again. */
const AGAIN_MS = 30_000;

const authorityOf = ({ host, port }: SocksTarget): string => `${host.includes(":") ? `[${host}]` : host}:${port}`;

export const createDeviceMesh = ({ headersFor, time, random, socksPort, lookup, say }: DeviceMeshOptions): DeviceMesh => {
  const routers = new Map<string, RouterRoute>();
  let consumed = 0;
  let url = "";
  let carrier: CarrierClient | null = null;
  let current: Consumed | null = null;
  /** By their port, and for which route; the proxy has none. */
  const listeners = new Map<number, { readonly server: Server; readonly routeId: string | null; readonly stop: () => void }>();

  const reach = (authority: string, socket: Socket, told: (reason: string | null) => void): void => {
    socket.on("error", () => undefined);
    if (current === null) told("offline");
    else current.reach(authority, socket, told);
  };
  const proxy = (socket: Socket): void =>
    handshake(socket, {
      time,
      onRequest: (target) =>
        reach(authorityOf(target), socket, (reason) => {
          if (reason === null) socket.write(replyBytes("succeeded"));
          else socket.end(replyBytes(REPLIES.get(reason) ?? "general_failure"));
        }),
    });
  const forward = (socket: Socket, routeId: string): void => {
    socket.pause();
    reach(routeId, socket, (reason) => (reason === null ? undefined : socket.resetAndDestroy()));
  };

  const listen = (port: number, routeId: string | null): void => {
    const sockets = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      if (routeId === null) proxy(socket);
      else forward(socket, routeId);
    });
    let cancel = (): void => undefined;
    const open = (): void => void server.listen(port, LOOPBACK);
    server.on("error", (error: Error & { readonly code?: string }) => {
      say?.(`cannot listen on ${LOOPBACK}:${port}: ${error.code ?? error.message}`);
      cancel = time.after(AGAIN_MS, open);
    });
    open();
    const stop = (): void => {
      cancel();
      server.close();
      for (const socket of sockets) socket.destroy();
    };
    listeners.set(port, { server, routeId, stop });
  };

  const keepListeners = (wanted: ReadonlyMap<number, string | null>): void => {
    for (const [port, { routeId, stop }] of listeners) {
      if (wanted.has(port) && wanted.get(port) === routeId) continue;
      stop();
      listeners.delete(port);
    }
    for (const [port, routeId] of wanted) if (!listeners.has(port)) listen(port, routeId);
  };
  const keepCarrier = (): void => {
    if (consumed === 0 || url === "") {
      carrier?.stop();
      carrier = null;
      return;
    }
    if (carrier !== null) return;
    carrier = createCarrier({
      url: () => url,
      headers: headersFor,
      dial: () => "unknown",
      time,
      random,
      serve: (deps) => {
        const one: Consumed = consumeCarrier({
          ...deps,
          onEnd: () => {
            if (current === one) current = null;
            deps.onEnd();
          },
        });
        current = one;
        return one;
      },
      on: { open: () => say?.("opened the carrier of its mesh routes"), down: (why) => say?.(`the carrier of its mesh routes is down: ${why}`) },
    });
    carrier.start();
  };

  const apply: DeviceMesh["apply"] = (state) => {
    routers.clear();
    const ports = new Map<number, string | null>();
    const mine = state.routes.filter(({ role }) => role === "consumer");
    for (const route of state.routes) if (route.role === "router") routers.set(route.routeId, route);
    for (const { listenPort, routeId } of mine) if (listenPort !== null) ports.set(listenPort, routeId);
    if (mine.length > 0 && socksPort !== null) ports.set(socksPort, null);
    [consumed, url] = [mine.length, state.url];
    keepCarrier();
    keepListeners(ports);
  };
  return {
    apply,
    dial: (authority) => connectForRoute(authority, routers, lookup),
    get isRouter() {
      return routers.size > 0;
    },
    get routes() {
      return routers.size + consumed;
    },
    get socksPort() {
      const found = [...listeners.values()].find(({ routeId }) => routeId === null)?.server.address() ?? null;
      return found === null || typeof found === "string" ? null : found.port;
    },
    stop: () => apply({ url: "", routes: [] }),
  };
};
