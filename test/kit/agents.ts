// Reference agents for devices of a world, each connected by a socket until it is stopped.
import { type Agent, createAgent, createApps, createHandlers, createHttp, createMemoryJournal, createRandom, systemTime } from "../../agent-sim/agent/index.ts";
import { eventually } from "./eventually.ts";
import type { Device } from "./world.ts";

export interface RunningAgent {
  stop(): Promise<void>;
}

/** Resolves once the gateway has accepted it. */
export const startAgent = async (
  url: string,
  { deviceId, identity, fingerprint }: Pick<Device, "deviceId" | "identity" | "fingerprint">,
): Promise<RunningAgent> => {
  const http = createHttp(url, 1);
  const random = createRandom(1);
  const handlers = createHandlers({ apps: createApps({ time: systemTime, random }), time: systemTime });
  const common = { http, random, handlers, time: systemTime, journal: createMemoryJournal(systemTime.wallMs), firstWindowMs: 0 };
  const agent: Agent = createAgent({ url, deviceId, identity, fingerprint, ...common });
  agent.start();
  await eventually(() => {
    if (agent.state !== "ready") throw new Error(`the agent is ${agent.state}`);
  });
  return {
    stop: async () => {
      await agent.stop();
      http.close();
    },
  };
};
