// What a handler receives beside its input: one signal and a time limit.
import { expect, test } from "vitest";
import { contract } from "../../protocol/index.ts";
import type { Call } from "../../server/core/feature.ts";
import { createLazyAbort, eitherOf, lazyAbortOf } from "../../server/core/lifecycle/lazy-abort.ts";
import { nothingBlocked } from "../../server/core/ports/security.ts";
import type { Entry } from "../../server/gateway/call/operation-table.ts";
import { createRun } from "../../server/gateway/call/run-handler.ts";
import { noAudit } from "../kit/gateway/call.ts";

const CALL_TIMEOUT_MS = 40;
const transact = () => Promise.reject(new Error("not asked for"));
const run = createRun({
  transact,
  audit: noAudit,
  holdVersion: async () => undefined,
  strictOutput: false,
  blocks: nothingBlocked,
  callTimeoutMs: CALL_TIMEOUT_MS,
});
const prepared = {
  scope: { requestId: "req_12345678", ip: "127.0.0.1", traceparent: null, tenantId: null, tenant: null, principal: null },
  input: {},
  key: null,
};
const entry = (handler: (call: Call) => Promise<unknown>): Entry => ({
  id: "health.live",
  group: "health",
  name: "live",
  tag: "Health and Status",
  op: contract.health.operations.live,
  handler,
});
const TIMED_OUT = { code: "SERVICE_UNAVAILABLE", details: { reason: "timeout" } };

test("a call that exceeds its time limit is answered, and its signal fires", async () => {
  const signals: AbortSignal[] = [];
  const hanging = entry((call) => {
    signals.push(call.signal);
    return new Promise(() => undefined);
  });
  await expect(run(hanging, prepared, createLazyAbort())).rejects.toMatchObject(TIMED_OUT);
  expect(signals[0]?.aborted).toBe(true);
});

test("calls end in any order, and each keeps its own time limit", async () => {
  const ends: ((value: number) => void)[] = [];
  const waiting = entry(() => new Promise((resolve) => ends.push(resolve)));
  const calls = Array.from({ length: 6 }, () => run(waiting, prepared, createLazyAbort()).catch((error: unknown) => error));
  for (const at of [0, 5, 3]) ends[at]?.(at);
  const outcomes = await Promise.all(calls);
  for (const at of [0, 3, 5]) expect(outcomes[at]).toMatchObject({ result: at });
  for (const at of [1, 2, 4]) expect(outcomes[at]).toMatchObject(TIMED_OUT);
});

test("a call has one signal, which fires when its caller disconnects", async () => {
  const gone = createLazyAbort();
  const asking = entry(async (call) => {
    const first = call.signal;
    gone.abort();
    return { same: first === call.signal, aborted: first.aborted };
  });
  expect((await run(asking, prepared, gone)).result).toEqual({ same: true, aborted: true });
});

test("an answered call leaves no listener on its caller", async () => {
  const gone = createLazyAbort();
  const signals: AbortSignal[] = [];
  const asking = entry(async (call) => void signals.push(call.signal));
  for (let count = 0; count < 20; count += 1) await run(asking, prepared, gone);
  const failing = entry(async (call) => {
    signals.push(call.signal);
    throw new Error("no");
  });
  await expect(run(failing, prepared, gone)).rejects.toThrow("no");
  gone.abort();
  expect([signals.length, signals.filter(({ aborted }) => aborted).length]).toEqual([21, 0]);
});

test("an abort reaches each listener once, a late listener at once, and a removed one never", () => {
  const heard: string[] = [];
  const off = createLazyAbort();
  for (const each of [off, lazyAbortOf(off.signal)]) {
    each.onAbort(() => heard.push("stayed"));
    each.onAbort(() => heard.push("left"))();
  }
  off.abort();
  off.abort();
  for (const each of [off, lazyAbortOf(off.signal)]) each.onAbort(() => heard.push("late"));
  expect(heard).toEqual(["stayed", "stayed", "late", "late"]);
  const [one, other] = [new AbortController(), new AbortController()];
  const both = eitherOf(one.signal, other.signal);
  expect(both.aborted).toBe(false);
  other.abort();
  expect(both.aborted).toBe(true);
});
