// The edge as a part of a node: opened with its certificate and what the features serve on it, and what the node listens on.
import { MESH_PATH } from "../protocol/index.ts";
import type { AppSettings, NodeState } from "./app-settings.ts";
import { type Certificate, openCertificate } from "./certificate.ts";
import type { Config } from "./config.ts";
import type { Clock } from "./core/clock.ts";
import type { Lifecycle } from "./core/lifecycle/lifecycle.ts";
import type { EdgePart } from "./core/ports/edge.ts";
import type { OwnCarriers } from "./edge/carrier/carriers.ts";
import { createConsumerCarriers } from "./edge/carrier/consumers.ts";
import { createCarrierMount } from "./edge/carrier/mount.ts";
import { type Edge, type EdgeSource, listenEdge } from "./edge/listen.ts";
import type { Transports } from "./gateway/transports.ts";
import type { OwnEndpoint } from "./platform/outbound/own-listeners.ts";
import type { Log } from "./platform/telemetry/log.ts";
import type { Features } from "./wiring/index.ts";

/** Before it listens. */
export const edgePortsOf = (config: Config): Pick<NodeState, "edgePort" | "edgeHttpPort"> => ({
  edgePort: config.EDGE_PORT,
  edgeHttpPort: config.EDGE_HTTP_PORT ?? null,
});

/** What this process listens on. */
export const listeningOf = ({ HOST, INTERNAL_HOST, EDGE_HOST }: Config, { port, internalPort, edgePort, edgeHttpPort }: NodeState): readonly OwnEndpoint[] => [
  { host: HOST, port },
  { host: INTERNAL_HOST, port: internalPort },
  { host: EDGE_HOST, port: edgePort },
  ...(edgeHttpPort === null ? [] : [{ host: EDGE_HOST, port: edgeHttpPort }]),
];

interface Base {
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: AppSettings;
}

export const openEdgeCertificate = async (config: Config, life: Lifecycle, { clock, log, settings }: Base): Promise<Certificate> => {
  const certificate = await openCertificate(config, { clock, log, everyMs: settings.certificateEveryMs, prefix: "EDGE_" });
  if (certificate.files !== null) life.use("certificate of the edge", certificate);
  return certificate;
};

export interface OpenEdgeDeps extends Base {
  readonly config: Config;
  readonly life: Lifecycle;
  readonly certificate: Certificate;
  readonly carriers: OwnCarriers;
  readonly features: Pick<Features, "edge" | "meshRoutes" | "tunnels">;
  readonly transports: Pick<Transports, "carrier">;
  readonly source: EdgeSource | undefined;
}

export const openEdge = async ({ config, life, certificate, settings, carriers, features, transports, ...deps }: OpenEdgeDeps): Promise<Edge> => {
  const mount = createCarrierMount({ ...deps, ...transports.carrier, carriers, connectorOf: features.tunnels.connectorOf });
  const consumers = createConsumerCarriers({ connect: features.meshRoutes.connect });
  const ofConsumers = createCarrierMount({ ...deps, ...transports.carrier, path: MESH_PATH, carriers: consumers, connectorOf: async () => null });
  features.tunnels.follow();
  features.meshRoutes.follow();
  const leave = (): void => {
    carriers.leave();
    consumers.leave();
  };
  const parts: readonly EdgePart[] = [{ mounts: [mount, ofConsumers], leave }, ...features.edge];
  const at = { host: config.EDGE_HOST, port: config.EDGE_PORT, httpPort: config.EDGE_HTTP_PORT, tls: certificate.files };
  const edge = await listenEdge({ ...at, ...deps, parts, proxies: config.TRUSTED_PROXIES, limits: settings.edge });
  certificate.renewing(edge.renew);
  return life.use("edge", edge);
};
