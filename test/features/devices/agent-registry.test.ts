// How long the agent registry keeps its records in memory: they hold secrets.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import type { AgentRecord } from "../../../server/core/ports/agent-registry.ts";
import { type Agents, createAgentRegistry } from "../../../server/features/devices/agent-registry.ts";
import { deviceSettings } from "../../../server/features/devices/settings.ts";
import { openMemoryBus } from "../../../server/platform/cluster/bus-memory.ts";
import { eventually } from "../../kit/checks/eventually.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

const AGENT = "agt_1";
const row = {
  agent_id: AGENT,
  device_id: "dev_1",
  tenant_id: "ten_1",
  deployment_id: "dep_1",
  secret: Uint8Array.of(1),
  pending_secret: null,
  min_sig_version: 1,
  removed: false,
  tenant_status: "active",
};

const open = (registryMs: number, answer: () => Promise<object[]> = async () => [row]): { registry: Agents; asked: () => number } => {
  let asked = 0;
  const query = (): Promise<object[]> => {
    asked += 1;
    return answer();
  };
  const registry = createAgentRegistry({
    db: { query } as never,
    bus: openMemoryBus(),
    emit: async () => undefined,
    box: { open: () => "secret" },
    settings: deviceSettings(30, { registryMs }),
  });
  return { registry, asked: () => asked };
};

test("a remembered agent costs one query, until somebody takes the record", async () => {
  const { registry, asked } = open(60_000);
  await registry.find(AGENT);
  expect((await registry.take(AGENT))?.agentId).toBe(AGENT);
  expect(asked()).toBe(1);
  expect((await registry.find(AGENT))?.agentId).toBe(AGENT);
  expect(asked()).toBe(2);
});

test("fifty look-ups of an agent at once share one query, and a look-up after a change does not share a query from before it", async () => {
  const answers: ((rows: object[]) => void)[] = [];
  const { registry } = open(60_000, () => new Promise((resolve) => void answers.push(resolve)));
  const before = Array.from({ length: 50 }, () => registry.find(AGENT));
  await eventually(async () => expect(answers).toHaveLength(1));
  const asLate = registry.find(AGENT);
  registry.forget([AGENT]);
  const after = registry.find(AGENT);
  await eventually(async () => expect(answers).toHaveLength(2));
  answers[1]?.([{ ...row, tenant_status: "suspended" }]);
  expect((await after)?.tenantStatus).toBe("suspended");
  answers[0]?.([row]);
  expect(new Set((await Promise.all([...before, asLate])).map((record) => record?.tenantStatus))).toEqual(new Set(["active"]));
  // The transaction of the change may still be open, so the registry remembers nothing that it reads meanwhile.
  void registry.find(AGENT);
  await eventually(async () => expect(answers).toHaveLength(3));
});

const lookAt = async (registry: Agents): Promise<WeakRef<AgentRecord>> => new WeakRef((await registry.find(AGENT)) as AgentRecord);

test("a record leaves memory at the end of its lifetime even if nobody asks again", async () => {
  const { registry } = open(1);
  const record = await lookAt(registry);
  await eventually(async () => {
    await Promise.all(registry.jobs.map(({ run }) => run(AbortSignal.timeout(1_000))));
    collectGarbage();
    expect(record.deref()).toBeUndefined();
  });
});

test("an agent that is expected back costs no second query, and is not remembered once it is taken", async () => {
  const { registry, asked } = open(60_000);
  await registry.expect(["dev_1"]);
  expect(registry.recall(AGENT)?.secrets).toEqual(["secret"]);
  expect((await registry.take(AGENT))?.agentId).toBe(AGENT);
  expect([asked(), registry.recall(AGENT)]).toEqual([1, null]);
});

test("an agent that changes while it is read is not remembered from before the change", async () => {
  const answers: ((rows: object[]) => void)[] = [];
  const { registry } = open(60_000, () => new Promise((resolve) => void answers.push(resolve)));
  const expected = registry.expect(["dev_1"]);
  await eventually(async () => expect(answers).toHaveLength(1));
  registry.forget([AGENT]);
  answers[0]?.([row]);
  await expected;
  expect(registry.recall(AGENT)).toBeNull();
});
