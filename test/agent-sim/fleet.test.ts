// The simulator's tracker, command line and load.
import { describe, expect, test } from "vitest";
import { createRandom, NoAnswer } from "../../agent-sim/agent/index.ts";
import { createCommandTracker } from "../../agent-sim/fleet/command-tracker.ts";
import { createLatency } from "../../agent-sim/fleet/latency.ts";
import { startLoad } from "../../agent-sim/fleet/load.ts";
import type { Portal } from "../../agent-sim/fleet/portal.ts";
import { verifyAll } from "../../agent-sim/fleet/verify.ts";
import { parseOptions } from "../../agent-sim/options.ts";
import type { CommandStatus } from "../../protocol/index.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { createFastTime } from "./clocks.ts";

const facts = { deviceId: "dev_1", requiresAck: true, sentAtMs: 100 };

describe("tracker", () => {
  test("the tracker measures from the request even if the push overtakes its answer", () => {
    let now = 110;
    const tracker = createCommandTracker(() => now);
    tracker.delivered("a", "socket");
    now = 130;
    tracker.accepted("a", facts);
    now = 150;
    tracker.settled("a");
    expect(tracker.createToPush.percentiles()).toEqual({ p50: 10, p99: 10 });
    expect(tracker.createToAck.percentiles()).toEqual({ p50: 50, p99: 50 });
    expect(tracker.counts).toEqual({ accepted: 1, pushed: 1, acked: 1, executedTwice: 0, open: 0 });
  });
  test("create to ack leaves out the work that a command's payload asks for, and a second figure contains it", () => {
    let now = 100;
    const tracker = createCommandTracker(() => now);
    tracker.accepted("a", { ...facts, workMs: 900 });
    tracker.delivered("a", "socket");
    now = 1_020;
    tracker.settled("a");
    expect(tracker.createToAck.percentiles()).toEqual({ p50: 20, p99: 20 });
    expect(tracker.createToAckWithWork.percentiles()).toEqual({ p50: 920, p99: 920 });
  });
  test("the tracker counts a warm-up command but not its latency", () => {
    const tracker = createCommandTracker(() => 900);
    tracker.accepted("a", { ...facts, isWarmUp: true });
    tracker.delivered("a", "socket");
    tracker.settled("a");
    expect(tracker.counts).toMatchObject({ accepted: 1, acked: 1, open: 0 });
    expect([tracker.createToPush.percentiles().p99, tracker.createToAck.percentiles().p99]).toEqual([null, null]);
  });
  test("the tracker counts a repeated command once, however often it ran", () => {
    const tracker = createCommandTracker(() => 0);
    for (const id of ["a", "b", "b", "b"]) tracker.executed(id);
    expect(tracker.counts.executedTwice).toBe(1);
  });
  test("the tracker does not wait for the ack of a command that asks for none", () => {
    const tracker = createCommandTracker(() => 0);
    tracker.accepted("a", { ...facts, requiresAck: false });
    expect(tracker.counts.open).toBe(0);
  });
  test("the tracker does not wait for a command that the agent was told to forget", () => {
    const tracker = createCommandTracker(() => 0);
    tracker.accepted("a", facts);
    expect(tracker.counts.open).toBe(1);
    tracker.forgotten("a");
    expect([tracker.counts.open, tracker.createToAck.percentiles().p50]).toEqual([0, null]);
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
    [["--failing-updates", "60", "--lost-after-update", "41"], "100 or less together"],
    [["--url", "https://a.example"], "must be given together"],
    [["--api-key", "k"], "must be given together"],
    [["--tenant", "ten_1"], "must be given together"],
    [["--what"], "--what"],
    [["stray"], "stray"],
    [["chaos", "--short"], "npm run chaos"],
  ])("%j is refused, and the message names the option", (args, name) => expect(() => parseOptions(args)).toThrow(name));
});

test("a gateway's URL and a key are enough for another gateway", () => {
  expect(parseOptions(["--url", "https://a.example", "--api-key", "k"])).toMatchObject({ url: "https://a.example", "api-key": "k" });
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
    const tracker = createCommandTracker(time.elapsedMs);
    return {
      tracker,
      load: startLoad({
        portal: portalWith(queue),
        tracker,
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
  test("the load sends all that is due, however slow the answers are and however late its ticks", async () => {
    let asked = 0;
    const { load } = run(() => new Promise(() => (asked += 1)));
    await load.done;
    expect(asked).toBe(100);
    expect(load.outstanding).toBe(asked);
  });
  test("the load counts refused commands apart from those of unknown outcome", async () => {
    let n = 0;
    const { load, tracker } = run(async (_, __, { onAttempt }) => {
      onAttempt();
      n += 1;
      if (n === 1) throw new NoAnswer("gone");
      if (n === 2) throw new Error("422");
      return { commandId: `cmd_${n}`, replayed: false };
    });
    await load.done;
    await eventually(() => expect(load.outstanding).toBe(0));
    expect([load.unresolved, load.refused, load.firstProblem, tracker.counts.accepted]).toEqual([1, 1, "gone", n - 2]);
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
