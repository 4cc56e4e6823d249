// Suite poll: an agent on a network that lets no WebSocket pass.
import type { KitSession } from "../gateway/kit-session.ts";
import { foreignReply, type HeardCall, refuseCall } from "../gateway/reply.ts";
import type { KitCase } from "../kit-case.ts";
import { gapsOf, type Stage } from "../stage.ts";

const RUN_MS = 12_000;

export const pollsOf = ({ gateway }: Stage, status = 200) =>
  gateway.calls.filter((call) => call.method === "GET" && /^\/v1\/devices\/[^/]+\/commands$/.test(call.path) && call.status === status);
export const isAck = ({ path }: Pick<HeardCall, "path">): boolean => path.endsWith("/ack");

/** From now on a proxy answers every upgrade. */
export const blockSockets = ({ gateway }: Stage, session: Pick<KitSession, "cut">): void => {
  gateway.conduct.onUpgrade = () => foreignReply(404);
  session.cut();
};
/** A first session gives the agent short waits. */
export const loseSockets = async (stage: Stage): Promise<void> => {
  blockSockets(stage, await stage.open());
  await stage.due("R15.3", "a poll within the interval of welcome (1 s)", () => pollsOf(stage).length > 0, RUN_MS);
};

export const pollCases: readonly KitCase[] = [
  {
    id: "POLL-1",
    title: "polls at the interval that each answer names",
    rules: ["R15.1", "R15.2", "R15.3", "R15.4"],
    seconds: 12,
    run: async (stage) => {
      const { conduct } = stage.gateway;
      conduct.pollSeconds = 1.5;
      await loseSockets(stage);
      const from = pollsOf(stage).length;
      await stage.due("R15.3", "three polls more", () => pollsOf(stage).length >= from + 3, RUN_MS);
      const gaps = gapsOf(
        pollsOf(stage)
          .slice(from)
          .map(({ atMs }) => atMs),
      );
      stage.expect(
        gaps.every((ms) => ms >= 1_345 - stage.patience.heldUpMs(pollsOf(stage)[from]?.atMs ?? 0)),
        "R15.3",
        "1.5 s and 10 % at most less between two polls",
        gaps,
      );
      conduct.pollSeconds = 0.5;
      const slow = pollsOf(stage).length;
      await stage.due("R15.3", "five polls within 5 s at an interval of half a second", () => pollsOf(stage).length >= slow + 5, 6_000);
      const instances = new Set(pollsOf(stage).map(({ headers }) => headers.get("x-svc-instance-id")?.[0]));
      stage.expect(instances.size === 1, "R15.4", "the same x-svc-instance-id in each poll", [...instances]);
      stage.hint(!instances.has(undefined), "R15.4", "x-svc-instance-id in each poll", "none");
    },
  },
  {
    id: "POLL-2",
    title: "waits as the refusal of a poll says, and polls on after no answer",
    rules: ["R0.5", "R9.1", "R15.3"],
    seconds: 8,
    run: async (stage) => {
      await loseSockets(stage);
      const plan = [refuseCall(429, "RATE_LIMIT_EXCEEDED", { retryAfter: 2.5 }), foreignReply(200), foreignReply(403)];
      stage.gateway.conduct.onCall = (call) => (/\/commands$/.test(call.path) ? (plan.shift() ?? null) : null);
      const limited = await stage.due("R15.3", "a poll", () => pollsOf(stage, 429)[0], RUN_MS);
      const next = await stage.due(
        "R9.1",
        "the next poll",
        () => stage.gateway.calls.find(({ path, atMs }) => /\/commands$/.test(path) && atMs > limited.atMs),
        RUN_MS,
      );
      stage.expect(next.atMs - limited.atMs >= 2_495, "R9.1", "the 2.5 s of Retry-After", `${Math.round(next.atMs - limited.atMs)} ms`);
      const result = await stage.final(stage.effect("after-all"), "R0.5", RUN_MS);
      stage.expect(result.status === "succeeded", "R0.5", "polls that go on after answers of a proxy", result);
    },
  },
  {
    id: "POLL-3",
    title: "stops what the cancel list of a poll names",
    rules: ["R15.5"],
    seconds: 8,
    run: async (stage) => {
      await loseSockets(stage);
      const order = stage.effect("endless", 60_000);
      await stage.due("R15.3", "the effect begins", () => stage.ran("endless").begun > 0, RUN_MS);
      order.cancelRequested = true;
      const answer = await stage.due("R15.5", "canceled or cancel_rejected", () => order.acks.find(({ ack }) => /^cancel/.test(ack.status)), RUN_MS);
      stage.hint(answer.ack.status === "canceled", "R15.5", "an effect that can be stopped", answer.ack.status);
    },
  },
  {
    id: "POLL-4",
    title: "repeats an ack whose answer was lost, and runs the command once",
    rules: ["R7.1", "R7.3"],
    seconds: 8,
    run: async (stage) => {
      const { conduct, book } = stage.gateway;
      await loseSockets(stage);
      let lost = 0;
      conduct.onCall = (call) => {
        if (!isAck(call) || lost >= 2 || call.json?.["status"] !== "succeeded") return null;
        lost += 1;
        // Stored the second time only; the answer is lost both times.
        if (lost === 2) book.take({ commandId: call.path.split("/").at(-2) ?? "", status: "succeeded" }, call.atMs, null);
        return { status: 200, text: "", isCut: true };
      };
      const order = stage.effect("polled");
      await stage.due(
        "R7.3",
        "the result three times",
        () => stage.gateway.calls.filter((call) => isAck(call) && call.json?.["status"] === "succeeded").length >= 3,
        RUN_MS,
      );
      const { begun } = stage.ran("polled");
      stage.expect(begun === 1, "R7.1", "the effect once, although the command was polled again", begun);
      stage.expect(order.final?.status === "succeeded", "R7.3", "succeeded", order.final);
    },
  },
  {
    id: "POLL-5",
    title: "takes an ack for settled by the gateway's word only, and shortens what is too large",
    rules: ["R0.5", "R15.6"],
    seconds: 10,
    run: async (stage) => {
      const { conduct, calls } = stage.gateway;
      await loseSockets(stage);
      const proxy = [foreignReply(404), foreignReply(413), foreignReply(200)];
      conduct.onCall = (call) => (isAck(call) && call.json?.["status"] === "succeeded" ? (proxy.shift() ?? null) : null);
      const first = stage.effect("behind-a-proxy");
      await stage.final(first, "R0.5", RUN_MS);
      const tried = calls.filter((call) => isAck(call) && call.path.includes(first.commandId) && call.json?.["status"] === "succeeded").length;
      stage.expect(tried >= 4, "R0.5", "the result after each answer of a proxy", tried);
      conduct.onCall = (call) => (isAck(call) && call.body.length > 2_000 ? refuseCall(413, "PAYLOAD_TOO_LARGE") : null);
      const large = stage.queue("test.output", { bytes: 8_000 });
      const result = await stage.final(large, "R15.6", RUN_MS);
      stage.expect(result.status === "succeeded", "R15.6", "the status with a shorter output", result.status);
      const gone = stage.effect("gone");
      conduct.onCall = (call) => {
        if (!isAck(call)) return null;
        // Polls do not name it any more either.
        gone.final ??= { commandId: gone.commandId, status: "expired" };
        return refuseCall(404, "COMMAND_NOT_FOUND");
      };
      const acksOfGone = () => calls.filter((call) => isAck(call) && call.path.includes(gone.commandId) && call.json?.["status"] === "succeeded").length;
      await stage.due("R15.6", "the result once", () => acksOfGone() > 0, RUN_MS);
      await stage.pass(2_500);
      stage.expect(acksOfGone() === 1, "R15.6", "no further ack after COMMAND_NOT_FOUND of the gateway", acksOfGone());
    },
  },
  {
    id: "POLL-6",
    title: "waits for its killed predecessor as DUPLICATE_IDENTITY says, and still acks",
    rules: ["R15.7"],
    seconds: 10,
    run: async (stage) => {
      const { conduct } = stage.gateway;
      await loseSockets(stage);
      const order = stage.effect("running-when-killed", 60_000);
      await stage.due("R15.3", "the effect begins", () => stage.ran("running-when-killed").begun > 0, RUN_MS);
      await stage.kill();
      // A new process learns the short waits in a session, and loses it.
      conduct.onUpgrade = () => null;
      conduct.answerAck = () => null;
      const refusals = [refuseCall(409, "DUPLICATE_IDENTITY", { retryAfter: 3 })];
      await stage.open();
      conduct.answerAck = (_ack, stored) => ({ data: stored });
      conduct.onCall = (call) => (/\/commands$/.test(call.path) ? (refusals.shift() ?? null) : null);
      conduct.onUpgrade = () => foreignReply(404);
      stage.gateway.sessions.at(-1)?.cut();
      const refused = await stage.due("R15.3", "a poll", () => pollsOf(stage, 409)[0], RUN_MS);
      const next = await stage.due("R15.7", "the next poll", () => pollsOf(stage).find(({ atMs }) => atMs > refused.atMs), RUN_MS);
      stage.expect(next.atMs - refused.atMs >= 2_995, "R15.7", "the 3 s of Retry-After", `${Math.round(next.atMs - refused.atMs)} ms`);
      const result = await stage.final(order, "R8.4", RUN_MS);
      stage.expect(result.code === "AGENT_RESTARTED", "R8.4", "failed with AGENT_RESTARTED", result);
    },
  },
  {
    id: "POLL-7",
    title: "polls on, whatever happens to its attempts to connect",
    rules: ["R15.8"],
    seconds: 12,
    run: async (stage) => {
      await loseSockets(stage);
      const [polls, upgrades] = [pollsOf(stage).length, stage.gateway.upgrades.length];
      await stage.pass(7_000);
      stage.expect(stage.gateway.upgrades.length - upgrades >= 3, "R9.3", "further attempts to connect", stage.gateway.upgrades.length - upgrades);
      stage.expect(pollsOf(stage).length - polls >= 4, "R15.8", "a poll a second for 7 s, beside the attempts to connect", pollsOf(stage).length - polls);
      const result = await stage.final(stage.effect("polled"), "R15.8", RUN_MS);
      stage.expect(result.status === "succeeded", "R15.8", "succeeded", result);
      stage.gateway.conduct.onUpgrade = () => null;
      await stage.session(1, { rule: "R9.3", ms: RUN_MS });
    },
  },
];
