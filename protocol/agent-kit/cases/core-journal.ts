// Suite core, third part: the journal outlives kills, power failures, full disks and a second process.
import { execFileSync } from "node:child_process";
import { appendFileSync, closeSync, openSync, readFileSync, unlinkSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { KitSession } from "../gateway/kit-session.ts";
import type { KitOrder } from "../gateway/order-book.ts";
import type { KitCase } from "../kit-case.ts";
import { notObservable, type Stage } from "../stage.ts";
import { asksAgain, judgeOrder } from "./core-run.ts";

const RUN_MS = 10_000;
const KILLS = 20;
const COMMANDS_A_KILL = 3;
/** An effect that is to be broken off takes at least so long. */
const WITHIN_MS = 60;
const BEGUN_WITHIN_MS = 1_000;

/** Files of the state that consist of lines of JSON and name this command. */
const journalsOf = (stage: Stage, { commandId }: KitOrder): readonly string[] => {
  const isJson = (line: string): boolean => {
    try {
      return typeof JSON.parse(line) === "object";
    } catch {
      return false;
    }
  };
  const found = stage.files().filter((path) => {
    const text = readFileSync(path, "utf8");
    return text.includes(commandId) && text.endsWith("\n") && text.trimEnd().split("\n").every(isJson);
  });
  return found.length > 0 ? found : notObservable("no file of the state has a line of JSON for each command");
};

const mountSmall = (folder: string): (() => void) => {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", folder], { stdio: "ignore" });
  } catch {
    return notObservable("a disk cannot be filled without the right to mount a tmpfs");
  }
  return () => void execFileSync("umount", ["-l", folder], { stdio: "ignore" });
};
/** Leaves no byte free. */
const fill = (folder: string): string => {
  const path = join(folder, "ballast");
  const file = openSync(path, "w");
  try {
    for (const size of [65_536, 4_096, 512, 1]) {
      const block = Buffer.alloc(size);
      try {
        while (writeSync(file, block) === size);
      } catch {
        // Full for blocks of this size.
      }
    }
  } finally {
    closeSync(file);
  }
  return path;
};

const LAST_PAGE_COMMANDS = 80;
/** The journal may have room for some commands more. Returns the first one that it does not take. */
const untilUnwritten = async (stage: Stage, session: KitSession): Promise<{ readonly key: string; readonly order: KitOrder }> => {
  for (let n = 0; n < LAST_PAGE_COMMANDS; n += 1) {
    const key = `full-${n}`;
    const order = stage.effect(key);
    if (order.sentIn === null) session.deliver(order);
    // One that is acked without an end has its id in the journal, and waits for room for its result.
    await stage.patience.until(() => order.acks.length > 0, 800);
    if (order.acks.length === 0) return { key, order };
    await stage.patience.until(() => order.final, 200);
  }
  return notObservable("the journal still had room for everything");
};

export const coreJournal: readonly KitCase[] = [
  {
    id: "JOURNAL-1",
    title: `loses nothing and runs nothing twice under ${KILLS} kills with ${KILLS * COMMANDS_A_KILL} commands`,
    rules: ["R7.1", "R7.2", "R7.3", "R8.4", "R8.5"],
    seconds: 40,
    run: async (stage) => {
      const orders: (readonly [string, KitOrder])[] = [];
      await stage.open();
      for (let kill = 0; kill < KILLS; kill += 1) {
        const isWithin = kill % 2 === 1;
        const round: KitOrder[] = [];
        for (let n = 0; n < COMMANDS_A_KILL; n += 1) {
          const key = `k${kill}-${n}`;
          const order = stage.effect(key, (isWithin ? WITHIN_MS : 0) + ((kill * 7 + n * 11) % 30));
          orders.push([key, order]);
          round.push(order);
        }
        // At another point each time: before the first frame, within an effect, between result and confirmation. Every second time surely within one, however
        // slow the machine is.
        if (isWithin) await stage.patience.until(() => round.some(({ acks, final }) => acks.length > 0 && final === null), BEGUN_WITHIN_MS);
        await stage.pass(isWithin ? (kill * 7) % WITHIN_MS : (kill * 37) % 190);
        await stage.kill();
        await stage.open();
      }
      await stage.due("R7.3", "a final ack of each command", () => orders.every(([, order]) => order.final !== null), 30_000);
      for (const [key, order] of orders) judgeOrder(stage, order, key);
      const interrupted = orders.filter(([, { final }]) => final?.code === "AGENT_RESTARTED").length;
      const succeeded = orders.filter(([, { final }]) => final?.status === "succeeded").length;
      stage.expect(
        interrupted + succeeded === orders.length,
        "R8.4",
        "each command succeeded, or failed with AGENT_RESTARTED",
        orders.map(([, { final }]) => final?.code ?? final?.status),
      );
    },
  },
  {
    id: "JOURNAL-2",
    title: "cuts off a torn last line",
    rules: ["R8.2"],
    seconds: 8,
    run: async (stage) => {
      await stage.open({ rule: "R8.2" });
      const order = stage.effect("before");
      await stage.final(order);
      await stage.pass(300);
      await stage.kill();
      for (const path of journalsOf(stage, order)) appendFileSync(path, '{"id":"cmd_torn_by_a_power_failure","co');
      await stage.open({ rule: "R8.2" });
      const again = await asksAgain(stage, order);
      stage.expect(again?.status === "succeeded", "R8.2", "the result of the line before", again);
      const next = stage.effect("after");
      await stage.final(next);
      await stage.kill();
      await stage.open({ rule: "R8.2" });
      const known = await asksAgain(stage, next);
      stage.expect(known?.status === "succeeded", "R8.2", "what was written after the torn line", known);
      judgeOrder(stage, order, "before");
      judgeOrder(stage, next, "after");
    },
  },
  {
    id: "JOURNAL-3",
    title: "skips a damaged line, and keeps its command from running again",
    rules: ["R8.2"],
    seconds: 8,
    run: async (stage) => {
      await stage.open({ rule: "R8.2" });
      const orders = [];
      for (const key of ["one", "two", "three"]) {
        const order = stage.effect(key);
        await stage.final(order);
        orders.push(order);
      }
      await stage.pass(300);
      await stage.kill();
      const [, second, third] = orders;
      if (second === undefined || third === undefined) throw new Error("there are three commands");
      for (const path of journalsOf(stage, third)) {
        const damaged = readFileSync(path, "utf8")
          .split("\n")
          .map((line) => (line.includes(second.commandId) ? `${line.slice(0, -2)}\u0000#` : line));
        writeFileSync(path, damaged.join("\n"));
      }
      await stage.open({ rule: "R8.2" });
      const whole = await asksAgain(stage, third);
      stage.expect(whole?.status === "succeeded", "R8.2", "the lines behind the damaged one", whole);
      await asksAgain(stage, second);
      await stage.pass(500);
      stage.expect(stage.ran("two").begun === 1, "R8.2", "a command whose id can be read counts as begun", stage.ran("two"));
    },
  },
  {
    id: "JOURNAL-4",
    title: "neither acks nor runs what a full disk does not take",
    rules: ["R7.2"],
    seconds: 12,
    run: async (stage) => {
      const unmount = mountSmall(stage.stateFolder);
      try {
        const session = await stage.open();
        await stage.final(stage.effect("room"));
        const ballast = fill(stage.stateFolder);
        const unwritten = await untilUnwritten(stage, session);
        stage.expect(unwritten.order.acks.length === 0, "R7.2", `no ack of ${unwritten.order.commandId}, which is not in the journal`, unwritten.order.acks);
        stage.expect(stage.ran(unwritten.key).begun === 0, "R7.2", "no effect of what is not in the journal", unwritten.order.commandId);
        unlinkSync(ballast);
        stage.gateway.sessions.at(-1)?.cut();
        await stage.session(stage.gateway.sessions.length, { ms: RUN_MS });
        await stage.due("R7.2", `a final ack of ${unwritten.order.commandId} once there is room`, () => unwritten.order.final, 15_000);
        judgeOrder(stage, unwritten.order, unwritten.key);
      } finally {
        await stage.kill();
        unmount();
      }
    },
  },
  {
    id: "JOURNAL-5",
    title: "lets a second process with its state end",
    rules: ["R8.3"],
    seconds: 8,
    run: async (stage) => {
      await stage.open();
      const { agent: first } = stage;
      const second = stage.start();
      try {
        await stage.due("R8.3", "the end of the second process", () => second.ended, 15_000);
        stage.expect(second.ended?.code !== 0, "R8.3", "an exit code other than 0", second.ended);
        stage.expect(second.output.trim().length > 0, "R8.3", "a clear message", "nothing");
        stage.expect(first.ended === null && stage.gateway.sessions[0]?.closed === null, "R8.3", "the first process works on", first.ended);
        const good = await stage.final(stage.effect("still"));
        stage.expect(good.status === "succeeded", "R8.3", "the first process works on", good);
      } finally {
        await first.kill();
      }
    },
  },
];
