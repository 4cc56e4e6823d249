// A command inside the agent: it runs once, its acks repeat until they are answered, and it stops if it can.
import { beforeEach, describe, expect, test } from "vitest";
import { type AckSender, type AgentAck, createAckSender } from "../../agent-sim/agent/ack-sender.ts";
import { createExecutor, type Executor } from "../../agent-sim/agent/executor.ts";
import type { AckAnswer } from "../../agent-sim/agent/frames.ts";
import { type CommandHandler, HandlerFailure } from "../../agent-sim/agent/handlers.ts";
import { createMemoryJournal, type Journal } from "../../agent-sim/agent/index.ts";
import type { AckResult, CommandStatus, DeliveredCommand } from "../../protocol/index.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { createHandTime, type HandTime } from "./clocks.ts";

const ID = "cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R";
interface Given {
  readonly commandId?: `cmd_${string}`;
  readonly type?: string;
  readonly requiresAck?: boolean;
  readonly lane?: string;
  readonly expiresAt?: string | null;
}
const command = ({ commandId = ID, type = "job", requiresAck = true, lane = "l", expiresAt = null }: Given = {}): DeliveredCommand => ({
  command: { commandId, type, issuedAt: "2026-01-02T00:00:00.000Z", payload: {}, requiresAck },
  delivery: { attempt: 1, redelivered: false, seq: 1, lane, ackBy: "2026-01-02T00:00:20.000Z", expiresAt, executionTimeoutSec: 60 },
});

let time: HandTime;
let journal: Journal;
let acks: AckSender;
let executor: Executor;
let sent: { readonly id: string; readonly commandId: string; readonly word: AgentAck }[];
let executed: string[];
let finish: (output: unknown) => void;
let settled: AckAnswer[];

const job: CommandHandler = { long: false, cancelable: false, run: () => new Promise((resolve) => (finish = resolve)) };
const start = (): void => {
  acks = createAckSender({
    time,
    resend: () => ({ resendMs: 15_000, capMs: 300_000 }),
    onSettled: (result) => {
      journal.settle(result.commandId);
      settled.push(result);
    },
  });
  executor = createExecutor({
    journal,
    acks,
    time,
    serverNowMs: time.wallMs,
    maxOutputBytes: () => 1_000,
    onExecute: (commandId) => executed.push(commandId),
    handlers: {
      job,
      "stoppable-job": { ...job, cancelable: true },
      "repeatable-job": { ...job, repeatable: true },
      "broken-job": { ...job, run: () => Promise.reject(new Error("broken")) },
      "failing-job": { ...job, run: () => Promise.reject(new HandlerFailure("PORT_TAKEN", { port: 80 })) },
    },
  });
};
const connect = (): void =>
  acks.use((commandId, word) => {
    sent.push({ id: String(sent.length), commandId, word });
    return String(sent.length - 1);
  });
/** Answers the newest frame as the gateway. */
const answer = (status: CommandStatus = "acknowledged", result: AckResult["result"] = "applied"): void =>
  acks.answered({ commandId: sent.at(-1)?.commandId ?? "", status, result }, sent.at(-1)?.id);
const words = (): readonly string[] => sent.map(({ word }) => word.status);
const hears = (...expected: readonly string[]): Promise<void> => eventually(() => expect(words()).toEqual(expected));
const begins = (count = 1): Promise<void> => eventually(() => expect(executed).toHaveLength(count));

beforeEach(() => {
  [time, sent, executed, settled] = [createHandTime(), [], [], []];
  journal = createMemoryJournal(time.wallMs);
  start();
  connect();
});

describe("commands", () => {
  test("a command is acknowledged before it runs, and its result is sent until the gateway stores it", async () => {
    executor.deliver(command());
    expect([words(), executed]).toEqual([["received"], []]);
    await begins();
    answer();
    finish({ n: 1 });
    await hears("received", "succeeded");
    expect(sent[1]?.word.output).toEqual({ n: 1 });
    for (const waitMs of [15_000, 30_000, 60_000, 120_000, 240_000, 300_000, 300_000]) {
      const before = sent.length;
      time.advance(waitMs - 1);
      expect(sent).toHaveLength(before);
      time.advance(1);
      expect(sent).toHaveLength(before + 1);
    }
    answer("succeeded");
    time.advance(3_600_000);
    expect([sent.length, settled.length, journal.unsettled().length]).toEqual([9, 1, 0]);
  });
  test("a command that is delivered again while it runs does not run twice; its last ack is repeated", async () => {
    executor.deliver(command());
    await begins();
    answer();
    executor.deliver(command());
    await hears("received", "received");
    expect(executed).toHaveLength(1);
  });
  test("a command that is delivered again after its end does not run twice; its stored result is sent", async () => {
    executor.deliver(command());
    await begins();
    answer();
    finish("first");
    await hears("received", "succeeded");
    answer("succeeded");
    executor.deliver(command());
    await hears("received", "succeeded", "succeeded");
    expect(sent[2]?.word.output).toBe("first");
    expect(executed).toHaveLength(1);
  });
  test("a command that asks for no ack runs once and is never reported", async () => {
    executor.deliver(command({ requiresAck: false }));
    await begins();
    finish(1);
    await eventually(() => expect(journal.find(ID)?.status).toBe("succeeded"));
    executor.deliver(command({ requiresAck: false }));
    expect([words(), executed.length]).toEqual([[], 1]);
  });
  test.each([
    ["a command of an unknown type is rejected", { type: "dance" }, "rejected", "UNSUPPORTED_TYPE"],
    ["a command named like a built-in object member is rejected", { type: "constructor" }, "rejected", "UNSUPPORTED_TYPE"],
    ["a command that expired by the server's clock is rejected", { expiresAt: "2026-01-02T00:00:00.000Z" }, "rejected", "EXPIRED"],
    ["a command whose handler throws fails", { type: "broken-job" }, "failed", "HANDLER_FAILED"],
  ])("%s", async (_, given, status, code) => {
    executor.deliver(command(given));
    if (words()[0] === "received") answer();
    await eventually(() => expect(sent.at(-1)?.word).toMatchObject({ status, code }));
  });
  test("a command that takes too long fails, and its later result does not count", async () => {
    executor.deliver(command());
    await begins();
    answer();
    time.advance(60_000);
    await eventually(() => expect(sent.at(-1)?.word).toMatchObject({ status: "failed", code: "AGENT_TIMEOUT" }));
    finish("late");
    expect(journal.find(ID)?.status).toBe("failed");
  });
  test("too large an output is truncated and marked as such", async () => {
    executor.deliver(command());
    await begins();
    answer();
    finish("✓".repeat(1_000));
    await hears("received", "succeeded");
    expect(sent[1]?.word.outputTruncated).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(sent[1]?.word.output))).toBeLessThanOrEqual(1_000);
  });
  test("a command waits for the one before it in its lane", async () => {
    executor.deliver(command());
    executor.deliver(command({ commandId: "cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8S" }));
    executor.deliver(command({ commandId: "cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8T", lane: "other" }));
    await begins(2);
    expect(executed).toEqual([ID, "cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8T"]);
  });
});

describe("cancels", () => {
  test("a cancel stops a cancelable command", async () => {
    executor.deliver(command({ type: "stoppable-job" }));
    await begins();
    answer();
    executor.cancel(ID, "");
    await hears("received", "canceled");
  });
  test("a cancel of a command that cannot stop is rejected, and the command runs to its end", async () => {
    executor.deliver(command());
    await begins();
    answer();
    executor.cancel(ID, "");
    await hears("received", "cancel_rejected");
    answer("running");
    finish(1);
    await hears("received", "cancel_rejected", "succeeded");
  });
  test("a cancel of a waiting command prevents its start", async () => {
    executor.deliver(command());
    await begins();
    const second = "cmd_01J9ZQ3E8W6Y2V7K4M5N6P7Q8S";
    executor.deliver(command({ commandId: second }));
    executor.cancel(second, "");
    finish(1);
    await eventually(() => expect(journal.find(second)?.status).toBe("canceled"));
    expect(executed).toEqual([ID]);
  });
  test("a cancel that arrives before its command prevents its start", () => {
    executor.cancel(ID, "too late");
    executor.deliver(command());
    expect([executed.length, journal.find(ID)?.status, words()]).toEqual([0, "canceled", ["canceled"]]);
  });
  test("a cancel of an ended command repeats its result", async () => {
    executor.deliver(command());
    await begins();
    answer();
    finish(1);
    await hears("received", "succeeded");
    answer("succeeded");
    executor.cancel(ID, "");
    await hears("received", "succeeded", "succeeded");
  });
});

describe("disconnected", () => {
  test("without a connection only the last ack of a command is kept, and sent on the next connection", async () => {
    acks.use(null);
    executor.deliver(command());
    await begins();
    finish(1);
    await eventually(() => expect(journal.find(ID)?.status).toBe("succeeded"));
    expect(words()).toEqual([]);
    connect();
    await hears("succeeded");
  });
  test("an answer to an old ack does not settle a newer one", async () => {
    executor.deliver(command());
    await begins();
    finish(1);
    await eventually(() => expect(journal.find(ID)?.status).toBe("succeeded"));
    connect();
    await hears("received", "succeeded");
    acks.answered({ commandId: ID, status: "acknowledged", result: "applied" }, "0");
    expect([acks.waiting, journal.unsettled().length]).toEqual([1, 1]);
  });
});

test("after a restart the agent sends its results again and reports unfinished commands as failed, without running them", async () => {
  journal.begin("half", true);
  journal.begin("done", true);
  journal.finish("done", { status: "succeeded" });
  start();
  executor.resume();
  connect();
  expect(sent.map(({ commandId, word }) => [commandId, word.status, word.code])).toEqual([
    ["half", "failed", "AGENT_RESTARTED"],
    ["done", "succeeded", undefined],
  ]);
  expect(executed).toEqual([]);
});

test("after a restart the agent runs an unfinished repeatable command again, and only once it has no result", async () => {
  executor.deliver(command({ type: "repeatable-job" }));
  await begins();
  start();
  executor.resume();
  connect();
  await begins(2);
  finish("done now");
  await eventually(() => expect(journal.find(ID)).toMatchObject({ status: "succeeded", result: { output: "done now" }, again: null }));
  start();
  executor.resume();
  expect(executed).toEqual([ID, ID]);
});

test("a handler says with which code and output its command fails", async () => {
  executor.deliver(command({ type: "failing-job" }));
  await eventually(() => expect(journal.find(ID)?.result).toMatchObject({ status: "failed", code: "PORT_TAKEN", output: { port: 80 } }));
});
