// The request vectors against our own verifier: the gateway answers each request as vectors.json says, over REST and at the upgrade.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import { isAppError } from "../../server/core/errors.ts";
import type { AgentRecord } from "../../server/core/ports/agent-registry.ts";
import type { TenantFacts } from "../../server/core/scope.ts";
import { createAgentAuth } from "../../server/gateway/auth/agent.ts";
import { readCredential } from "../../server/gateway/auth/credentials.ts";
import { createAdmission } from "../../server/gateway/channel/admission.ts";
import { channelSettings } from "../../server/gateway/channel/settings.ts";
import type { HttpRequest } from "../../server/gateway/http/http-message.ts";
import { createSignatureMemory } from "../../server/platform/signature-memory.ts";

const Agent = z.object({ agentId: z.string(), tenantId: z.string(), deviceId: z.string(), secret: z.string(), state: z.string().optional() });
const Case = z.object({
  name: z.string(),
  method: z.string(),
  path: z.string(),
  query: z.string(),
  body: z.string(),
  headers: z.record(z.string(), z.string()),
  seen: z.boolean().optional(),
  expected: z.object({ status: z.int(), code: z.string().optional(), reason: z.string().optional() }),
});
type Case = z.infer<typeof Case>;
const { requests } = z
  .object({ requests: z.object({ now: z.iso.datetime(), agents: z.array(Agent), cases: z.array(Case).min(30) }) })
  .parse(JSON.parse(readFileSync(new URL("../../protocol/vectors.json", import.meta.url), "utf8")));

const clock = { now: () => new Date(requests.now), elapsed: () => 0 };
const agentOf = (agentId: string): AgentRecord | null => {
  const agent = requests.agents.find((each) => each.agentId === agentId);
  if (agent === undefined) return null;
  const revoked = agent.state === "removed";
  return {
    ...(agent as Pick<AgentRecord, "agentId" | "deviceId" | "tenantId">),
    deploymentId: "dep_1",
    secrets: revoked ? [] : [agent.secret],
    minSignatureVersion: agent.state === "locked to version 2" ? 2 : 1,
    revoked,
    tenantStatus: "active",
  };
};
const agents = { find: async (agentId: string) => agentOf(agentId), promote: async () => undefined };
const tenantOf = (tenantId: string): TenantFacts => {
  const suspended = requests.agents.some((agent) => agent.tenantId === tenantId && agent.state === "tenant suspended");
  return { status: suspended ? "suspended" : "active" } as TenantFacts;
};

/** Headers that every HTTP and WebSocket client sends; the vectors omit them. */
const USUAL = {
  host: "gateway.example",
  upgrade: "websocket",
  connection: "Upgrade",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};
const toRequest = ({ method, path, query, headers }: Case): HttpRequest => ({
  method,
  path,
  query,
  headers: { ...USUAL, ...headers },
  repeated: new Set(),
  peer: "192.0.2.1",
});

type Gate = ReturnType<typeof createAdmission>;
const newGate = (remembers = false): Gate =>
  createAdmission({
    agents: { ...agents, recall: (agentId) => (remembers ? agentOf(agentId) : null), remember: () => undefined },
    tenants: { find: async (tenantId: string) => tenantOf(tenantId), peek: tenantOf, suspended: async () => new Set() },
    signatures: createSignatureMemory(),
    clock,
    settings: channelSettings(),
  });
const upgradeAt = async (gate: Gate, vector: Case): Promise<number> => {
  const admit = async (sessionId: string) => {
    const at = { ip: "192.0.2.1", sessionId, node: { draining: false, overloaded: false, connections: 0 } };
    return gate.admitRemembered(toRequest(vector), at) ?? (await gate.admit(toRequest(vector), at));
  };
  if (vector.seen === true) await admit("ses_1");
  await admit("ses_2");
  return 101;
};
const call = async (vector: Case): Promise<number> => {
  const credential = readCredential(toRequest(vector));
  if (credential.kind !== "agent") throw new Error("no agent's request");
  await createAgentAuth({ agents, clock })(credential, Buffer.from(vector.body, "utf8"));
  return 200;
};

const answerTo = (asked: Promise<number>): Promise<object> =>
  asked.then(
    (status) => ({ status }),
    (error: unknown) => {
      if (!isAppError(error)) throw error;
      const reason = error.details?.["reason"];
      return { status: error.status, code: error.code, ...(reason === undefined ? {} : { reason }) };
    },
  );
const isUpgrade = ({ path }: Case): boolean => path.endsWith("/agent/connect");
const named = (vector: Case) => [vector.name, `${vector.method} ${vector.path}`, vector] as const;

test.each(requests.cases.map(named))("%s (%s)", async (_, __, vector) => {
  expect(await answerTo(isUpgrade(vector) ? upgradeAt(newGate(), vector) : call(vector))).toEqual(vector.expected);
});

test.each(requests.cases.filter(isUpgrade).map(named))("%s (%s), of an agent that the node remembers", async (_, __, vector) => {
  expect(await answerTo(upgradeAt(newGate(true), vector))).toEqual(vector.expected);
});
