// The simulator's ledger, command line and load.
import { describe, expect, test } from "vitest";
import { createRandom, NoAnswer } from "../../agent-sim/agent/index.ts";
import { createLatency } from "../../agent-sim/fleet/latency.ts";
import { createLedger } from "../../agent-sim/fleet/ledger.ts";
import { startLoad } from "../../agent-sim/fleet/load.ts";
import type { Portal } from "../../agent-sim/fleet/portal.ts";
import { verifyAll } from "../../agent-sim/fleet/verify.ts";
import { parseOptions } from "../../agent-sim/options.ts";
import type { CommandStatus } from "../../protocol/index.ts";
import { eventually } from "../kit/eventually.ts";
import { createFastTime } from "./clocks.ts";

const facts = { deviceId: "dev_1", requiresAck: true, sentAtMs: 100 };

describe("ledger", () => {
  test("the ledger measures from the request even if the push overtakes its answer", () => {
    let now = 110;
    const ledger = createLedger(() => now);
    ledger.delivered("a", "socket");
    now = 130;
    ledger.accepted("a", facts);
    now = 150;
    ledger.settled("a");
    expect(ledger.createToPush.percentiles()).toEqual({ p50: 10, p99: 10 });
    expect(ledger.createToAck.percentiles()).toEqual({ p50: 50, p99: 50 });
    expect(ledger.counts).toEqual({ accepted: 1, pushed: 1, acked: 1, executedTwice: 0, open: 0 });
  });
  test("the ledger counts a warm-up command but not its latency", () => {
    const ledger = createLedger(() => 900);
    ledger.accepted("a", { ...facts, isWarmUp: true });
    ledger.delivered("a", "socket");
    ledger.settled("a");
    expect(ledger.counts).toMatchObject({ accepted: 1, acked: 1, open: 0 });
    expect([ledger.createToPush.percentiles().p99, ledger.createToAck.percentiles().p99]).toEqual([null, null]);
  });
  test("the ledger counts a repeated command once, however often it ran", () => {
    const ledger = createLedger(() => 0);
    for (const id of ["a", "b", "b", "b"]) ledger.executed(id);
    expect(ledger.counts.executedTwice).toBe(1);
  });
  test("the ledger does not wait for the ack of a command that asks for none", () => {
    const ledger = createLedger(() => 0);
    ledger.accepted("a", { ...facts, requiresAck: false });
    expect(ledger.counts.open).toBe(0);
  });
  test("the ledger does not wait for a command that the agent was told to forget", () => {
    const ledger = createLedger(() => 0);
    ledger.accepted("a", facts);
    expect(ledger.counts.open).toBe(1);
    ledger.forgotten("a");
    expect([ledger.counts.open, ledger.createToAck.percentiles().p50]).toEqual([0, null]);
  });
});

test("percentiles are those of the recorded values", () => {
  const latency = createLatency();
  expect(latency.percentiles()).toEqual({ p50: null, p99: null });
  for (let ms = 1; ms <= 100; ms += 1) latency.add(ms);
  expect(latency.percentiles()).toEqual({ p50: 50, p99: 99 });
});

describe("command line", () => {
  test.each([
    ["30s", 30_000],
    ["2m", 120_000],
    ["500ms", 500],
    ["1.5h", 5_400_000],
    ["7", 7_000],
  ])("--duration %s is %i ms", (text, ms) => expect(parseOptions(["--duration", text]).duration).toBe(ms));
  test.each([
    [["--agents", "0"], "--agents"],
    [["--agents", "many"], "--agents"],
    [["--duration", "soon"], "--duration"],
    [["--poll-only", "101"], "--poll-only"],
    [["--url", "https://a.example"], "belong together"],
    [["--what"], "--what"],
    [["stray"], "stray"],
    [["chaos", "--short"], "npm run chaos"],
  ])("%j is refused, and the message names the option", (args, name) => expect(() => parseOptions(args)).toThrow(name));
});

const portalWith = (queue: Portal["queue"], statuses: Readonly<Record<string, CommandStatus>> = {}): Portal => ({
  queue,
  provision: async () => [],
  list: async () => ({ items: Object.entries(statuses).map(([id, status]) => ({ commandId: `cmd_${id}` as const, status })), hasMore: false }),
});
const member = { deviceId: "dev_1", agentId: "agt_1", tenantId: "ten_1", secret: "s", fingerprint: "f" };

describe("load", () => {
  const run = (queue: Portal["queue"]) => {
    const time = createFastTime(100);
    const ledger = createLedger(time.elapsedMs);
    return {
      ledger,
      load: startLoad({
        portal: portalWith(queue),
        ledger,
        members: [member],
        perSecond: 20,
        durationMs: 5_000,
        time,
        random: createRandom(3),
        graceMs: 1_000,
        signal: new AbortController().signal,
      }),
    };
  };
  test("the load keeps its rate however slow the answers are", async () => {
    let asked = 0;
    const { load } = run(() => new Promise(() => (asked += 1)));
    await load.done;
    expect(asked).toBeGreaterThan(70);
    expect(asked).toBeLessThanOrEqual(100);
    expect(load.outstanding).toBe(asked);
  });
  test("the load counts refused commands apart from those of unknown outcome", async () => {
    let n = 0;
    const { load, ledger } = run(async (_, __, { onAttempt }) => {
      onAttempt();
      n += 1;
      if (n === 1) throw new NoAnswer("gone");
      if (n === 2) throw new Error("422");
      return { commandId: `cmd_${n}`, replayed: false };
    });
    await load.done;
    await eventually(() => expect(load.outstanding).toBe(0));
    expect([load.unresolved, load.refused, load.firstProblem, ledger.counts.accepted]).toEqual([1, 1, "gone", n - 2]);
  });
});

test("a command that REST does not show as ended counts as lost", async () => {
  const time = createFastTime(1_000);
  const portal = portalWith(() => Promise.reject(new Error("not used")), { a: "succeeded", b: "running", c: "canceled" });
  const findings = await verifyAll(portal, new Map([["dev_1", ["cmd_a", "cmd_b", "cmd_c", "cmd_d"]]]), {
    time,
    random: createRandom(1),
    untilMs: time.elapsedMs() + 5_000,
  });
  expect(findings).toEqual({ terminal: 2, lost: 2, byStatus: { succeeded: 1, running: 1, canceled: 1, unknown: 1 }, examples: ["cmd_b", "cmd_d"] });
});
