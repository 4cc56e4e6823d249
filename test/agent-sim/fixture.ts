// One agent on a fast clock beside a fake gateway, for the tests of the whole agent.
import {
  type Agent,
  type AgentOptions,
  createAgent,
  createApps,
  createHandlers,
  createHttp,
  createMemoryJournal,
  createRandom,
  type Journal,
} from "../../agent-sim/agent/index.ts";
import { createFastTime } from "./clocks.ts";
import { type FakeGateway, SECRET, startFakeGateway } from "./fake-gateway.ts";

export interface AgentFixture {
  readonly gateway: FakeGateway;
  readonly journal: Journal;
  readonly alarms: string[];
  readonly executed: string[];
  /** Starts the agent; `skewMs` sets its wall clock wrong. */
  launch(differences?: Partial<AgentOptions>, skewMs?: number): Agent;
  /** Stops the agent, then the gateway. */
  close(): Promise<void>;
}

/** Ids as this version of the protocol forms them. */
export const USUAL_IDS = { deviceId: "dev_1", agentId: "agt_1", tenantId: "ten_1" };

export const openAgentFixture = async ({ deviceId, agentId, tenantId } = USUAL_IDS): Promise<AgentFixture> => {
  const gateway = await startFakeGateway();
  const http = createHttp(gateway.url, 2);
  const journal = createMemoryJournal(Date.now);
  const [alarms, executed]: [string[], string[]] = [[], []];
  let agent: Agent | null = null;
  return {
    gateway,
    journal,
    alarms,
    executed,
    launch: ({ on, ...differences } = {}, skewMs = 0) => {
      const time = createFastTime(100, skewMs);
      const random = createRandom(7);
      agent = createAgent({
        url: gateway.url,
        http,
        time,
        random,
        journal,
        deviceId,
        identity: { agentId, tenantId, secret: SECRET },
        firstWindowMs: 0,
        handlers: createHandlers({ apps: createApps({ time, random }), time }),
        on: { alarm: (text) => alarms.push(text), executed: (id) => executed.push(id), ...on },
        ...differences,
      });
      agent.start();
      return agent;
    },
    close: async () => {
      await agent?.stop();
      http.close();
      await gateway.close();
    },
  };
};
