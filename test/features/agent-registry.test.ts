// How long the directory of agents keeps its records in memory: they hold secrets.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import type { AgentRecord } from "../../server/core/agent-registry.ts";
import { type Agents, createAgentRegistry } from "../../server/features/devices/agent-registry.ts";
import { deviceSettings } from "../../server/features/devices/settings.ts";
import { openMemoryBus } from "../../server/platform/bus-memory.ts";
import { eventually } from "../kit/eventually.ts";

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

const open = (directoryMs: number, answer: () => Promise<object[]> = async () => [row]): { directory: Agents; asked: () => number } => {
  let asked = 0;
  const query = (): Promise<object[]> => {
    asked += 1;
    return answer();
  };
  const directory = createAgentRegistry({
    db: { query } as never,
    bus: openMemoryBus(),
    emit: async () => undefined,
    box: { open: () => "secret" },
    settings: deviceSettings(30, { directoryMs }),
  });
  return { directory, asked: () => asked };
};

test("a remembered agent costs one query, until somebody takes the record", async () => {
  const { directory, asked } = open(60_000);
  await directory.find(AGENT);
  expect((await directory.take(AGENT))?.agentId).toBe(AGENT);
  expect(asked()).toBe(1);
  expect((await directory.find(AGENT))?.agentId).toBe(AGENT);
  expect(asked()).toBe(2);
});

test("fifty look-ups of an agent at once share one query, and a look-up after a change does not share a query from before it", async () => {
  const answers: ((rows: object[]) => void)[] = [];
  const { directory } = open(60_000, () => new Promise((resolve) => void answers.push(resolve)));
  const before = Array.from({ length: 50 }, () => directory.find(AGENT));
  await eventually(async () => expect(answers).toHaveLength(1));
  const asLate = directory.find(AGENT);
  directory.forget([AGENT]);
  const after = directory.find(AGENT);
  await eventually(async () => expect(answers).toHaveLength(2));
  answers[1]?.([{ ...row, tenant_status: "suspended" }]);
  expect((await after)?.tenantStatus).toBe("suspended");
  answers[0]?.([row]);
  expect(new Set((await Promise.all([...before, asLate])).map((record) => record?.tenantStatus))).toEqual(new Set(["active"]));
  // The transaction of the change may still be open, so the directory remembers nothing that it reads meanwhile.
  void directory.find(AGENT);
  await eventually(async () => expect(answers).toHaveLength(3));
});

const lookAt = async (directory: Agents): Promise<WeakRef<AgentRecord>> => new WeakRef((await directory.find(AGENT)) as AgentRecord);

test("a record leaves memory at the end of its lifetime even if nobody asks again", async () => {
  const { directory } = open(1);
  const record = await lookAt(directory);
  await eventually(async () => {
    await Promise.all(directory.jobs.map(({ run }) => run(AbortSignal.timeout(1_000))));
    collectGarbage();
    expect(record.deref()).toBeUndefined();
  });
});
