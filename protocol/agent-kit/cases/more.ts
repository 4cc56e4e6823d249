// Suite more: several commands at once, lists of what is in flight, progress and cancel.
import type { KitSession } from "../gateway/kit-session.ts";
import type { KitOrder } from "../gateway/order-book.ts";
import { accept } from "../gateway/reply.ts";
import type { KitCase } from "../kit-case.ts";
import type { Stage } from "../stage.ts";
import { loseSockets } from "./poll.ts";

const RUN_MS = 10_000;

const announces = (stage: Stage, { hello }: KitSession, capability: string, rule: string): void =>
  stage.expect(hello?.capabilities.includes(capability) === true, rule, `the capability ${capability}`, hello?.capabilities);
const begins = (stage: Stage, key: string): Promise<boolean> => stage.due("R7.1", `the effect ${key} begins`, () => stage.ran(key).begun > 0, RUN_MS);
const latest = ({ acks }: KitOrder) => acks.at(-1)?.ack.status;
const cancel = (session: KitSession, { commandId }: Pick<KitOrder, "commandId">): string =>
  session.send("cancel", { commandId, reason: "no longer needed", deadline: "2099-01-01T00:00:00.000Z" });
const answersTo = (stage: Stage, order: KitOrder, from: number): Promise<string> =>
  stage.due("R14.1", `an answer to the cancel of ${order.commandId}`, () => (order.acks.length > from ? latest(order) : null), RUN_MS);

export const moreCases: readonly KitCase[] = [
  {
    id: "MORE-1",
    title: "lists every command whose result is not confirmed",
    rules: ["R12.1"],
    run: async (stage) => {
      const first = await stage.open();
      announces(stage, first, "inflight.v1", "R12.1");
      const running = stage.effect("running", 20_000);
      stage.gateway.conduct.answerAck = (ack, stored) => (ack.status === "succeeded" ? null : { data: stored });
      const ended = stage.effect("ended");
      await begins(stage, "running");
      await stage.final(ended);
      first.cut();
      const second = await stage.session(1);
      const listed = new Map(second.hello?.inFlight.map(({ commandId, status }) => [commandId, status]));
      stage.expect(listed.get(running.commandId) === "running", "R12.1", "the command that runs, as running", [...listed]);
      stage.expect(listed.get(ended.commandId) === "succeeded", "R12.1", "the command that has ended and is not confirmed, as succeeded", [...listed]);
      await stage.kill();
      const third = await stage.open();
      const after = new Map(third.hello?.inFlight.map(({ commandId, status }) => [commandId, status]));
      stage.expect(after.get(running.commandId) === "failed" && after.has(ended.commandId), "R12.1", "both commands after a kill, one of them failed", [
        ...after,
      ]);
    },
  },
  {
    id: "MORE-2",
    title: "does what reconcile says of each listed command",
    rules: ["R12.2"],
    seconds: 8,
    run: async (stage) => {
      const { conduct } = stage.gateway;
      const first = await stage.open();
      const [stopped, goesOn] = [stage.effect("stopped", 20_000), stage.effect("goes-on", 2_500)];
      conduct.answerAck = (ack, stored) => (ack.status === "succeeded" ? null : { data: stored });
      const forgotten = stage.effect("forgotten");
      for (const key of ["stopped", "goes-on"]) await begins(stage, key);
      await stage.final(forgotten);
      conduct.reconcile = [
        { commandId: stopped.commandId, action: "stop" },
        { commandId: goesOn.commandId, action: "a-word-of-tomorrow" },
        { commandId: forgotten.commandId, action: "forget" },
      ];
      first.cut();
      await stage.session(1);
      conduct.reconcile = null;
      const heard = forgotten.acks.length;
      const result = await stage.final(stopped, "R12.2", RUN_MS);
      stage.expect(result.status === "canceled", "R12.2", "canceled, after stop", result);
      const other = await stage.final(goesOn, "R12.2", RUN_MS);
      stage.expect(other.status === "succeeded", "R12.2", "succeeded, after an unknown word", other);
      await stage.pass(1_500);
      stage.expect(forgotten.acks.length <= heard + 1, "R12.2", "no further acks after forget", forgotten.acks.length - heard);
    },
  },
  {
    id: "MORE-3",
    title: "keeps the order of a lane when a poll brings several of its commands",
    rules: ["R11.2"],
    seconds: 8,
    run: async (stage) => {
      await loseSockets(stage);
      const { book, conduct } = stage.gateway;
      conduct.pushes = false;
      const orders = ["a", "b", "c"].map((key, n) => stage.effect(key, 300 - n * 150, { lane: "app:one" }));
      const data = orders.map((order) => {
        const { command, delivery } = book.frameOf(order) as { command: object; delivery: object };
        return { ...command, delivery };
      });
      let given = false;
      conduct.onCall = ({ method, path }) => {
        if (method !== "GET" || !path.endsWith("/commands") || given) return null;
        given = true;
        return accept(data, { headers: { "x-svc-poll-interval": "1" }, beside: { cancel: [] } });
      };
      for (const order of orders) await stage.final(order, "R11.2", RUN_MS);
      const lines = stage.effectLines().filter((line) => /^(begin|end) [abc]$/.test(line));
      stage.expect(lines.join() === "begin a,end a,begin b,end b,begin c,end c", "R11.2", "one after another in the order of seq", lines);
    },
  },
  {
    id: "MORE-4",
    title: "answers a cancel by what the command does",
    rules: ["R14.1", "R14.2"],
    seconds: 8,
    run: async (stage) => {
      const session = await stage.open();
      announces(stage, session, "cancel.v1", "R14.1");
      const ended = stage.effect("ended");
      await stage.final(ended);
      let from = ended.acks.length;
      cancel(session, ended);
      stage.expect((await answersTo(stage, ended, from)) === "succeeded", "R14.1", "the stored result of a command that has ended", latest(ended));
      const running = stage.effect("running", 20_000);
      await begins(stage, "running");
      cancel(session, running);
      const stopped = await stage.due("R14.1", "canceled or cancel_rejected", () => running.acks.find(({ ack }) => /^cancel/.test(ack.status)), RUN_MS);
      stage.hint(stopped.ack.status === "canceled", "R14.1", "an effect that can be stopped", stopped.ack.status);
      stage.gateway.conduct.pushes = false;
      const unknown = stage.effect("never");
      from = unknown.acks.length;
      cancel(session, unknown);
      stage.expect((await answersTo(stage, unknown, from)) === "canceled", "R14.2", "canceled, for a command that is not in the journal", latest(unknown));
      session.deliver(unknown);
      await stage.pass(1_000);
      stage.expect(stage.ran("never").begun === 0, "R14.2", "no effect when it arrives later", stage.ran("never"));
      stage.gateway.conduct.pushes = true;
    },
  },
  {
    id: "MORE-5",
    title: "tells the newest progress, and none after the end",
    rules: ["R13.1"],
    seconds: 7,
    run: async (stage) => {
      const session = await stage.open();
      announces(stage, session, "progress.v1", "R13.1");
      // Progress is never confirmed: it must neither pile up nor be repeated.
      stage.gateway.conduct.answerAck = (ack, stored) => (ack.progress === undefined ? { data: stored } : null);
      const order = stage.effect("slow", 3_500);
      await stage.final(order, "R7.3", RUN_MS);
      await stage.pass(1_500);
      const tells = order.acks.filter(({ ack }) => ack.progress !== undefined);
      stage.expect(tells.length > 0, "R13.1", "progress of an effect of 3.5 s", "none");
      const shares = tells.map(({ ack }) => ack.progress?.pct ?? 0);
      stage.expect(
        shares.every((pct, n) => n === 0 || pct >= (shares[n - 1] ?? 0)),
        "R13.1",
        "the newest progress, never an older one",
        shares,
      );
      const end = order.acks.findIndex(({ ack }) => ack.status === "succeeded");
      stage.expect(
        order.acks.slice(end).every(({ ack }) => ack.progress === undefined),
        "R13.1",
        "no progress after the result",
        order.acks.slice(end).map(({ ack }) => ack.status),
      );
      stage.expect(tells.length <= 40, "R13.1", "at most ten a second", tells.length);
    },
  },
  {
    id: "MORE-6",
    title: "lists what is in flight in heartbeats, and sends again what their answer names",
    rules: ["R12.3"],
    seconds: 9,
    run: async (stage) => {
      const { conduct } = stage.gateway;
      const session = await stage.open();
      const order = stage.effect("running", 6_000);
      await begins(stage, "running");
      await stage.due(
        "R12.3",
        "the command in a heartbeat's inFlight",
        () => session.frames.some(({ frame }) => frame.op === "heartbeat" && frame.data.inFlight?.includes(order.commandId)),
        8_000,
      );
      const ended = stage.effect("ended");
      await stage.final(ended);
      await stage.pass(300);
      const from = ended.acks.length;
      conduct.heartbeatMore = { resend: [ended.commandId, "cmd_nobody_knows"] };
      await stage.due("R12.3", "the latest ack of the named command again", () => ended.acks.slice(from).some(({ ack }) => ack.status === "succeeded"), 5_000);
      conduct.heartbeatMore = {};
    },
  },
  {
    id: "MORE-7",
    title: "takes as many commands at once as it says, with one ack of each at a time",
    rules: ["R11.1", "R11.3"],
    seconds: 8,
    run: async (stage) => {
      const session = await stage.open();
      const most = Math.min(8, Math.floor(session.hello?.maxInFlight ?? 1));
      stage.expect(most >= 2, "R11.1", "a maxInFlight above 1", session.hello?.maxInFlight);
      const unanswered = new Map<string, number>();
      let twice: string | null = null;
      stage.gateway.conduct.answerAck = ({ commandId, status }, stored) => {
        // Answered by the second heartbeat of this command only, so that a hasty agent shows itself.
        const lastMs = unanswered.get(commandId);
        const nowMs = stage.time.elapsedMs();
        if (lastMs !== undefined && nowMs - lastMs < 300 && twice === null)
          twice = `${commandId}: ${status} ${Math.round(nowMs - lastMs)} ms after an ack without an answer`;
        if (status === "succeeded") return { data: stored };
        unanswered.set(commandId, nowMs);
        return null;
      };
      const orders = Array.from({ length: most }, (_, n) => stage.effect(`p${n}`, 1_500));
      await stage.due(
        "R11.1",
        `${most} effects that have begun and not ended`,
        () => orders.every((_, n) => stage.ran(`p${n}`).begun === 1) && orders.every((_, n) => stage.ran(`p${n}`).ended === 0),
        RUN_MS,
      );
      for (const order of orders) await stage.final(order, "R7.3", RUN_MS);
      stage.expect(twice === null, "R11.3", "the next ack of a command when the previous one was answered, or after resendMs", twice);
    },
  },
];
