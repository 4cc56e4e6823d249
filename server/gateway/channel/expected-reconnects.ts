// Expects the agents whose sockets broke: reads their credentials before they come back, which they may all do at once.
import type { AgentRegistry } from "../../core/ports/agent-registry.ts";

export interface ExpectedReconnectsDeps {
  readonly agents: Pick<AgentRegistry, "expect">;
  readonly onError: (error: unknown) => void;
}

/** Returns a function that notes a device. Those of one turn of the event loop, and those that come during a read, share the next read. */
export const createExpectedReconnects = ({ agents, onError }: ExpectedReconnectsDeps): ((deviceId: string) => void) => {
  let lost: string[] = [];
  let reading = false;
  const readAll = async (): Promise<void> => {
    reading = true;
    while (lost.length > 0) {
      const now = lost;
      lost = [];
      await agents.expect(now).catch(onError);
    }
    reading = false;
  };
  return (deviceId) => {
    if (lost.push(deviceId) === 1 && !reading) setImmediate(() => void readAll());
  };
};
