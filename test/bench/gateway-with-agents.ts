// A gateway with a tenant's provisioned agents and a load generator that can connect them.
import type { PairedDevice } from "../../agent-sim/agent/index.ts";
import { type BenchGateway, type BenchTenant, createTenant, type GatewayOptions, provision, startBenchGateway, writeIdentities } from "./gateway.ts";
import { type Loader, startLoader } from "./loader.ts";
import type { BenchStage } from "./stage.ts";

export interface GatewayWithAgents {
  readonly gateway: BenchGateway;
  readonly tenant: BenchTenant;
  readonly members: readonly PairedDevice[];
  readonly loader: Loader;
}

export const startGatewayWithAgents = async (stage: BenchStage, agents: number, options: GatewayOptions = {}): Promise<GatewayWithAgents> => {
  const gateway = await startBenchGateway(stage, options);
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
