// Mesh routes: devices reach networks by way of other devices. The way of a connection:
//
// 1. The consumer's agent asks for `host:port`, or for a route by its id, on its carrier of consumers.
// 2. routing.ts finds the approved route that leads there (choose.ts), and asks whether the device is one of its consumers (consumers.ts).
// 3. It dials over the carrier of the router that probing.ts has found to answer. The router's agent looks at its own desired state before it connects.
import type { contract, DesiredMeshRoute } from "../../../protocol/index.ts";
import type { Carriers } from "../../core/ports/carriers.ts";
import type { ConnectMesh } from "../../core/ports/mesh.ts";
import type { SystemScope } from "../../core/scope.ts";
import type { Feature, FeatureKit } from "../kit.ts";
import { type Advertise, createAdvertise } from "./advertised.ts";
import { type ConsumersDeps, createConsumers } from "./consumers.ts";
import { createMeshHandlers, type MeshHandlersDeps } from "./handlers.ts";
import { createProbing, PROBES_JOB } from "./probing.ts";
import { toDesiredRoute } from "./record.ts";
import { createMeshRouting, type MeshRoutingDeps } from "./routing.ts";
import { allRoutes, countRoutes } from "./store.ts";

export interface MeshRoutesDeps
  extends Pick<FeatureKit, "db" | "clock" | "emit" | "plan" | "enqueueEach">,
    ConsumersDeps,
    Pick<MeshHandlersDeps, "holdFleets" | "knownDevices" | "connected"> {
  readonly carriers: () => Carriers;
  readonly tellNodes: (tenantId: string) => void;
  readonly wakeJob: (name: string) => void;
  readonly onError: (error: unknown) => void;
  readonly settings?: MeshRoutingDeps["settings"];
}

export interface MeshRoutes extends Feature<typeof contract.meshRoutes> {
  readonly connect: ConnectMesh;
  /** What the device's agent should lead to or may reach. */
  readonly ofDevice: { readonly desired: (scope: SystemScope, deviceId: string) => Promise<DesiredMeshRoute[]>; readonly advertise: Advertise };
  /** Follows the carriers of this node from now on. */
  readonly follow: () => void;
  readonly forget: (tenantIds: readonly string[]) => void;
}

export const createMeshRoutes = (deps: MeshRoutesDeps): MeshRoutes => {
  const { db, carriers, tellNodes, wakeJob } = deps;
  const consumers = createConsumers(deps);
  const routing = createMeshRouting({ ...deps, consumers });
  const changed = (tenantId: string): void => {
    routing.forget([tenantId]);
    tellNodes(tenantId);
  };
  const probing = createProbing({ ...deps, changed });
  return {
    handlers: createMeshHandlers({ ...deps, consumers, changed, wakeProbes: () => wakeJob(PROBES_JOB) }),
    // A router that has read its routes can be tried at once. Whoever has not yet reads them within a minute; the gateway lets nobody through who may not.
    outcomes: { sync: async (tx, { scope, deviceId }) => probing.soon(tx, scope.tenantId, deviceId) },
    jobs: [probing.job, ...routing.jobs],
    counters: { meshRoutes: countRoutes },
    connect: routing.connect,
    forget: routing.forget,
    follow: () => carriers().listen(probing.listener),
    ofDevice: {
      advertise: createAdvertise(deps),
      desired: async (scope, deviceId) => {
        const rows = (await allRoutes(db, scope)).filter(({ enabled, approval }) => enabled && approval === "approved");
        return (await consumers.rolesOf(scope, rows, deviceId)).map(({ row, role }) => toDesiredRoute(row, role));
      },
    },
  };
};
