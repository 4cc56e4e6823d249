// A full disk: the agent runs no command and reports no result that it cannot journal, and it does not crash.
import { mkdtempSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type AckSender, createAckSender } from "../../agent-sim/agent/ack-sender.ts";
import { createExecutor, type Executor } from "../../agent-sim/agent/executor.ts";
import type { CommandHandler } from "../../agent-sim/agent/handlers.ts";
import { DISK, openFileJournal } from "../../agent-sim/agent/state/file-journal.ts";
import { CannotWrite, type Journal } from "../../agent-sim/agent/state/journal.ts";
import { eventually } from "../kit/checks/eventually.ts";
import { createHandTime, type HandTime } from "./clocks.ts";

let folder: string;
let full: boolean;
let journal: Journal;
let time: HandTime;
let acks: AckSender;
let executor: Executor;
let executed: string[];
let told: string[];
let alarms: string[];
let finish: () => void;

const noSpace = (syscall: string): never => {
  throw Object.assign(new Error(`ENOSPC: no space left on device, ${syscall}`), { code: "ENOSPC", syscall });
};
/** Fails as a real disk does: part of the record still fits, the rest does not. */
const disk: typeof DISK = {
  write: (file, bytes, at) => {
    if (!full) return DISK.write(file, bytes, at);
    return at === 0 ? writeSync(file, bytes, 0, 7) : noSpace("write");
  },
  sync: DISK.sync,
};
const path = (): string => join(folder, "journal");
const open = (with_ = disk): Journal => openFileJournal(path(), () => 1_000_000, { disk: with_, warn: (text) => alarms.push(text) });
const job: CommandHandler = { long: false, cancelable: false, run: () => new Promise<void>((resolve) => (finish = resolve)) };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "full-disk-"));
  [full, executed, told, alarms, time] = [false, [], [], [], createHandTime()];
  journal = open();
  acks = createAckSender({ time, onSettled: ({ commandId }) => executor.settle(commandId), resend: () => ({ resendMs: 15_000, capMs: 300_000 }) });
  executor = createExecutor({
    journal,
    acks,
    time,
    handlers: { job },
    serverNowMs: time.wallMs,
    maxOutputBytes: () => 1_000,
    onExecute: (id) => executed.push(id),
    onAlarm: (text) => alarms.push(text),
  });
  acks.use((commandId, { status }) => String(told.push(`${commandId} ${status}`)));
});
afterEach(() => rmSync(folder, { recursive: true }));

const deliver = (commandId: string): void =>
  executor.deliver({ command: { commandId, type: "job", payload: {}, requiresAck: true }, delivery: { expiresAt: null, lane: commandId } });

test("a command that cannot be journalled is neither run nor answered, and runs when it is delivered again", async () => {
  full = true;
  deliver("a");
  deliver("b");
  expect([executed, told, alarms]).toEqual([[], [], [expect.stringMatching(/cannot be written: ENOSPC.*takes no new commands/)]]);
  full = false;
  deliver("a");
  await eventually(() => expect(executed).toEqual(["a"]));
  expect(told).toEqual(["a received"]);
});
test("a result that cannot be journalled is reported once, when there is space again", async () => {
  deliver("a");
  await eventually(() => expect(executed).toEqual(["a"]));
  acks.answered({ commandId: "a", status: "acknowledged", result: "applied" }, "1");
  full = true;
  finish();
  await eventually(() => expect(alarms).toHaveLength(1));
  time.advance(10_000);
  expect(told).toEqual(["a received"]);
  full = false;
  time.advance(5_000);
  expect(told).toEqual(["a received", "a succeeded"]);
  expect(open().find("a")).toMatchObject({ status: "succeeded" });
});
test("a confirmation that cannot be journalled costs only a repeated result after the next start", async () => {
  deliver("a");
  await eventually(() => expect(executed).toEqual(["a"]));
  finish();
  acks.answered({ commandId: "a", status: "acknowledged", result: "applied" }, "1");
  await eventually(() => expect(told).toHaveLength(2));
  full = true;
  acks.answered({ commandId: "a", status: "succeeded", result: "applied" }, "2");
  expect([acks.waiting, journal.unsettled().length, alarms.length]).toEqual([0, 1, 1]);
});
test("a cancel of an unseen command that cannot be journalled is not answered", () => {
  full = true;
  executor.cancel("never-seen", "");
  expect(told).toEqual([]);
});
test("after a start on a full disk a command in flight is reported as failed once there is space", () => {
  journal.begin("a", true);
  full = true;
  executor.resume();
  expect(told).toEqual([]);
  full = false;
  time.advance(5_000);
  expect(told).toEqual(["a failed"]);
});

describe("file", () => {
  test("the journal file holds only whole lines although the disk took part of a record", () => {
    journal.begin("a", true);
    full = true;
    expect(() => journal.begin("b", true)).toThrow(CannotWrite);
    expect(journal.find("b")).toBeUndefined();
    expect(readFileSync(path(), "utf8").split("\n")).toHaveLength(2);
    full = false;
    journal.begin("c", true);
    expect([...open().entries()].map(({ commandId }) => commandId)).toEqual(["a", "c"]);
    expect(alarms).toEqual([]);
  });
  test("a record that cannot be synced is not in the file", () => {
    const failing = open({ ...DISK, sync: () => noSpace("fdatasync") });
    expect(() => failing.begin("a", true)).toThrow(CannotWrite);
    expect(open().find("a")).toBeUndefined();
  });
});
