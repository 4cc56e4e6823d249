// Suite core, second part: each command runs once, its result arrives, and the journal outlives what happens to the agent.
import { execFileSync } from "node:child_process";
import { appendFileSync, closeSync, openSync, readFileSync, unlinkSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { KitSession } from "../gateway/kit-session.ts";
import type { Order } from "../gateway/order-book.ts";
import type { KitCase } from "../kit-case.ts";
import { notObservable, type Stage } from "../stage.ts";

const RUN_MS = 10_000;
const KILLS = 20;
const COMMANDS_A_KILL = 3;

/** What every command may expect, whatever happened to the agent. */
const judgeOrder = (stage: Stage, order: Order, key: string): void => {
  const { begun, ended } = stage.ran(key);
  const { final } = order;
  stage.expect(begun <= 1, "R7.1", `the effect ${key} once`, `begun ${begun} times`);
  stage.expect(final !== null, "R7.3", `a final ack of ${order.commandId}`, order.acks.map(({ ack }) => ack.status));
  if (final?.status === "succeeded") stage.expect(begun === 1 && ended === 1, "R7.1", `the effect ${key} before its success`, `begun ${begun}, ended ${ended}`);
  const words = new Set(order.acks.filter(({ ack }) => ["succeeded", "failed", "rejected", "canceled"].includes(ack.status)).map(({ ack }) => `${ack.status} ${ack.code ?? ""}`));
  stage.expect(words.size <= 1, "R8.5", `one result of ${order.commandId} for good`, [...words]);
};

/** Files of the state that consist of lines of JSON and name this command. */
const journalsOf = (stage: Stage, { commandId }: Order): readonly string[] => {
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

/** Delivers a command again and waits for its answer. */
const asksAgain = async (stage: Stage, order: Order) => {
  const before = order.acks.length;
  stage.gateway.sessions.at(-1)?.deliver(order);
  await stage.due("R7.1", `an ack of ${order.commandId}, which came again`, () => order.acks.length > before);
  return order.acks.at(-1)?.ack;
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
const untilUnwritten = async (stage: Stage, session: KitSession): Promise<{ readonly key: string; readonly order: Order }> => {
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

export const coreRun: readonly KitCase[] = [
  {
    id: "RUN-1",
    title: "runs a command once, however often it comes",
    rules: ["R7.1", "R7.3"],
    run: async (stage) => {
      const session = await stage.open();
      const order = stage.effect("once", 1_500);
      await stage.due("R7.1", "the effect begins", () => stage.ran("once").begun > 0);
      for (let n = 0; n < 5; n += 1) session.deliver(order);
      const result = await stage.final(order, "R7.3", RUN_MS);
      stage.expect(result.status === "succeeded", "R7.1", "succeeded", result);
      for (let n = 0; n < 2; n += 1) {
        const again = await asksAgain(stage, order);
        stage.expect(again?.status === "succeeded", "R7.1", "the stored result again", again);
      }
      await stage.pass(500);
      judgeOrder(stage, order, "once");
    },
  },
  {
    id: "RUN-2",
    title: "reports a result in the next session, and answers from the journal there",
    rules: ["R7.3", "R8.6"],
    run: async (stage) => {
      const session = await stage.open();
      const order = stage.effect("across", 1_200);
      await stage.due("R7.1", "the effect begins", () => stage.ran("across").begun > 0);
      session.cut();
      const next = await stage.session(1);
      const result = await stage.final(order, "R8.6", RUN_MS);
      stage.expect(result.status === "succeeded", "R8.6", "succeeded", result);
      stage.gateway.conduct.answerAck = () => null;
      const second = stage.effect("unconfirmed");
      await stage.final(second);
      stage.gateway.conduct.answerAck = (_ack, stored) => ({ data: stored });
      next.cut();
      const third = await stage.session(2);
      await stage.due("R7.3", "the unconfirmed result right after ready", () => second.acks.some(({ session: of }) => of === third.number));
      const again = await asksAgain(stage, order);
      stage.expect(again?.status === "succeeded", "R7.1", "the stored result of a command that came again in another session", again);
      judgeOrder(stage, order, "across");
      judgeOrder(stage, second, "unconfirmed");
    },
  },
  {
    id: "RUN-3",
    title: "rejects what it does not know or must not start, and reports what fails",
    rules: ["R7.1", "R7.5"],
    run: async (stage) => {
      await stage.open();
      const expired = await stage.final(stage.effect("expired", 0, { expiresInMs: -2_000 }), "R7.1");
      stage.expect(expired.status === "rejected" && expired.code === "EXPIRED", "R7.1", "rejected with EXPIRED", expired);
      stage.expect(stage.ran("expired").begun === 0, "R7.1", "no effect of an expired command", stage.ran("expired"));
      for (const type of ["kit.nobody.knows.this", "svc.from-the-future", "__proto__", "constructor"]) {
        const unknown = await stage.final(stage.queue(type, {}), "R7.5");
        stage.expect(unknown.status === "rejected" && unknown.code === "UNSUPPORTED_TYPE", "R7.5", `${type} rejected with UNSUPPORTED_TYPE`, unknown);
      }
      const failing = await stage.final(stage.queue("test.effect", { key: "fails", ms: 0, fail: true }), "R7.5");
      stage.expect(failing.status === "failed", "R7.5", "failed, for a handler that fails", failing);
      const misfit = await stage.final(stage.queue("test.effect", { key: 17 }), "R7.5");
      stage.expect(misfit.status === "rejected" || misfit.status === "failed", "R7.5", "rejected with INVALID_PAYLOAD, for a payload that does not fit", misfit);
      stage.hint(misfit.status === "rejected" && misfit.code === "INVALID_PAYLOAD", "R7.5", "rejected with INVALID_PAYLOAD", misfit);
      const good = await stage.final(stage.effect("good"));
      stage.expect(good.status === "succeeded", "R7.5", "an agent that goes on", good);
    },
  },
  {
    id: "JOURNAL-1",
    title: `loses nothing and runs nothing twice under ${KILLS} kills with ${KILLS * COMMANDS_A_KILL} commands`,
    rules: ["R7.1", "R7.2", "R7.3", "R8.4", "R8.5"],
    seconds: 40,
    run: async (stage) => {
      const orders: (readonly [string, Order])[] = [];
      await stage.open();
      for (let kill = 0; kill < KILLS; kill += 1) {
        for (let n = 0; n < COMMANDS_A_KILL; n += 1) {
          const key = `k${kill}-${n}`;
          orders.push([key, stage.effect(key, (kill * 7 + n * 11) % 30)]);
        }
        // At another point each time: before the first frame, within an effect, between result and confirmation.
        await stage.pass((kill * 37) % 190);
        await stage.kill();
        await stage.open();
      }
      await stage.due("R7.3", "a final ack of each command", () => orders.every(([, order]) => order.final !== null), 30_000);
      for (const [key, order] of orders) judgeOrder(stage, order, key);
      const interrupted = orders.filter(([, { final }]) => final?.code === "AGENT_RESTARTED").length;
      const succeeded = orders.filter(([, { final }]) => final?.status === "succeeded").length;
      stage.expect(interrupted + succeeded === orders.length, "R8.4", "each command succeeded, or failed with AGENT_RESTARTED", orders.map(([, { final }]) => final?.code ?? final?.status));
    },
  },
  {
    id: "JOURNAL-2",
    title: "cuts off a torn last line",
    rules: ["R8.2"],
    seconds: 8,
    run: async (stage) => {
      await stage.open();
      const order = stage.effect("before");
      await stage.final(order);
      await stage.pass(300);
      await stage.kill();
      for (const path of journalsOf(stage, order)) appendFileSync(path, '{"id":"cmd_torn_by_a_power_failure","co');
      await stage.open();
      const again = await asksAgain(stage, order);
      stage.expect(again?.status === "succeeded", "R8.2", "the result of the line before", again);
      const next = stage.effect("after");
      await stage.final(next);
      await stage.kill();
      await stage.open();
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
      await stage.open();
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
        const damaged = readFileSync(path, "utf8").split("\n").map((line) => (line.includes(second.commandId) ? `${line.slice(0, -2)}\u0000#` : line));
        writeFileSync(path, damaged.join("\n"));
      }
      await stage.open();
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
  {
    id: "ACK-1",
    title: "repeats a result until it is confirmed, and no longer",
    rules: ["R7.3", "R7.4", "R7.6"],
    seconds: 9,
    run: async (stage) => {
      const session = await stage.open();
      const { conduct } = stage.gateway;
      conduct.answerAck = () => null;
      const order = stage.effect("resent");
      await stage.due("R7.3", "the result four times, since nothing confirms it", () => order.acks.filter(({ ack }) => ack.status === "succeeded").length >= 4, RUN_MS);
      const times = order.acks.filter(({ ack }) => ack.status === "succeeded").map(({ atMs }) => atMs);
      const gaps = times.slice(1).map((atMs, n) => atMs - (times[n] ?? 0));
      stage.expect(gaps.every((ms) => ms >= 95), "R0.4", "at most ten repetitions a second", gaps);
      // An answer to another frame confirms nothing.
      conduct.answerAck = (_ack, stored) => ({ data: stored, ref: "no-such-frame" });
      const heard = order.acks.length;
      await stage.due("R7.6", "the result again, since the ack_ok answered another frame", () => order.acks.length >= heard + 2, RUN_MS);
      conduct.answerAck = (_ack, stored) => ({ data: { ...stored, result: "a-word-of-tomorrow", status: "expired" } });
      await stage.due("R7.3", "the result once more", () => order.acks.length >= heard + 3, RUN_MS);
      await stage.pass(600);
      const settled = order.acks.length;
      await stage.pass(2_500);
      stage.expect(order.acks.length === settled, "R7.6", "no further ack after an ack_ok, whatever its result says", order.acks.length - settled);
      session.cut();
      await stage.session(1);
      await stage.pass(1_200);
      stage.expect(order.acks.length === settled, "R7.6", "no further ack in the next session", order.acks.length - settled);
      judgeOrder(stage, order, "resent");
      // Given up by the gateway: the result is sent all the same.
      const late = stage.effect("late", 300, { more: { executionTimeoutSec: 60 } });
      conduct.answerAck = (_ack, stored) => ({ data: { ...stored, status: "timed_out", result: "applied" } });
      await stage.final(late, "R7.4", RUN_MS);
    },
  },
];
