// Suite core, fourth part: heartbeats, waits after the end of a connection, and gateways that are newer than the agent.
import { QUICK } from "../gateway/conduct.ts";
import { REFUSALS } from "../gateway/kit-gateway.ts";
import type { KitSession } from "../gateway/kit-session.ts";
import { foreignReply, type KitReply } from "../gateway/reply.ts";
import type { KitCase } from "../kit-case.ts";
import { gapsOf, type Stage } from "../stage.ts";

const beatsOf = ({ frames }: KitSession): readonly number[] => frames.flatMap(({ frame, atMs }) => (frame.op === "heartbeat" ? [atMs] : []));
const errorsOf = ({ frames }: KitSession) => frames.flatMap(({ frame }) => (frame.op === "error" ? [frame] : []));

/** Milliseconds from the end of the last session to the next attempt. */
const waitedAfter = async (stage: Stage, end: (session: KitSession) => void, rule: string, withinMs: number): Promise<number> => {
  const session = stage.gateway.sessions.at(-1);
  if (session === undefined) throw new Error("there is no session");
  const upgrades = stage.gateway.upgrades.length;
  const fromMs = stage.time.elapsedMs();
  end(session);
  const next = await stage.due(rule, "the next attempt to connect", () => stage.gateway.upgrades[upgrades], withinMs);
  await stage.session(session.number + 1, { rule });
  return next.atMs - fromMs;
};

export const coreWaits: readonly KitCase[] = [
  {
    id: "BEAT-1",
    title: "sends heartbeats at the gateway's interval, also while a command runs",
    rules: ["R5.4", "R6.1", "R6.3"],
    seconds: 14,
    run: async (stage) => {
      const session = await stage.open();
      await stage.due("R6.1", "a heartbeat within 5 s of ready", () => beatsOf(session).length > 0, 5_500);
      const running = stage.effect("long", 3_500);
      await stage.due("R6.1", "five heartbeats at an interval of a second", () => beatsOf(session).length >= 5, 9_000);
      const gaps = gapsOf(beatsOf(session));
      stage.expect(
        gaps.every((ms) => ms >= 895 - stage.patience.heldUpMs(session.readyAtMs ?? 0)),
        "R6.1",
        "at least 0.9 s between two heartbeats",
        gaps,
      );
      stage.expect(running.final === null || beatsOf(session).length >= 4, "R6.3", "heartbeats while a command runs", gaps);
      session.send("config", { heartbeat: { intervalSec: 60, jitterPct: 10, graceMs: 500 } });
      await stage.pass(1_300);
      const before = beatsOf(session).length;
      await stage.pass(2_500);
      stage.expect(beatsOf(session).length <= before + 1, "R5.4", "no heartbeat every second after config said every minute", beatsOf(session).length - before);
      session.send("config", { heartbeat: { intervalSec: 0.7, jitterPct: 10, graceMs: 500 } });
      const from = beatsOf(session).length;
      await stage.due("R5.4", "the next heartbeats by the shorter interval of config", () => beatsOf(session).length >= from + 2, 5_000);
      await stage.final(running);
    },
  },
  {
    id: "BEAT-2",
    title: "leaves a gateway that no longer answers",
    rules: ["R6.2"],
    seconds: 9,
    run: async (stage) => {
      const session = await stage.open();
      stage.gateway.conduct.answersHeartbeats = false;
      const closed = await stage.due("R6.2", "the end of the connection after two heartbeats without an answer", () => session.closed, 12_000);
      const beats = beatsOf(session).length;
      stage.expect(beats >= 2 && beats <= 3, "R6.2", "two unanswered heartbeats before", beats);
      stage.hint(closed.code === 4002, "R6.2", "close code 4002", closed.code);
      stage.gateway.conduct.answersHeartbeats = true;
      await stage.session(1, { rule: "R6.2" });
      const result = await stage.final(stage.effect("again"));
      stage.expect(result.status === "succeeded", "R6.2", "a session that works", result);
    },
  },
  {
    id: "WAIT-1",
    title: "waits as long as the reason says, in fractions of a second too, and ignores nonsense",
    rules: ["R0.3", "R9.1"],
    seconds: 9,
    run: async (stage) => {
      await stage.open();
      const told = await waitedAfter(stage, (session) => session.close(1012, "drain;ra=2.5"), "R9.1", 6_000);
      stage.expect(told >= 2_495, "R9.1", "2.5 s, as ra= says", `${Math.round(told)} ms`);
      stage.expect(told <= 2_750 + 800 * stage.patience.load, "R9.1", "2.5 s and up to 10 % more", `${Math.round(told)} ms`);
      for (const reason of ["drain;ra=soon", "drain;ra=-1", "drain;ra=", "something else entirely"]) {
        const waited = await waitedAfter(stage, (session) => session.close(1012, reason), "R0.3", 4_000);
        stage.expect(waited < 4_000 * stage.patience.load, "R0.3", `a wait like without ra= for "${reason}"`, `${Math.round(waited)} ms`);
      }
    },
  },
  {
    id: "WAIT-2",
    title: "follows the three rules with close codes that nobody has told it of",
    rules: ["R9.1", "R9.2", "R9.3"],
    seconds: 12,
    run: async (stage) => {
      const { gateway } = stage;
      const first = await stage.open();
      // Unknown and below 4500: it comes back by itself.
      await waitedAfter(stage, (session) => session.close(4099, "from_tomorrow"), "R9.3", 5_000);
      // From 4500 on with a wait: after that wait.
      const told = await waitedAfter(stage, (session) => session.close(4600, "from_tomorrow;ra=1.5"), "R9.1", 6_000);
      stage.expect(told >= 1_495, "R9.1", "1.5 s, as ra= says", `${Math.round(told)} ms`);
      // From 4500 on without: stop, and ask. Only the gateway's own 200 counts.
      const replies: KitReply[] = [foreignReply(200), REFUSALS.forbidden(1)];
      let refused = 0;
      gateway.conduct.onCall = ({ path }) => {
        if (path !== "/v1/agent/me" && !path.endsWith("/commands")) return null;
        const reply = replies.shift() ?? null;
        if (reply?.status === 403) refused += 1;
        return reply;
      };
      const upgrades = gateway.upgrades.length;
      gateway.sessions.at(-1)?.close(4777, "from_tomorrow");
      await stage.due("R9.2", "a call to GET /v1/agent/me (or a poll)", () => refused > 0, 15_000);
      stage.expect(gateway.upgrades.length === upgrades, "R9.2", "no upgrade before REST has accepted the agent", gateway.upgrades.length - upgrades);
      await stage.session(first.number + 3, { rule: "R9.2", ms: 10_000 });
      stage.expect(stage.files().length > 0, "R9.2", "identity and journal kept", stage.files());
      const result = await stage.final(stage.effect("after-all"));
      stage.expect(result.status === "succeeded", "R9.2", "a session that works", result);
    },
  },
  {
    id: "FORWARD-1",
    title: "works with frames, fields and words that it does not know",
    rules: ["R0.1", "R5.3"],
    run: async (stage) => {
      const { conduct } = stage.gateway;
      const tomorrow = { "x-tomorrow": { deep: [1, { er: null }] }, __proto: "x", emoji: "🙂" };
      conduct.welcome = {
        ...QUICK,
        ...tomorrow,
        capabilities: ["journal.v9", "dance.v1"],
        heartbeat: { ...QUICK.heartbeat, ...tomorrow },
        sleep: { deep: true },
      };
      conduct.readyMore = { ...tomorrow, reconcile: [{ commandId: "cmd_nobody_knows", action: "teleport", ...tomorrow }] };
      conduct.heartbeatMore = { ...tomorrow, resend: ["cmd_nobody_knows"] };
      conduct.answerAck = (_ack, stored) => ({ data: { ...stored, ...tomorrow, result: "applied-and-more" } });
      const session = await stage.open();
      const id = session.send("dance", { steps: 3 });
      const error = await stage.due("R5.3", "an error with the ref of an unknown op", () => errorsOf(session).find(({ ref }) => ref === id));
      stage.expect(error.data.code === "UNSUPPORTED_OP", "R5.3", "the code UNSUPPORTED_OP", error.data);
      session.send("error", { code: "SOMETHING_NEW", error: "just a word", retryable: false, ...tomorrow });
      session.send("drain", { reason: "shutdown", handoff: false, reconnectAfterMs: 0, closeAt: "2099-01-01T00:00:00.000Z", ...tomorrow });
      const result = await stage.final(stage.effect("known", 0, { more: tomorrow }), "R0.1");
      stage.expect(result.status === "succeeded", "R0.1", "a command with unknown fields runs", result);
      await stage.due("R0.1", "heartbeats that go on", () => beatsOf(session).length >= 2, 8_000);
      stage.expect(session.closed === null, "R0.1", "one session", session.closed);
    },
  },
  {
    id: "FORWARD-2",
    title: "works without what may be missing, with any id, and with numbers that are none",
    rules: ["R0.1", "R0.2", "R0.3", "R5.8"],
    seconds: 10,
    run: async (stage) => {
      const { conduct, book } = stage.gateway;
      conduct.welcome = {
        heartbeat: { intervalSec: "often", jitterPct: -5, graceMs: null },
        ack: { resendMs: "NaN" },
        limits: null,
        reconnect: { ...QUICK.reconnect, firstWindowMs: 150.5, stableAfterSec: [] },
      };
      const first = await stage.open();
      // No delivery, no payload, no requiresAck.
      const bare = await stage.final(stage.queue("test.effect", undefined, { isBare: true }), "R0.1");
      stage.expect(bare.status === "rejected" || bare.status === "failed", "R0.1", "a command without payload gets a result", bare);
      for (const [n, commandId] of ["x", "../../../etc/passwd", "%00 %2e%2e é 🙂 \" ' \\ ;", "__proto__", "9".repeat(64)].entries()) {
        const order = stage.effect(`id-${n}`, 0, { commandId });
        const result = await stage.final(order, "R0.2");
        stage.expect(result.status === "succeeded" && stage.ran(`id-${n}`).begun === 1, "R0.2", `the command ${commandId} runs once`, result);
      }
      first.send("config", { heartbeat: { intervalSec: 0.5 } });
      await stage.due("R0.3", "heartbeats at an interval that is a fraction", () => beatsOf(first).length >= 3, 8_000);
      for (const text of ["not json", "[]", "null", '{"op":17,"id":"s99","data":{}}', '{"op":"command","id":"s98"}', '{"op":"ack_ok","id":"s97","data":null}'])
        first.sendText(text);
      await stage.pass(1_500);
      stage.expect(stage.agent.ended === null, "R5.8", "an agent that survives frames of no meaning", stage.agent.ended);
      const result = await stage.due(
        "R5.8",
        "a command after such frames",
        () => {
          const order = book.orders.get("cmd_after_nonsense") ?? stage.effect("after-nonsense", 0, { commandId: "cmd_after_nonsense" });
          return order.final;
        },
        15_000,
      );
      stage.expect(result.status === "succeeded", "R5.8", "succeeded", result);
    },
  },
];
