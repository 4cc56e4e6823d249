// A gateway with a tenant's agents beside it, identities and load generator ready, nobody connected yet.
import type { PairedDevice } from "../../agent-sim/agent/index.ts";
import { createTenant, type Gateway, type GatewayOptions, provision, startGateway, type Tenant, writeIdentities } from "./gateway.ts";
import { type Loader, startLoader } from "./loader.ts";
import type { Stage } from "./stage.ts";

export interface Crowd {
  readonly gateway: Gateway;
  readonly tenant: Tenant;
  readonly members: readonly PairedDevice[];
  readonly loader: Loader;
}

export const gatherCrowd = async (stage: Stage, agents: number, options: GatewayOptions = {}): Promise<Crowd> => {
  const gateway = await startGateway(stage, options);
  const tenant = await createTenant(stage);
  const members = await provision(gateway, tenant, agents);
  const loader = await startLoader(stage, {
    protocol: "agent",
    port: gateway.port,
    connections: agents,
    identities: writeIdentities(stage, members),
    serverPids: [gateway.pid],
  });
  return { gateway, tenant, members, loader };
};
