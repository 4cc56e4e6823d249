// Creates the features of what devices run: apps and deployments, which need each other.
import type { Clients } from "../core/database.ts";
import type { SystemScope } from "../core/scope.ts";
import { type AppCatalogue, type AppLogsWiring, type CancelOrdered, createAppFeature, type Placing } from "../features/apps/index.ts";
import { createDeployments } from "../features/deployments/index.ts";
import type { FeatureKit } from "../features/kit.ts";

interface Others {
  readonly kit: FeatureKit;
  readonly catalogue: AppCatalogue;
  readonly devices: {
    known(db: Clients, scope: SystemScope, deviceIds: readonly string[]): Promise<ReadonlySet<string>>;
    findSummary(scope: SystemScope, deviceId: string): Promise<{ readonly status: string } | null>;
  };
  readonly commands: { readonly cancelOrdered: CancelOrdered };
  readonly logs: AppLogsWiring;
}

export const createDeployables = ({ kit, catalogue, devices, commands, logs }: Others) => {
  const deployments = createDeployments({ ...kit, placing: (): Placing => apps.placing, logs: () => apps.logs });
  const apps = createAppFeature({
    ...kit,
    catalogue,
    logs,
    follow: deployments.follow,
    adopt: deployments.adopt,
    knownDevices: devices.known,
    isOnline: async (scope, deviceId) => (await devices.findSummary(scope, deviceId))?.status === "online",
    cancelOrdered: commands.cancelOrdered,
  });
  return { apps, deployments };
};
