// Suite strong: signatures that cover the whole request, sessions that move without a gap, and new secrets.
import { REFUSALS } from "../gateway/kit-gateway.ts";
import type { KitSession } from "../gateway/kit-session.ts";
import type { KitCase } from "../kit-case.ts";
import type { Stage } from "../stage.ts";
import { blockSockets, isAck, loseSockets } from "./poll.ts";

const RUN_MS = 12_000;
const NEW_SECRET = "a-new-shared-secret-0002";

const drain = (session: KitSession): string =>
  session.send("drain", { reason: "shutdown", handoff: true, reconnectAfterMs: 0, closeAt: "2099-01-01T00:00:00.000Z" });
const saysGoodbye = ({ frames }: KitSession): boolean => frames.some(({ frame }) => frame.op === "goodbye" && frame.data.reason === "handoff");

/** Makes the gateway give out the new secret, of which the first use ends the old one. */
const offerSecret = ({ gateway }: Stage): void => {
  gateway.state.nextSecret = NEW_SECRET;
  gateway.rules.secrets = [...gateway.rules.secrets, NEW_SECRET];
  gateway.rules.onUse = (secret) => {
    if (secret === NEW_SECRET) gateway.rules.secrets = [NEW_SECRET];
  };
};
const usesNewSecret = (stage: Stage): Promise<boolean> =>
  stage.due("R18.1", "a request that is signed with the new secret", () => stage.gateway.rules.secrets.length === 1, RUN_MS);

export const strongCases: readonly KitCase[] = [
  {
    id: "STRONG-1",
    title: "signs upgrade and calls with v2 too, and says so",
    rules: ["R16.2"],
    run: async (stage) => {
      const session = await stage.open();
      stage.expect(session.hello?.capabilities.includes("signature.v2") === true, "R16.2", "the capability signature.v2", session.hello?.capabilities);
      blockSockets(stage, session);
      const order = stage.effect("polled");
      await stage.final(order, "R15.3", RUN_MS);
      for (const { method, path, headers } of [...stage.gateway.upgrades, ...stage.gateway.calls])
        for (const name of ["x-svc-signature-version", "x-svc-nonce", "x-svc-signature-v2"])
          stage.expect(headers.get(name)?.length === 1, "R16.2", `${name} in ${method} ${path}`, headers.get(name));
    },
  },
  {
    id: "STRONG-2",
    title: "signs every attempt with a nonce of its own",
    rules: ["R16.1"],
    seconds: 8,
    run: async (stage) => {
      await loseSockets(stage);
      let cut = 0;
      stage.gateway.conduct.onCall = (call) => {
        if (!isAck(call) || cut >= 2) return null;
        cut += 1;
        return { status: 200, text: "", isCut: true };
      };
      await stage.final(stage.effect("repeated"), "R7.3", RUN_MS);
      const nonces = [...stage.gateway.upgrades, ...stage.gateway.calls].map(({ headers }) => headers.get("x-svc-nonce")?.[0] ?? "");
      stage.expect(
        nonces.every((nonce) => /^[\w-]{22}$/.test(nonce)),
        "R16.1",
        "nonces of 22 characters",
        nonces.find((nonce) => !/^[\w-]{22}$/.test(nonce)),
      );
      stage.expect(new Set(nonces).size === nonces.length, "R16.1", "as many nonces as requests", `${new Set(nonces).size} of ${nonces.length}`);
    },
  },
  {
    id: "STRONG-3",
    title: "works on when the gateway takes nothing but v2",
    rules: ["R16.3"],
    run: async (stage) => {
      stage.gateway.rules.needsV2 = true;
      await stage.open();
      await stage.final(stage.effect("first"));
      await stage.kill();
      const session = await stage.open({ rule: "R16.3" });
      blockSockets(stage, session);
      await stage.final(stage.effect("second"), "R16.3", RUN_MS);
      const refused = stage.gateway.calls.filter(({ status }) => status === 401);
      stage.expect(
        refused.length === 0,
        "R16.3",
        "no request with v1 only, after a start too",
        refused.map(({ path }) => path),
      );
    },
  },
  {
    id: "STRONG-4",
    title: "moves to another session before the first one ends",
    rules: ["R17.1", "R17.2", "R17.3"],
    run: async (stage) => {
      const first = await stage.open();
      stage.expect(first.hello?.capabilities.includes("handoff.v1") === true, "R17.1", "the capability handoff.v1", first.hello?.capabilities);
      const order = stage.effect("across", 1_500);
      await stage.due("R7.1", "the effect begins", () => stage.ran("across").begun > 0);
      drain(first);
      const second = await stage.session(1, { rule: "R17.1" });
      stage.expect(second.hello?.handoffFrom === first.sessionId, "R17.2", `handoffFrom ${first.sessionId}`, second.hello?.handoffFrom);
      stage.expect(second.hello?.instanceId === first.hello?.instanceId, "R17.2", "the same instanceId", second.hello?.instanceId);
      stage.expect(
        (first.closed?.atMs ?? Number.POSITIVE_INFINITY) > (second.readyAtMs ?? 0),
        "R17.1",
        "the first connection open until the second is ready",
        first.closed,
      );
      await stage.due("R17.3", "goodbye with reason handoff on the first connection, and its end", () => saysGoodbye(first) && first.closed !== null);
      const result = await stage.final(order, "R17.3", RUN_MS);
      stage.expect(
        result.status === "succeeded" && order.acks.at(-1)?.session === 1,
        "R17.3",
        "the result over the second connection",
        order.acks.map(({ session }) => session),
      );
      await stage.pass(1_500);
      stage.expect(stage.gateway.upgrades.length === 2, "R17.3", "no further connection", stage.gateway.upgrades.length - 2);
    },
  },
  {
    id: "STRONG-5",
    title: "tries a refused handoff again, and reconnects when the first connection ends before",
    rules: ["R17.4"],
    seconds: 9,
    run: async (stage) => {
      const { conduct, upgrades } = stage.gateway;
      const first = await stage.open();
      const refusals = [REFUSALS.unavailable(0.5), REFUSALS.unavailable(0.5)];
      conduct.onUpgrade = () => refusals.shift() ?? null;
      drain(first);
      await stage.due("R17.4", "two refused attempts", () => upgrades.length >= 3, RUN_MS);
      stage.expect(first.closed === null, "R17.4", "the first connection open meanwhile", first.closed);
      const good = await stage.final(stage.effect("meanwhile"));
      stage.expect(good.status === "succeeded", "R17.4", "commands over the first connection meanwhile", good);
      const second = await stage.session(1, { rule: "R17.4", ms: RUN_MS });
      await stage.due("R17.3", "the end of the first connection", () => first.closed);
      // The other way round: the node is gone before a handoff succeeds.
      conduct.onUpgrade = () => REFUSALS.unavailable(1);
      drain(second);
      await stage.pass(300);
      second.close(1012, "drain;ra=0.5");
      await stage.pass(300);
      conduct.onUpgrade = () => null;
      const third = await stage.session(2, { rule: "R17.4", ms: RUN_MS });
      const result = await stage.final(stage.effect("after"));
      stage.expect(result.status === "succeeded" && third.closed === null, "R17.4", "a session that works", result);
    },
  },
  {
    id: "STRONG-6",
    title: "takes a new secret without ever being left with none that counts",
    rules: ["R18.1", "R18.2"],
    seconds: 14,
    run: async (stage) => {
      const { conduct } = stage.gateway;
      await stage.open();
      offerSecret(stage);
      let died = 0;
      conduct.onCall = ({ path }) => {
        // First it dies with the new secret in its hands, then after its first use, of which it learns nothing.
        if (path.endsWith("/secrets") && died === 0) {
          died = 1;
          void stage.kill();
        }
        return null;
      };
      const order = stage.queue("svc.rotate-secret", {});
      await stage.due("R18.1", "GET /v1/devices/{deviceId}/secrets", () => stage.gateway.calls.some(({ path }) => path.endsWith("/secrets")), RUN_MS);
      await stage.due("R18.2", "the end of the killed agent", () => stage.agent.ended);
      await stage.open({ rule: "R18.2" });
      await stage.final(order, "R8.4", RUN_MS);
      const again = stage.queue("svc.rotate-secret", {});
      await usesNewSecret(stage);
      await stage.kill();
      const session = await stage.open({ rule: "R18.2" });
      const result = await stage.final(again, "R18.1", RUN_MS);
      stage.expect(["succeeded", "failed"].includes(result.status), "R18.1", "a result of the rotation", result);
      const good = await stage.final(stage.effect("signed-anew"));
      stage.expect(good.status === "succeeded" && session.closed === null, "R18.2", "an agent that works with the new secret", good);
    },
  },
];
