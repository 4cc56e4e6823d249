// Suite core, first part: pairing, signatures, connecting and hello.
import { readFileSync, statSync } from "node:fs";
import { KIT_SECRET, REFUSALS } from "../gateway/kit-gateway.ts";
import { ELSEWHERE, foreignReply, type KitReply, refuseCall } from "../gateway/reply.ts";
import type { KitCase } from "../kit-case.ts";
import { gapsOf, notObservable, SOON_MS, type Stage } from "../stage.ts";

const PAIR_MS = 20_000;
const INITIATE = "/v1/pairing/initiate";
const AUTO = "/v1/pairing/auto-activate";
const COLLECT = "/v1/pairing/collect";
/** A proxy that the agent must not obey in anything. */
const MADE_UP = [foreignReply(404), foreignReply(400, { "retry-after": "3600" }), foreignReply(200), foreignReply(302, { location: ELSEWHERE })];

const callsTo = ({ gateway }: Stage, path: string) => gateway.calls.filter((call) => call.path === path);
const isPaired = async (stage: Stage) => {
  const session = await stage.session(0, { rule: "R1.6", ms: PAIR_MS });
  stage.expect(
    stage.files().some((path) => readFileSync(path, "utf8").includes(KIT_SECRET)),
    "R1.1",
    "the identity in a file",
    stage.files(),
  );
  return session;
};
/** The files that hold the secret can be read by the agent only. */
const keepsSecret = (stage: Stage): void => {
  const open = stage.files().filter((path) => readFileSync(path, "utf8").includes(KIT_SECRET) && (statSync(path).mode & 0o077) !== 0);
  stage.expect(open.length === 0, "R1.1", "files with the secret that only the agent can read (mode 0600)", open);
  stage.expect(!stage.agent.output.includes(KIT_SECRET), "R1.5", "the secret in no line of output", "it is there");
  stage.expect(!stage.agent.output.includes(stage.gateway.pairing.pollToken), "R1.3", "the pollToken in no line of output", "it is there");
};
/** Answers the first calls to a path otherwise. */
const firstTo = (path: string, replies: readonly KitReply[]) => {
  const left = [...replies];
  return ({ path: called }: { readonly path: string }): KitReply | null => (called === path ? (left.shift() ?? null) : null);
};

/** The clock of the gateway, and how the agent is told. */
const correctsItself = async (stage: Stage): Promise<void> => {
  const session = await stage.session(0, { rule: "R3.1", ms: PAIR_MS });
  const tried = stage.gateway.upgrades.length + callsTo(stage, "/v1/agent/me").length;
  stage.expect(tried <= 6, "R3.1", "an agent that corrects its clock with the first answer", `${tried} signed requests until it was right`);
  const expired = stage.effect("late", 0, { expiresInMs: -1_000 });
  const acked = await stage.final(expired, "R7.1");
  stage.expect(acked.status === "rejected" && acked.code === "EXPIRED", "R7.1", "rejected with EXPIRED, by the gateway's clock", acked);
  const known = await stage.final(stage.queue("kit.nobody.knows.this", {}, { expiresInMs: 60_000 }));
  stage.expect(known.code === "UNSUPPORTED_TYPE", "R7.1", "a command that is in time by the gateway's clock does not expire", known);
  session.close(1000);
};

const FAKETIME = ["/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1"];
const fakeClock = (): string => {
  const found = FAKETIME.find((path) => statSync(path, { throwIfNoEntry: false }) !== undefined);
  return found ?? notObservable("the clock cannot be set back without libfaketime (Debian: apt install faketime)");
};

export const coreConnect: readonly KitCase[] = [
  {
    id: "PAIR-1",
    title: "pairs with an enrollment token, once",
    rules: ["R1.1", "R1.2", "R1.3", "R1.5", "R1.6"],
    run: async (stage) => {
      stage.start({ pairs: "token" });
      await isPaired(stage);
      keepsSecret(stage);
      const before = stage.gateway.calls.filter(({ path }) => path.startsWith("/v1/pairing/")).length;
      await stage.kill();
      const [sessions] = [stage.gateway.sessions.length];
      stage.start({ pairs: "token" });
      await stage.session(sessions, { rule: "R1.1", ms: PAIR_MS });
      const after = stage.gateway.calls.filter(({ path }) => path.startsWith("/v1/pairing/")).length;
      stage.expect(after === before, "R1.1", "no pairing by a start with an identity", `${after - before} calls`);
    },
  },
  {
    id: "PAIR-2",
    title: "shows code and digits, and collects the identity when somebody has approved",
    rules: ["R1.3", "R1.4", "R1.6", "R1.7"],
    run: async (stage) => {
      const { pairing } = stage.gateway;
      pairing.pendings = 2;
      const agent = stage.start({ pairs: "person" });
      await isPaired(stage);
      for (const [what, text] of Object.entries({ pairing_code: pairing.codes[0] ?? "", comparison: pairing.comparison, portal_url: pairing.portalUrl }))
        stage.expect(agent.output.includes(text), "R1.4", `${what} (${text}) in the output`, agent.output.slice(-400));
      const collects = callsTo(stage, COLLECT);
      stage.expect(collects.length === 3, "R1.7", "a collect for each pending and one for the identity", collects.length);
      const gaps = gapsOf(collects.map(({ atMs }) => atMs));
      stage.expect(
        gaps.every((ms) => ms >= 395),
        "R1.7",
        "at least pollAfterSeconds (0.4) between two collects",
        gaps,
      );
      keepsSecret(stage);
    },
  },
  {
    id: "PAIR-3",
    title: "repeats a call of pairing whose answer was lost, or came from something else than the gateway",
    rules: ["R0.5", "R0.6", "R1.6"],
    seconds: 12,
    run: async (stage) => {
      const atInitiate = firstTo(INITIATE, [MADE_UP[0] ?? foreignReply(404), MADE_UP[3] ?? foreignReply(302)]);
      let lost = false;
      stage.gateway.conduct.onCall = (call) => {
        const made = atInitiate(call);
        if (made !== null) return made;
        if (call.path !== AUTO || lost) return null;
        lost = true;
        // The gateway did it; its answer breaks off.
        const done = stage.gateway.pairing.answer(call);
        return done === null ? null : { ...done, isCut: true };
      };
      stage.start({ pairs: "token" });
      await isPaired(stage);
      stage.expect(lost, "R1.6", "a call to auto-activate", "none");
    },
  },
  {
    id: "PAIR-4",
    title: "begins again when the code was used, and obeys Retry-After",
    rules: ["R1.6", "R1.8"],
    seconds: 8,
    run: async (stage) => {
      const replies = [refuseCall(429, "RATE_LIMIT_EXCEEDED", { retryAfter: 1.2 }), refuseCall(409, "PAIRING_ALREADY_ACTIVATED")];
      stage.gateway.conduct.onCall = firstTo(AUTO, replies);
      stage.start({ pairs: "token" });
      await isPaired(stage);
      const [first, second] = callsTo(stage, AUTO);
      const waited = (second?.atMs ?? 0) - (first?.atMs ?? 0);
      stage.expect(waited >= 1_195, "R1.8", "the wait of Retry-After (1.2 s)", `${Math.round(waited)} ms`);
      stage.expect(callsTo(stage, INITIATE).length >= 2, "R1.8", "another code after PAIRING_ALREADY_ACTIVATED", "none");
    },
  },
  {
    id: "SIGN-1",
    title: "signs each request with a timestamp of its own",
    rules: ["R2.1", "R2.2", "R2.3", "R2.4"],
    run: async (stage) => {
      await stage.open();
      for (let n = 1; n < 4; n += 1) {
        stage.gateway.sessions.at(-1)?.close(1012, "drain;ra=0.1");
        await stage.session(n);
      }
      const stamps = stage.gateway.upgrades.map(({ headers }) => headers.get("x-svc-timestamp")?.[0]);
      stage.expect(new Set(stamps).size === stamps.length, "R2.2", "four timestamps for four upgrades", stamps);
      const result = await stage.final(stage.queue("echo.nothing.of.this", {}), "R7.1");
      stage.expect(result.status === "rejected", "R7.1", "a session that works", result);
    },
  },
  {
    id: "SIGN-2",
    title: "corrects a clock that is ten minutes ahead by the gateway's answer",
    rules: ["R3.1", "R3.2"],
    seconds: 8,
    run: async (stage) => {
      stage.gateway.rules.clockOffsetMs = -600_000;
      const before = stage.time.wallMs();
      const from = stage.time.elapsedMs();
      stage.start();
      await correctsItself(stage);
      const moved = Math.abs(stage.time.wallMs() - before - (stage.time.elapsedMs() - from));
      stage.expect(moved < 60_000, "R3.2", "the machine's clock as it was", `it moved by ${Math.round(moved / 1_000)} s`);
    },
  },
  {
    id: "SIGN-3",
    title: "connects although its clock says 1970",
    rules: ["R2.4", "R3.1", "R3.3"],
    seconds: 8,
    run: async (stage) => {
      const env = { LD_PRELOAD: fakeClock(), FAKETIME: "@1970-01-01 00:00:10", FAKETIME_DONT_FAKE_MONOTONIC: "1", DONT_FAKE_MONOTONIC: "1", TZ: "UTC" };
      stage.start({ env });
      const first = await stage.due("R3.3", "a signed request", () => stage.gateway.upgrades[0] ?? callsTo(stage, "/v1/agent/me")[0], PAIR_MS);
      const stamp = first.headers.get("x-svc-timestamp")?.[0] ?? "";
      if (Math.abs(Date.parse(stamp) - stage.time.wallMs()) < 86_400_000) notObservable("this agent's clock cannot be set by libfaketime");
      stage.expect(stamp.startsWith("2000-01-01"), "R3.3", "a timestamp of 2000-01-01", stamp);
      await correctsItself(stage);
    },
  },
  {
    id: "CONN-1",
    title: "waits as a refusal says, and stops until REST accepts it",
    rules: ["R9.1", "R9.2"],
    seconds: 10,
    run: async (stage) => {
      const { gateway } = stage;
      const session = await stage.open();
      const plan: KitReply[] = [REFUSALS.unavailable(1.5), REFUSALS.limited(1), REFUSALS.unknownAgent];
      gateway.conduct.onUpgrade = () => plan.shift() ?? null;
      const mes = [REFUSALS.forbidden(1.5)];
      gateway.conduct.onCall = ({ path }) => (path === "/v1/agent/me" || path.endsWith("/commands") ? (mes.shift() ?? null) : null);
      session.close(1012, "drain;ra=0.1");
      await stage.due(
        "R9.2",
        "a call to GET /v1/agent/me (or a poll) after 401",
        () => (plan.length === 0 ? gateway.calls.find(({ status }) => status === 403) : null),
        15_000,
      );
      const stopped = gateway.upgrades.length;
      stage.expect(stopped === 4, "R9.2", "no upgrade before REST has accepted the agent", `${stopped - 4} more`);
      await stage.session(1, { rule: "R9.2", ms: 15_000 });
      const at = gateway.upgrades.map(({ atMs }) => atMs);
      stage.expect((at[2] ?? 0) - (at[1] ?? 0) >= 1_495, "R9.1", "the 1.5 s of Retry-After after 503", `${Math.round((at[2] ?? 0) - (at[1] ?? 0))} ms`);
      stage.expect((at[3] ?? 0) - (at[2] ?? 0) >= 995, "R9.1", "the second of Retry-After after 429", `${Math.round((at[3] ?? 0) - (at[2] ?? 0))} ms`);
      const accepted = gateway.calls.find(({ status, atMs }) => status === 200 && atMs > (at[3] ?? 0));
      stage.expect(accepted !== undefined && accepted.atMs < (at[4] ?? 0), "R9.2", "an upgrade only after REST has answered 200", "an upgrade before");
    },
  },
  {
    id: "CONN-2",
    title: "takes what is not the gateway's for no answer",
    rules: ["R0.5", "R0.6", "R9.3"],
    seconds: 10,
    run: async (stage) => {
      const { gateway } = stage;
      const session = await stage.open();
      const plan = [...MADE_UP, { ...foreignReply(200), isCut: true as const }];
      const made = plan.length;
      gateway.conduct.onUpgrade = () => plan.shift() ?? null;
      session.cut();
      await stage.session(1, { rule: "R0.5", ms: 20_000 });
      stage.expect(gateway.upgrades.length === made + 2, "R9.3", "an attempt after each of them", gateway.upgrades.length - 1);
    },
  },
  {
    id: "CONN-3",
    title: "gives up a connection on which the gateway stays silent",
    rules: ["R4.3"],
    seconds: 33,
    run: async (stage) => {
      const { conduct, sessions } = stage.gateway;
      conduct.welcomes = false;
      stage.start();
      const silent = await stage.due("R4.3", "a connection", () => sessions[0], 20_000);
      conduct.welcomes = true;
      await stage.due("R4.3", "the end of a connection without welcome", () => silent.closed, 31_000);
      await stage.session(1, { ms: 10_000 });
    },
  },
  {
    id: "HELLO-1",
    title: "proves itself, and says nothing before ready",
    rules: ["R4.2", "R5.1", "R5.2", "R5.5", "R5.6", "R5.7", "R5.9"],
    run: async (stage) => {
      const { conduct, sessions } = stage.gateway;
      conduct.readies = false;
      stage.start();
      const session = await stage.due("R5.1", "hello", () => sessions.find(({ hello }) => hello !== null), 20_000);
      await stage.pass(2_500);
      stage.expect(
        session.frames.length === 1 && session.closed === null,
        "R5.2",
        "only hello before ready, and patience",
        session.frames.map(({ frame }) => frame.op),
      );
      conduct.readies = true;
      session.ready();
      await stage.final(stage.effect("first"));
      session.close(1012, "drain;ra=0.1");
      const second = await stage.session(1);
      stage.hint(session.hello?.instanceId !== undefined, "R5.9", "an instanceId in hello", "none");
      stage.expect(second.hello?.instanceId === session.hello?.instanceId, "R5.9", "the same instanceId for the same process", [
        session.hello?.instanceId,
        second.hello?.instanceId,
      ]);
      await stage.kill();
      const third = await stage.open();
      if (third.hello?.instanceId !== undefined)
        stage.expect(third.hello.instanceId !== session.hello?.instanceId, "R5.9", "another instanceId for another process", third.hello.instanceId);
      await stage.final(stage.effect("last"), "R7.3", SOON_MS);
    },
  },
];
