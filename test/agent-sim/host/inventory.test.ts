// The inventory: what the machine says of itself, and when the gateway is told.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { type HttpAnswer, type Inventory, NoAnswer, systemTime, thisMachine } from "../../../agent-sim/agent/index.ts";
import { createInventorySync } from "../../../agent-sim/host/inventory-sync.ts";
import { type HostKind, runtimesOf } from "../../../agent-sim/host/open.ts";
import { contract } from "../../../protocol/index.ts";
import { createHandTime } from "../clocks.ts";

const OK: HttpAnswer = { status: 200, headers: {}, body: { data: {} } };
const refused = (status: number, headers = {}): HttpAnswer => ({ status, headers, body: { data: null } });

const open = () => {
  const time = createHandTime();
  const sent: unknown[] = [];
  const answers: (() => HttpAnswer)[] = [];
  const state = { inventory: { ...thisMachine.inventory(), ipAddresses: ["192.168.1.20"] } as Inventory };
  const call = async (method: string, path: string, body?: unknown): Promise<HttpAnswer> => {
    expect([method, path]).toEqual(["PUT", "/v1/agent/inventory"]);
    sent.push(body);
    return (answers.shift() ?? (() => OK))();
  };
  const sync = createInventorySync({ machine: { inventory: () => state.inventory }, call, time, random: () => 0.5 });
  /** Lets the promises of the last call settle. */
  const passed = async (ms: number): Promise<void> => {
    time.advance(ms);
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  return { state, sent, sync, passed, answers };
};

test("a machine's own word is an inventory by the contract, and names no address that others cannot reach", () => {
  const inventory = thisMachine.inventory();
  expect(contract.agent.operations.reportInventory.input.parse(inventory)).toEqual(inventory);
  expect(inventory).toMatchObject({ agentVersion: expect.any(String), osVersion: expect.any(String), hardware: { memoryBytes: expect.any(Number) } });
  for (const address of inventory.ipAddresses) expect(address).not.toMatch(/^(127\.|::1$|fe80:|169\.254\.)/);
  expect(thisMachine.metrics()).toMatchObject({ disk: expect.any(Number) });
});

test("it is told within the window of the start, and again only when it has changed", async () => {
  const { state, sent, sync, passed } = open();
  sync.start(60_000);
  await passed(29_999);
  expect(sent).toEqual([]);
  await passed(1);
  expect(sent).toEqual([state.inventory]);
  await passed(600_000);
  expect(sent).toHaveLength(1);
  state.inventory = { ...state.inventory, ipAddresses: ["192.168.1.21"] };
  await passed(60_000);
  expect(sent.slice(1)).toEqual([state.inventory]);
  sync.stop();
  state.inventory = { ...state.inventory, ipAddresses: [] };
  await passed(600_000);
  expect(sent).toHaveLength(2);
});

test("it is told again after no answer, ever later, and after a refusal when the gateway says", async () => {
  const { sent, sync, passed, answers } = open();
  const lost = (): never => {
    throw new NoAnswer("away");
  };
  answers.push(
    lost,
    lost,
    () => refused(429, { "retry-after": "120" }),
    () => refused(500),
  );
  sync.start();
  await passed(0);
  await passed(5_000);
  expect(sent).toHaveLength(2);
  await passed(9_999);
  expect(sent).toHaveLength(2);
  await passed(1);
  expect(sent).toHaveLength(3);
  await passed(119_999);
  expect(sent).toHaveLength(3);
  await passed(1);
  expect(sent).toHaveLength(4);
  await passed(60_000);
  expect(sent).toHaveLength(5);
  await passed(600_000);
  expect(sent).toHaveLength(5);
  sync.stop();
});

test("a host tells the kinds of apps that it runs, and one of containers tells none where Docker Compose does not answer", async () => {
  const folder = mkdtempSync(join(tmpdir(), "runtimes-"));
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });
  vi.stubEnv("PATH", folder);
  const runtimes = (kind: HostKind) => runtimesOf(kind, systemTime, new AbortController().signal);
  expect(await runtimes("simulated")).toEqual(["process", "compose"]);
  expect(await runtimes("process")).toEqual(["process"]);
  expect(await runtimes("compose")).toEqual([]);
  const docker = (code: number): void => writeFileSync(join(folder, "docker"), `#!/bin/sh\nexit ${code}\n`, { mode: 0o700 });
  docker(1);
  expect(await runtimes("compose")).toEqual([]);
  docker(0);
  expect(await runtimes("compose")).toEqual(["compose"]);
});
