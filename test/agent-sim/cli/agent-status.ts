// What the agent of a test says of itself over its socket.
export const agentStatus = (gateway: string, state: string) => ({
  version: "1",
  deviceId: "dev_1",
  gateway,
  state,
  connectedSince: null,
  lastHeartbeat: null,
  unconfirmed: 0,
  clockOffsetMs: 0,
  host: "process",
  apps: [],
});
