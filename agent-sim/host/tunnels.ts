// Serves the tunnels of the device: reads which there are, keeps a carrier open while there is one, connects visitors to the services that this machine
// allows, and says whether it reaches them.
import type { Socket } from "node:net";
import { z } from "zod";
import type { ReportedTunnel } from "../../protocol/records/tunnel.ts";
import { type Agent, type CarrierClient, type CommandHandlers, createCarrier, hasSucceeded, type Time } from "../agent/index.ts";
import type { Offers } from "./backups/offers.ts";
import { type DeviceMesh, MeshState } from "./mesh/mesh.ts";
import { connectToService, type ServiceReach } from "./services.ts";

type Call = Agent["call"];
type Reason = "refused" | "timeout" | "unreachable" | "not_allowed" | "unknown" | "full";

const Desired = z.object({
  data: z.object({
    tunnels: z.array(z.object({ tunnelId: z.string(), service: z.string() })).catch([]),
    carrier: z.object({ url: z.string() }).optional().catch(undefined),
    mesh: MeshState.catch({ url: "", routes: [] }),
  }),
});

/** A hint may get lost. */
const EVERY_MS = 60_000;
/** A service that cannot be reached is tried again. */
const AGAIN_MS = 30_000;
const TRY_MS = 5_000;

export interface DeviceTunnelsOptions {
  readonly call: Call;
  /** Signs the upgrade. */
  readonly headersFor: (url: string) => Readonly<Record<string, string>>;
  readonly time: Time;
  readonly random: () => number;
  /** Routers of mesh routes are reached over the same carrier. */
  readonly mesh: DeviceMesh;
  /** Visitors of downloads come over it, too. */
  readonly offers: Offers;
  /** What it connects to now, beside the ports of the machine itself. */
  readonly reach: () => ServiceReach;
  readonly onChange: () => void;
  readonly say?: ((text: string) => void) | undefined;
}

export interface DeviceTunnels {
  readonly handlers: CommandHandlers;
  start(): void;
  stop(): void;
  report(): readonly ReportedTunnel[];
}

export const createDeviceTunnels = ({ call, headersFor, time, random, mesh, offers, reach, onChange, say }: DeviceTunnelsOptions): DeviceTunnels => {
  const services = new Map<string, string>();
  const states = new Map<string, Reason | null>();
  let carrier: CarrierClient | null = null;
  let carrierUrl = "";
  let running = false;
  let cancel = (): void => undefined;

  const note = (tunnelId: string, reason: Reason | null): void => {
    if (!services.has(tunnelId) || states.get(tunnelId) === reason) return;
    states.set(tunnelId, reason);
    onChange();
  };
  const dial = (tunnelId: string): Socket | Reason => {
    const routed = mesh.dial(tunnelId);
    if (routed !== null) return routed;
    const service = services.get(tunnelId);
    return service === undefined ? "unknown" : connectToService(service, reach());
  };
  /** A real connection, because nothing else proves that visitors will get one. */
  const tryService = (tunnelId: string): void => {
    const socket = dial(tunnelId);
    if (typeof socket === "string") {
      note(tunnelId, socket);
      return;
    }
    const give = (reason: Reason | null): void => {
      stopWaiting();
      socket.destroy();
      note(tunnelId, reason);
    };
    const stopWaiting = time.after(TRY_MS, () => give("timeout"));
    socket.once("error", (error: Error & { readonly code?: string }) => give(error.code === "ECONNREFUSED" ? "refused" : "unreachable"));
    socket.once("encrypted" in socket ? "secureConnect" : "connect", () => give(null));
  };

  const keepCarrier = (): void => {
    if ((services.size === 0 && !mesh.isRouter && !offers.needsCarrier) || carrierUrl === "") {
      carrier?.stop();
      carrier = null;
      return;
    }
    if (carrier !== null) return;
    carrier = createCarrier({
      url: () => carrierUrl,
      headers: headersFor,
      dial: (authority) => offers.dial(authority) ?? dial(authority),
      time,
      random,
      onDialed: (tunnelId, reason) => note(tunnelId, reason),
      on: { open: () => say?.("opened the carrier of its tunnels"), down: (why) => say?.(`the carrier of its tunnels is down: ${why}`) },
    });
    carrier.start();
  };

  const sync = async (): Promise<number> => {
    const answer = await call("GET", "/v1/agent/desired-state");
    const desired = Desired.safeParse(answer.body).data?.data;
    if (!hasSucceeded(answer) || desired === undefined) return services.size;
    const wanted = new Map(desired.tunnels.map(({ tunnelId, service }) => [tunnelId, service]));
    for (const [tunnelId, service] of services) {
      if (wanted.get(tunnelId) === service) continue;
      services.delete(tunnelId);
      states.delete(tunnelId);
    }
    for (const [tunnelId, service] of wanted) services.set(tunnelId, service);
    carrierUrl = desired.carrier?.url ?? "";
    mesh.apply(desired.mesh);
    keepCarrier();
    for (const tunnelId of services.keys()) if (!states.has(tunnelId)) tryService(tunnelId);
    return services.size;
  };

  let sinceSyncMs = 0;
  const turn = (): void => {
    if (!running) return;
    sinceSyncMs += AGAIN_MS;
    if (sinceSyncMs >= EVERY_MS) {
      sinceSyncMs = 0;
      sync().catch(() => undefined);
    }
    for (const [tunnelId, reason] of states) if (reason !== null) tryService(tunnelId);
    cancel = time.after(AGAIN_MS, turn);
  };

  return {
    handlers: {
      "tunnel.sync": { long: false, cancelable: false, repeatable: true, run: async () => ({ tunnels: await sync() }) },
      "mesh.sync": {
        long: false,
        cancelable: false,
        repeatable: true,
        run: async () => {
          await sync();
          return { routes: mesh.routes };
        },
      },
    },
    start: () => {
      running = true;
      offers.onAdded(() => void sync().catch(() => undefined));
      sync().catch(() => undefined);
      cancel = time.after(AGAIN_MS, turn);
    },
    stop: () => {
      running = false;
      cancel();
      carrier?.stop();
      carrier = null;
      mesh.stop();
    },
    report: () =>
      [...states].map(([tunnelId, reason]) => ({
        tunnelId: tunnelId as ReportedTunnel["tunnelId"], // as: the gateway named it
        ...(reason === null ? { state: "up" as const } : { state: "failed" as const, reason }),
      })),
  };
};
