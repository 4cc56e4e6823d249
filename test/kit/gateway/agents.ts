// Reference agents for devices of a world, in this process, each with a journal in memory.
import {
  type Agent,
  type AgentOptions,
  createAgent,
  createApps,
  createHandlers,
  createHttp,
  createMemoryJournal,
  createRandom,
  systemTime,
} from "../../../agent-sim/agent/index.ts";
import { eventually } from "../checks/eventually.ts";
import type { Device } from "./world.ts";

export type AgentDevice = Pick<Device, "deviceId" | "identity">;

/** Its ordinary types of commands. */
export const handlersOf = () => createHandlers({ apps: createApps({ time: systemTime, random: createRandom(1) }), time: systemTime });

/** Connects at once after `agent.start()`. */
export const openAgent = (url: string, { deviceId, identity }: AgentDevice, options: Partial<AgentOptions> = {}) => {
  const http = createHttp(url, 2);
  const agent: Agent = createAgent({
    ...{ url, http, time: systemTime, random: createRandom(7), deviceId, identity, firstWindowMs: 0 },
    journal: createMemoryJournal(systemTime.wallMs),
    handlers: handlersOf(),
    ...options,
  });
  const stop = async (): Promise<void> => {
    await agent.stop();
    http.close();
  };
  return { agent, stop };
};

export interface RunningAgent {
  stop(): Promise<void>;
}

/** Resolves once the gateway has accepted it. */
export const startAgent = async (url: string, device: AgentDevice, options: Partial<AgentOptions> = {}): Promise<RunningAgent> => {
  const { agent, stop } = openAgent(url, device, options);
  agent.start();
  await eventually(() => {
    if (agent.state !== "ready") throw new Error(`the agent is ${agent.state}`);
  });
  return { stop };
};
