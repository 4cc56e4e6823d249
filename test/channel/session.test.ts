// What a session keeps of its agent's credentials, and for how long.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { type AgentId, CLOSE, type DeploymentId, type DeviceId, Hello, sign, type TenantId } from "../../protocol/index.ts";
import { systemClock } from "../../server/core/clock.ts";
import type { AgentRecord } from "../../server/core/ports/agent-registry.ts";
import { unwatched } from "../../server/core/ports/security.ts";
import { createHelloJudge } from "../../server/gateway/channel/hello.ts";
import { type AgentSession, newSession } from "../../server/gateway/channel/session.ts";
import { channelSettings } from "../../server/gateway/channel/settings.ts";

const agent: AgentRecord = {
  agentId: "agt_1" as AgentId,
  deviceId: "dev_1" as DeviceId,
  tenantId: "ten_1" as TenantId,
  deploymentId: "dep_1" as DeploymentId,
  secrets: [randomUUID()],
  minSignatureVersion: 1,
  revoked: false,
  tenantStatus: "active",
};

const open = (): AgentSession => newSession({ id: "ses_1", agent, signatureVersion: 2, ip: "127.0.0.1", heartbeatLimit: null }, channelSettings(), 0);

const helloOf = (session: AgentSession): Hello => {
  const timestamp = new Date().toISOString();
  return Hello.parse({ proof: { timestamp, signature: sign(agent.secrets[0] ?? "", session.challenge?.nonce ?? "", timestamp) } });
};

const judge = createHelloJudge({
  agents: { take: async () => agent, promote: async () => undefined },
  sessions: {
    begin: async () => ({ epoch: 1, previousNodeId: null, handedOver: false, pushedOut: 0, reconcile: [], queuedCount: 0, notify: () => undefined }),
    reportDuplicate: async () => undefined,
  },
  clock: systemClock,
  nodeId: "node",
  duplicates: { isDuplicate: async () => false },
  watch: unwatched,
  onError: () => undefined,
});

test("a session keeps no secret of its agent", () => {
  expect(JSON.stringify(open())).not.toContain(agent.secrets[0]);
});

test("a challenge is good for one hello, even if that succeeded", async () => {
  const session = open();
  const hello = helloOf(session);
  expect(await judge(session, hello)).toMatchObject({ begun: { epoch: 1 } });
  expect(session.challenge).toBeNull();
  expect(await judge(session, hello)).toMatchObject({ close: CLOSE.authFailed });
});
