// A device of a world with all that the reference agent does, in this process: its apps are simulated, its tunnels and mesh routes are real.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemTime } from "../../../agent-sim/agent/index.ts";
import { type DeviceHost, type DeviceHostOptions, openDeviceHost } from "../../../agent-sim/host/open.ts";
import { eventually } from "../checks/eventually.ts";
import { openAgent } from "./agents.ts";
import type { Device, TestTenant, World } from "./world.ts";

export interface SimulatedDevice {
  readonly device: Device;
  readonly host: DeviceHost;
  /** The agent's. */
  readonly folder: string;
  stop(): Promise<void>;
}

/** Resolves once the gateway has accepted its agent. `prepare`: writes what the agent finds in its folder. */
export const startSimulatedDevice = async (
  { url }: Pick<World, "url">,
  tenant: Pick<TestTenant, "device">,
  options: Pick<DeviceHostOptions, "lookup" | "socksPort"> = {},
  prepare: (folder: string) => Promise<void> = async () => undefined,
): Promise<SimulatedDevice> => {
  const device = await tenant.device();
  const folder = await mkdtemp(join(tmpdir(), "mooring-device-"));
  await prepare(folder);
  const host = openDeviceHost({ kind: "simulated", deviceId: device.deviceId, folder, time: systemTime, seed: 1, ...options });
  const { agent, stop } = openAgent(url, device, { handlers: host.handlers });
  agent.start();
  host.start(agent);
  await eventually(() => {
    if (agent.state !== "ready") throw new Error(`the agent is ${agent.state}`);
  });
  return {
    device,
    host,
    folder,
    stop: async () => {
      await stop();
      await host.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
};
