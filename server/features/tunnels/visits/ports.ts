// The ports of tunnels of TCP: listens for each on every node, lets in who may come by address, and joins each connection with one to the service.
import { createServer, type Server, type Socket } from "node:net";
import type { Clock } from "../../../core/clock.ts";
import { type Carriers, DialFailure } from "../../../core/ports/carriers.ts";
import type { Job } from "../../../platform/jobs.ts";
import type { TunnelRow } from "../store.ts";
import { countVisit, type TunnelUsage } from "../usage.ts";
import { createAddressGate, type VisitGateDeps } from "./gate.ts";
import { joinStreams } from "./join-streams.ts";
import type { VisitLimits } from "./limits.ts";
import { servedBy } from "./pool.ts";

export interface TunnelPortsDeps extends Pick<VisitGateDeps, "blocks"> {
  readonly clock: Clock;
  readonly carriers: Pick<Carriers, "dial" | "has">;
  /** Tunnels with a port, of all tenants. */
  readonly find: () => Promise<readonly TunnelRow[]>;
  readonly limits: VisitLimits;
  /** Counts what passes. */
  readonly use: TunnelUsage["add"];
  /** The address to listen at, and the ports that may be used. */
  readonly host: string;
  readonly ports: readonly number[];
  readonly idleMs: number;
  readonly onError: (error: unknown) => void;
}

/** A hint wakes the job as well; it may get lost. */
const EVERY_MS = 5_000;
export const PORTS_JOB = "tunnels.ports";

interface Listening {
  tunnel: TunnelRow;
  readonly server: Server;
  readonly sockets: Set<Socket>;
}

const addressOf = ({ remoteAddress }: Socket): string => remoteAddress?.replace(/^::ffff:/, "") ?? "";

export interface TunnelPorts {
  readonly jobs: readonly Job[];
  /** The node drains: nobody new is let in. */
  leave(): void;
}

export const createTunnelPorts = ({ clock, carriers, find, limits, use, host, ports, idleMs, onError, blocks }: TunnelPortsDeps): TunnelPorts => {
  const listening = new Map<number, Listening>();
  const judgeAddress = createAddressGate({ clock, blocks });
  const offered = new Set(ports);
  let hasLeft = false;

  const serve = async (tunnel: TunnelRow, socket: Socket): Promise<void> => {
    const { tunnelId, key } = servedBy(carriers, tunnel);
    const stream = await carriers.dial(key, tunnelId, { halfOpen: true });
    if (socket.destroyed) return void stream.destroy();
    const { idleSeconds } = tunnel;
    joinStreams(socket, stream, { idleMs: idleSeconds === null ? idleMs : idleSeconds * 1_000, passed: countVisit(use, tunnelId) });
  };
  /** TCP has no page for a refusal: the connection is reset, which a program tells from an end. */
  const accept = (place: Listening, socket: Socket): void => {
    socket.on("error", () => undefined);
    const ip = addressOf(socket);
    const refusal = judgeAddress(place.tunnel, ip) ?? limits.take(place.tunnel, ip, (done) => socket.once("close", done));
    if (refusal !== null) return void socket.resetAndDestroy();
    socket.setNoDelay(true);
    place.sockets.add(socket);
    socket.once("close", () => place.sockets.delete(socket));
    serve(place.tunnel, socket).catch((error: unknown) => {
      if (!(error instanceof DialFailure)) onError(error);
      socket.resetAndDestroy();
    });
  };

  const open = (port: number, tunnel: TunnelRow): void => {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
    const place: Listening = { tunnel, server, sockets: new Set() };
    server.on("connection", (socket) => accept(place, socket));
    server.on("error", (error: NodeJS.ErrnoException) => {
      if (listening.get(port) === place) listening.delete(port);
      // Another process of this machine serves it, or will be told by its own look.
      if (error.code !== "EADDRINUSE") onError(error);
    });
    listening.set(port, place);
    server.listen({ host, port, exclusive: true });
  };
  const close = (port: number, { server, sockets }: Listening): void => {
    listening.delete(port);
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  /** Who was let in and may not be here any more goes. */
  const recheck = (place: Listening): void => {
    for (const socket of place.sockets) if (judgeAddress(place.tunnel, addressOf(socket)) !== null) socket.destroy();
  };

  const run = async (): Promise<void> => {
    if (offered.size === 0 && listening.size === 0) return;
    const wanted = new Map((await find()).flatMap((row) => (row.port === null || !offered.has(row.port) ? [] : [[row.port, row] as const])));
    if (hasLeft) return;
    for (const [port, place] of listening) if (wanted.get(port)?.tunnelId !== place.tunnel.tunnelId) close(port, place);
    for (const [port, tunnel] of wanted) {
      const place = listening.get(port);
      if (place === undefined) open(port, tunnel);
      else {
        place.tunnel = tunnel;
        recheck(place);
      }
    }
  };
  return {
    jobs: [{ name: PORTS_JOB, everyMs: EVERY_MS, run }],
    leave: () => {
      hasLeft = true;
      for (const { server } of listening.values()) server.close();
    },
  };
};
