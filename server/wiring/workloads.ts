// The features of what devices run: apps, and the deployments that place them.
import { createAppFeature } from "../features/apps/index.ts";
import { createDeployments } from "../features/deployments/index.ts";
import type { Wiring } from "./deps.ts";
import type { Peers } from "./peers.ts";

export const workloads = ({ kit, serving, settings, hintsArrive, failed }: Wiring, peers: Peers) => ({
  apps: () =>
    createAppFeature({
      ...kit,
      catalogue: serving.catalogue,
      logs: {
        bus: serving.cluster.bus,
        takeStream: peers.live.takePlace,
        nodesReach: hintsArrive,
        onError: failed("logs"),
        settings: settings?.appLogs,
      },
      follow: peers.deployments.follow,
      adopt: peers.deployments.adopt,
      knownDevices: peers.devices.known,
      isOnline: async (scope, deviceId) => (await peers.devices.findSummary(scope, deviceId))?.status === "online",
      cancelOrdered: peers.commands.cancelOrdered,
    }),
  deployments: () => createDeployments({ ...kit, placing: () => peers.apps.placing, logs: () => peers.apps.logs }),
});
