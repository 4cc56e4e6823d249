// Foreign programs end within their time, whatever they do, and what they say is held in bounded memory.
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemTime as time } from "../../../agent-sim/agent/index.ts";
import { openBytePipe } from "../../../agent-sim/children/byte-pipe.ts";
import { followProgram, linesOf, type RunOptions, runProgram, startProgram } from "../../../agent-sim/children/index.ts";
import { createLineReader } from "../../../agent-sim/children/lines.ts";
import { isAlive, nameProcess } from "../../../agent-sim/host/processes/proc.ts";
import { CUT_MARK } from "../../../protocol/index.ts";
import { createTail } from "../../../protocol/kit/programs/tail.ts";
import { eventually } from "../../kit/checks/eventually.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "children-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const at = (name: string): string => join(folder, name);
const env = { PATH: process.env["PATH"] };
const script = (code: string) => ({ command: process.execPath, words: ["-e", code], env, time });
const run = (code: string, more: Partial<RunOptions> = {}) => runProgram({ ...script(code), withinMs: 20_000, ...more });
/** Time that goes on as usual, but for the longest waits: each lasts until the test ends it. */
const LONG_MS = 1_000_000;
const createHeldTime = () => {
  const waits = new Map<number, () => void>();
  const held: typeof time = {
    ...time,
    after: (delayMs, isOver) => {
      if (delayMs < LONG_MS) return time.after(delayMs, isOver);
      waits.set(delayMs, isOver);
      return () => waits.delete(delayMs);
    },
  };
  return { time: held, expire: (delayMs: number): void => waits.get(delayMs)?.() };
};
const lives = (pid: number): boolean => {
  const name = nameProcess(pid);
  return name !== null && isAlive(name);
};
const numberIn = (name: string): Promise<number> =>
  eventually(() => {
    const number = Number(readFileSync(at(name), "utf8"));
    expect(number).toBeGreaterThan(0);
    return number;
  });
/** Says its id in a file, ignores every polite end and lives on. */
const deaf = (name: string): string =>
  `for (const s of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(s, () => 0); require("node:fs").writeFileSync(${JSON.stringify(at(name))}, String(process.pid)); setInterval(() => 0, 1000);`;

describe("a program that runs to its end", () => {
  test("answers with its code, its output and its errors, apart", async () => {
    expect(await run('process.stdout.write("out"); process.stderr.write("why"); process.exitCode = 3')).toEqual({
      outcome: "ended",
      code: 3,
      signal: null,
      error: null,
      output: "out",
      errors: "why",
      isCut: false,
    });
  });
  test("that is not there is not started", async () => {
    expect(await runProgram({ command: at("none"), words: [], env, time, withinMs: 1_000 })).toMatchObject({
      outcome: "not started",
      error: { code: "ENOENT" },
    });
  });
  test("that is no program is not started", async () => {
    writeFileSync(at("text"), "no program");
    chmodSync(at("text"), 0o600);
    expect(await runProgram({ command: at("text"), words: [], env, time, withinMs: 1_000 })).toMatchObject({
      outcome: "not started",
      error: { code: "EACCES" },
    });
  });
  test("that ignores SIGTERM is killed after its time, with its children", async () => {
    const child = `const c = require("node:child_process"); c.spawn(process.execPath, ["-e", ${JSON.stringify(deaf("child"))}], { stdio: "inherit" }); ${deaf("parent")}`;
    const held = createHeldTime();
    const running = run(child, { time: held.time, withinMs: LONG_MS, patienceMs: 100 });
    const pids = await Promise.all([numberIn("parent"), numberIn("child")]);
    held.expire(LONG_MS);
    expect(await running).toMatchObject({ outcome: "late", signal: "SIGKILL" });
    await eventually(() => expect(pids.map(lives)).toEqual([false, false]));
  });
  test("that ignores SIGTERM ends with the signal of the agent's shutdown", async () => {
    const shutdown = new AbortController();
    const running = run(deaf("pid"), { signals: [new AbortController().signal, shutdown.signal], patienceMs: 100 });
    await numberIn("pid");
    shutdown.abort();
    expect(await running).toMatchObject({ outcome: "stopped", signal: "SIGKILL" });
  });
  test("of a shutdown that has begun does not run", async () => {
    expect(await run(deaf("pid"), { signals: [AbortSignal.abort()], patienceMs: 100 })).toMatchObject({ outcome: "stopped" });
  });
  test("that drips is ended by its overall time, and one that falls silent by its idle time", async () => {
    const says = (code: string) => `${code}; require("node:fs").writeFileSync(${JSON.stringify(at("pid"))}, String(process.pid))`;
    for (const [code, expired, outcome] of [
      ['setInterval(() => process.stdout.write("."), 20)', LONG_MS, "late"],
      ['process.stdout.write("once"); setInterval(() => 0, 1000)', 2 * LONG_MS, "silent"],
    ] as const) {
      const held = createHeldTime();
      const running = run(says(code), { time: held.time, withinMs: LONG_MS, idleMs: 2 * LONG_MS });
      await numberIn("pid");
      held.expire(expired);
      expect(await running).toMatchObject({ outcome });
      rmSync(at("pid"));
    }
  });
  test("whose descendant holds its output open is not waited for", async () => {
    const left = `require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(deaf("left"))}], { stdio: "inherit", detached: true }).unref(); process.stdout.write("done")`;
    expect(await run(left)).toMatchObject({ outcome: "ended", code: 0, output: "done" });
    process.kill(await numberIn("left"), "SIGKILL");
  });
  test("keeps the end of an output that is too long, and says so", async () => {
    const flood = 'for (let n = 0; n < 200; n += 1) require("node:fs").writeSync(1, "x".repeat(10000)); require("node:fs").writeSync(1, "the end")';
    const { output, isCut, code } = await run(flood, { maxBytes: 1_000 });
    expect([code, isCut, output.length, output.slice(-8)]).toEqual([0, true, 1_000, "xthe end"]);
  });
  test("may say what is no UTF-8", async () => {
    const { output, code } = await run('require("node:fs").writeSync(1, Buffer.from([0x61, 0xff, 0xfe, 0xc3]))');
    expect([code, output]).toEqual([0, "a\uFFFD\uFFFD\uFFFD"]);
  });
});

describe("the end of an output", () => {
  test.each([1, 7, 4_096, 70_000, 3_000_000])("is held in bounded memory, in pieces of %d bytes", (size) => {
    const tail = createTail(65_536);
    const piece = Buffer.alloc(size, "abcdefg");
    let most = 0;
    for (let sent = 0; sent < 6_000_000; sent += size) {
      tail.push(piece);
      most = Math.max(most, tail.heldBytes);
    }
    expect(most).toBeLessThanOrEqual(131_072);
    expect([tail.isCut, tail.text().length]).toEqual([true, 65_536]);
    expect(tail.text().endsWith(piece.toString().slice(-1_000))).toBe(true);
  });
  test("is whole as long as it fits", () => {
    const tail = createTail(10);
    tail.push(Buffer.from("12345"));
    tail.push(Buffer.from("67890"));
    expect([tail.text(), tail.isCut]).toEqual(["1234567890", false]);
    tail.push(Buffer.from("x"));
    expect([tail.isCut, tail.text()]).toEqual([true, "234567890x"]);
  });
});

describe("lines", () => {
  const all = async (bytes: Buffer, pieces: number, options?: Parameters<typeof linesOf>[1]): Promise<string[]> => {
    const source = (async function* () {
      for (let from = 0; from < bytes.length; from += pieces) yield bytes.subarray(from, from + pieces);
    })();
    const lines: string[] = [];
    for await (const line of linesOf(source, options)) lines.push(line);
    return lines;
  };
  test.each([1, 2, 3, 1_000])("are the same in pieces of %d bytes, whatever their breaks and characters", async (pieces) => {
    expect(await all(Buffer.from("one\r\n\nzwölf ✓\nlast"), pieces)).toEqual(["one", "", "zwölf ✓", "last"]);
    expect(await all(Buffer.from("12345\n123456\n1\n"), pieces, { maxBytes: 5 })).toEqual(["12345", `12345${CUT_MARK}`, "1"]);
  });
  test("that are no UTF-8 are replaced", async () => {
    expect(await all(Buffer.from([0x61, 0xff, 0x0a, 0xc3, 0x0a, 0x62]), 2)).toEqual(["a\uFFFD", "\uFFFD", "b"]);
  });
  test.each([1, 5, 1_000])("show no part of a secret that a cut divides, in pieces of %d bytes", async (pieces) => {
    const secret = "correct-horse";
    for (let before = 0; before < 40; before += 1) {
      const [line = ""] = await all(Buffer.from(`${"x".repeat(before)}${secret} ${secret}${"y".repeat(50)}\n`), pieces, { maxBytes: 30, secrets: [secret] });
      // Of the stars, too, a part may be cut.
      expect(line.replace(CUT_MARK, "")).toMatch(/^[x *]*y*$/);
    }
  });
  test("of 200 MB without a break are one line, and no more than its bound is held", () => {
    const reader = createLineReader({ maxBytes: 16_384 });
    const piece = Buffer.alloc(65_536, "x");
    const lines: string[] = [];
    let most = 0;
    for (let sent = 0; sent < 200_000_000; sent += piece.length) {
      lines.push(...reader.push(piece));
      most = Math.max(most, reader.heldBytes);
    }
    lines.push(...reader.push(Buffer.from("\nnext\n")), ...reader.end());
    expect(most).toBeLessThanOrEqual(16_384);
    expect(lines).toEqual([`${"x".repeat(16_384)}${CUT_MARK}`, "next"]);
  });
});

describe("a program that is followed", () => {
  test("is read whole and in order, however much it says", async () => {
    const code = 'let text = ""; for (let n = 0; n < 100000; n += 1) text += "line " + n + "\\n"; process.stdout.write(text)';
    let expected = 0;
    for await (const line of followProgram(script(code))) {
      if (line !== `line ${expected}`) expect(line).toBe(`line ${expected}`);
      expected += 1;
    }
    expect(expected).toBe(100_000);
  });
  test("is read into one buffer, so that what it says leaves no memory behind", async () => {
    const pipe = await openBytePipe();
    const buffers = new Set<ArrayBufferLike>();
    const program = startProgram({ ...script('process.stdout.write("x".repeat(20000000))'), stdio: ["ignore", pipe.writer, "ignore"] });
    pipe.writer.destroy();
    let bytes = 0;
    for await (const piece of pipe.bytes) {
      buffers.add(piece.buffer);
      bytes += piece.length;
    }
    expect([bytes, buffers.size, await program.ended]).toEqual([20_000_000, 1, expect.objectContaining({ code: 0 })]);
  });
  /** Says in a file how much it has written. */
  const flood = (): string =>
    `const fs = require("node:fs"); fs.writeFileSync(${JSON.stringify(at("pid"))}, String(process.pid)); const piece = "x".repeat(65535) + "\\n"; const next = () => process.stdout.write(piece, () => { fs.appendFileSync(${JSON.stringify(at("sent"))}, "."); next(); }); next();`;

  test("is stopped by its own full pipe while nobody reads on, and ends with its reader", async () => {
    const lines = followProgram({ ...script(flood()), patienceMs: 100 });
    expect((await lines.next()).value).toContain(CUT_MARK);
    // It stands still once two looks in a row see the same.
    let before = -1;
    await eventually(() => {
      const now = statSync(at("sent")).size;
      const stood = now === before;
      before = now;
      expect(stood).toBe(true);
    });
    expect(before).toBeLessThan(32);
    await lines.return();
    expect(lives(await numberIn("pid"))).toBe(false);
  });
  test("and ignores SIGTERM ends with the signal of the agent's shutdown, and its lines with it", async () => {
    const shutdown = new AbortController();
    const lines = followProgram({ ...script(`process.stdout.write("first\\n"); ${deaf("pid")}`), patienceMs: 100, signals: [shutdown.signal] });
    expect((await lines.next()).value).toBe("first");
    const pid = await numberIn("pid");
    shutdown.abort();
    expect(await lines.next()).toEqual({ done: true, value: undefined });
    expect(lives(pid)).toBe(false);
  });
  test("loses no line if it ends before they are read", async () => {
    const program = startProgram(script('for (let n = 0; n < 1000; n += 1) console.log("line " + n)'));
    const coming = linesOf(program.child.stdout);
    const lines = [(await coming.next()).value];
    expect(await program.ended).toMatchObject({ code: 0 });
    for await (const line of coming) lines.push(line);
    expect([lines.length, lines.at(-1)]).toEqual([1_000, "line 999"]);
  });
  test("ends with its agent, however that ends", async () => {
    const agent = `import { startProgram } from ${JSON.stringify(join(import.meta.dirname, "../../../agent-sim/children/index.ts"))};
      import { systemTime as time } from ${JSON.stringify(join(import.meta.dirname, "../../../agent-sim/agent/index.ts"))};
      import { existsSync } from "node:fs";
      startProgram({ command: process.execPath, words: ["-e", ${JSON.stringify(deaf("left"))}], env: process.env, time });
      setInterval(() => { if (existsSync(${JSON.stringify(at("left"))})) process.exit(7); }, 20);`;
    const { code } = await runProgram({
      command: process.execPath,
      words: ["--import", "tsx", "--input-type=module", "-e", agent],
      env,
      time,
      withinMs: 20_000,
    });
    expect(code).toBe(7);
    const pid = await numberIn("left");
    await eventually(() => expect(lives(pid)).toBe(false));
  });
});
