// The journal's guarantees: an id is new once, the first result stands, and both survive a crash.
import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMemoryJournal, type Journal, openFileJournal } from "../../../agent-sim/agent/index.ts";

let folder = "";
const path = (): string => join(folder, "journal.jsonl");
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "journal-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const wallMs = (): number => 1_000_000;
const open = (): Journal => openFileJournal(path(), wallMs);
const forms: readonly (readonly [string, () => Journal])[] = [
  ["in memory", () => createMemoryJournal(wallMs)],
  ["in a file", open],
];

describe.each(forms)("journal %s", (_, make) => {
  test("the journal knows a command after its first arrival", () => {
    const journal = make();
    expect(journal.begin("a", true)).toBe(true);
    expect(journal.begin("a", true)).toBe(false);
  });
  test("the journal keeps the first result and returns it for a second one", () => {
    const journal = make();
    journal.begin("a", true);
    expect(journal.finish("a", { status: "succeeded", output: 1 })).toEqual({ status: "succeeded", output: 1 });
    expect(journal.finish("a", { status: "failed", output: 2 })).toEqual({ status: "succeeded", output: 1 });
    expect(journal.find("a")).toMatchObject({ status: "succeeded", result: { output: 1 } });
  });
  test("the journal lists a result until the gateway has it, and remembers its command afterwards", () => {
    const journal = make();
    journal.begin("a", true);
    journal.finish("a", { status: "succeeded" });
    expect(journal.unsettled()).toHaveLength(1);
    journal.settle("a");
    expect(journal.unsettled()).toHaveLength(0);
    expect(journal.begin("a", true)).toBe(false);
  });
  test("the journal does not settle a command that is still in flight", () => {
    const journal = make();
    journal.begin("a", true);
    journal.settle("a");
    expect(journal.unsettled()).toMatchObject([{ commandId: "a", status: "received" }]);
  });
  test("the journal never lists a command that asks for no ack but remembers it", () => {
    const journal = make();
    journal.begin("a", false);
    journal.finish("a", { status: "succeeded" });
    expect(journal.unsettled()).toHaveLength(0);
    expect(journal.begin("a", false)).toBe(false);
  });
  test("a progress note does not replace a result", () => {
    const journal = make();
    journal.begin("a", true);
    journal.finish("a", { status: "succeeded" });
    journal.note("a", "running");
    expect(journal.find("a")?.status).toBe("succeeded");
  });
});

test("the journal forgets settled ids after a week, but never the last thousand and never a command in flight", () => {
  let now = 0;
  const journal = createMemoryJournal(() => now);
  journal.begin("in-flight", true);
  const settle = (count: number, from: number): void => {
    for (let n = from; n < from + count; n += 1) {
      journal.begin(`c${n}`, true);
      journal.finish(`c${n}`, { status: "succeeded" });
      journal.settle(`c${n}`);
    }
  };
  settle(1_500, 0);
  expect(journal.find("c0")).toBeDefined();
  now = 8 * 24 * 3_600_000;
  settle(1, 1_500);
  expect(journal.find("c0")).toBeUndefined();
  expect(journal.find("c1499")).toBeDefined();
  expect([...journal.entries()].filter(({ settledAtMs }) => settledAtMs !== null)).toHaveLength(1_000);
  expect(journal.find("in-flight")).toBeDefined();
});

describe("after a crash", () => {
  test("after a crash the journal knows everything that was written", () => {
    const before = open();
    before.begin("done", true);
    before.finish("done", { status: "succeeded", output: { n: 1 } });
    before.begin("settled", true);
    before.finish("settled", { status: "failed" });
    before.settle("settled");
    before.begin("half", true);
    const after = open();
    expect(after.unsettled().map(({ commandId, status }) => [commandId, status])).toEqual([
      ["done", "succeeded"],
      ["half", "received"],
    ]);
    expect(after.find("done")?.result).toEqual({ status: "succeeded", output: { n: 1 } });
    expect(after.begin("settled", true)).toBe(false);
  });
  test.each([
    ["half a line", '{"kind":"end","id":"a","resu'],
    ["a line of zeros", "\0\0\0\0\0\0\n"],
    ["a whole record without its line end", '{"kind":"begin","id":"b","requiresAck":true}'],
  ])("a torn last write (%s) is ignored, and the next record starts on its own line", (_, torn) => {
    const before = open();
    before.begin("a", true);
    appendFileSync(path(), torn);
    const after = open();
    expect(after.find("a")).toMatchObject({ result: null });
    expect(after.begin("b", true)).toBe(true);
    expect(open().find("b")).toBeDefined();
  });
  describe("damaged lines", () => {
    const damage = (from: string | RegExp, to: string): { readonly journal: Journal; readonly told: readonly string[] } => {
      const before = open();
      for (const id of ["a", "b"]) {
        before.begin(id, true);
        before.finish(id, { status: "succeeded" });
      }
      before.begin("c", true);
      writeFileSync(path(), readFileSync(path(), "utf8").replace(from, to));
      const told: string[] = [];
      return { journal: openFileJournal(path(), wallMs, { warn: (text) => told.push(text) }), told };
    };
    test("a damaged line is reported by its number, and every other line is used", () => {
      const { journal, told } = damage('"succeeded"', "\0\0\0\0");
      expect(told).toEqual([expect.stringMatching(/line 2 of the journal .* is damaged and was skipped/)]);
      expect(journal.unsettled().map(({ commandId, status }) => [commandId, status])).toEqual([
        ["a", "received"],
        ["b", "succeeded"],
        ["c", "received"],
      ]);
    });
    test.each([
      ["its id is readable", '{"kind":"begin","id":"c","requiresAck":true}\n', '{"kind":"be\0in","id":"c","requi\n{"kind":"ok","id":"b","atMs":1}\n', "c"],
      ["its result is intact", /^.*\n/, "\0\0\0\0\n", "a"],
      ["its last line is intact", /^.*\n.*\n/, '\0\0\n\0\0\n{"kind":"ok","id":"a","atMs":1}\n', "a"],
    ] as const)("a damaged line does not make a command run twice if %s", (_, from, to, id) => expect(damage(from, to).journal.begin(id, true)).toBe(false));
    test("a wholly damaged line loses only itself", () => {
      const { journal, told } = damage(/^.*\n.*\n/, "rubbish\n\n");
      expect(told).toHaveLength(2);
      expect(journal.unsettled().map(({ commandId }) => commandId)).toEqual(["b", "c"]);
      expect(open().begin("c", true)).toBe(false);
    });
  });
  test.each([
    ["before the id was written", "before-begin", { effects: 0, known: false, status: undefined }],
    ["after the id was written", "after-begin", { effects: 0, known: true, status: "received" }],
    ["after the work was done", "after-work", { effects: 1, known: true, status: "received" }],
    ["after the result was written", "after-finish", { effects: 1, known: true, status: "succeeded" }],
  ])("an agent that is killed %s runs the command at most once", (_, point, expected) => {
    const effects = join(folder, "effects");
    writeFileSync(effects, "");
    const run = (at: string) =>
      spawnSync(process.execPath, ["--import", "tsx", join(import.meta.dirname, "../../agent-sim/crash.ts"), path(), effects, at], { timeout: 15_000 });
    expect(run(point).signal).toBe("SIGKILL");
    expect(statSync(effects).size).toBe(expected.effects);
    expect(open().find("cmd")?.status).toBe(expected.status);
    expect(run("never").status).toBe(0);
    expect(statSync(effects).size).toBe(expected.known ? expected.effects : 1);
  });
});

test("the file is compacted before it grows too large, with the same content", () => {
  const journal = open();
  const one = (id: string): void => {
    journal.begin(id, false);
    journal.finish(id, { status: "succeeded" });
  };
  one("first");
  appendFileSync(path(), '{"kind":"ok","id":"first","atMs":1}\n'.repeat(4_000));
  const before = statSync(path()).size;
  expect(open().find("first")).toMatchObject({ status: "succeeded" });
  expect(statSync(path()).size).toBeLessThan(before / 100);
  expect(open().begin("first", false)).toBe(false);
});

test("a command that may run again is in the file until it has a result", () => {
  const again = { command: { commandId: "a", type: "app.deploy", payload: { app: 1 }, requiresAck: true }, delivery: { lane: "l" } };
  open().begin("a", true, again);
  expect(open().find("a")).toMatchObject({ again, result: null });
  open().finish("a", { status: "succeeded" });
  expect(open().find("a")).toMatchObject({ again: null, result: { status: "succeeded" } });
});
