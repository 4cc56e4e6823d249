// The request vectors against our own verifier: the gateway answers each request as vectors.json says, over REST and at the upgrade.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { z } from "zod";
import type { AgentRecord } from "../../server/core/agent-registry.ts";
import { isAppError } from "../../server/core/errors.ts";
import type { TenantFacts } from "../../server/core/scope.ts";
import { createAgentAuth } from "../../server/gateway/auth/agent.ts";
import { readCredential } from "../../server/gateway/auth/credentials.ts";
import { createAdmission } from "../../server/gateway/channel/admission.ts";
import { channelSettings } from "../../server/gateway/channel/settings.ts";
import type { HttpRequest } from "../../server/gateway/request-context.ts";

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
const find = async (agentId: string): Promise<AgentRecord | null> => {
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
const agents = { find, take: find, promote: async () => undefined, forget: () => undefined };
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

const newGate = () => {
  const places = new Map<string, string>();
  return createAdmission({
    agents,
    tenants: { find: async (tenantId: string) => tenantOf(tenantId), suspended: async () => new Set() },
    signatures: {
      coversMs: Number.POSITIVE_INFINITY,
      bind: async (use, place, kept) => {
        const first = places.get(use);
        places.set(use, first ?? kept ?? place);
        return first ?? place;
      },
    },
    clock,
    settings: channelSettings(),
  });
};
const upgrade = async (vector: Case): Promise<number> => {
  const gate = newGate();
  const admit = (sessionId: string) =>
    gate.admit(toRequest(vector), { ip: "192.0.2.1", sessionId, node: { draining: false, overloaded: false, connections: 0 } });
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

test.each(requests.cases.map((vector) => [vector.name, `${vector.method} ${vector.path}`, vector] as const))("%s (%s)", async (_, __, vector) => {
  const answer = await (vector.path.endsWith("/agent/connect") ? upgrade(vector) : call(vector)).then(
    (status) => ({ status }),
    (error: unknown) => {
      if (!isAppError(error)) throw error;
      const reason = error.details?.["reason"];
      return { status: error.status, code: error.code, ...(reason === undefined ? {} : { reason }) };
    },
  );
  expect(answer).toEqual(vector.expected);
});
