// Suite core, second part: each command runs once, and its result arrives.
import { endsCommand, type KitOrder } from "../gateway/order-book.ts";
import type { KitCase } from "../kit-case.ts";
import { gapsOf, type Stage } from "../stage.ts";

const RUN_MS = 10_000;
/** Their acks are more than an agent may send at one moment. */
const MANY = 120;

/** What every command may expect, whatever happened to the agent. */
export const judgeOrder = (stage: Stage, order: KitOrder, key: string): void => {
  const { begun, ended } = stage.ran(key);
  const { final } = order;
  stage.expect(begun <= 1, "R7.1", `the effect ${key} once`, `begun ${begun} times`);
  stage.expect(
    final !== null,
    "R7.3",
    `a final ack of ${order.commandId}`,
    order.acks.map(({ ack }) => ack.status),
  );
  if (final?.status === "succeeded") stage.expect(begun === 1 && ended === 1, "R7.1", `the effect ${key} before its success`, `begun ${begun}, ended ${ended}`);
  const words = new Set(order.acks.filter(({ ack }) => endsCommand(ack.status)).map(({ ack }) => `${ack.status} ${ack.code ?? ""}`));
  stage.expect(words.size <= 1, "R8.5", `one result of ${order.commandId} for good`, [...words]);
};

/** Delivers a command again and waits for its answer. */
export const asksAgain = async (stage: Stage, order: KitOrder) => {
  const before = order.acks.length;
  stage.gateway.sessions.at(-1)?.deliver(order);
  await stage.due("R7.1", `an ack of ${order.commandId}, which came again`, () => order.acks.length > before);
  return order.acks.at(-1)?.ack;
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
      stage.expect(
        misfit.status === "rejected" || misfit.status === "failed",
        "R7.5",
        "rejected with INVALID_PAYLOAD, for a payload that does not fit",
        misfit,
      );
      stage.hint(misfit.status === "rejected" && misfit.code === "INVALID_PAYLOAD", "R7.5", "rejected with INVALID_PAYLOAD", misfit);
      const good = await stage.final(stage.effect("good"));
      stage.expect(good.status === "succeeded", "R7.5", "an agent that goes on", good);
    },
  },
  {
    id: "RUN-4",
    title: "keeps to the gateway's pace when many short commands come",
    rules: ["R5.10"],
    seconds: 12,
    run: async (stage) => {
      await stage.open();
      const orders = Array.from({ length: MANY }, (_, n) => [`short-${n}`, stage.effect(`short-${n}`)] as const);
      await stage.due("R7.3", `a final ack of each of ${MANY} commands`, () => orders.every(([, order]) => order.final !== null), 40_000);
      for (const [key, order] of orders) judgeOrder(stage, order, key);
    },
  },
  {
    id: "ACK-1",
    title: "repeats a result until it is confirmed, and no longer",
    rules: ["R0.4", "R7.3", "R7.4", "R7.6"],
    seconds: 9,
    run: async (stage) => {
      const session = await stage.open();
      const { conduct } = stage.gateway;
      conduct.answerAck = () => null;
      const order = stage.effect("resent");
      await stage.due(
        "R7.3",
        "the result four times, since nothing confirms it",
        () => order.acks.filter(({ ack }) => ack.status === "succeeded").length >= 4,
        RUN_MS,
      );
      const times = order.acks.filter(({ ack }) => ack.status === "succeeded").map(({ atMs }) => atMs);
      const gaps = gapsOf(times);
      stage.expect(
        gaps.every((ms) => ms >= 95),
        "R0.4",
        "at most ten repetitions a second",
        gaps,
      );
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
