// Suite apps: what the tenant wants on the device, what is there, and what the agent tells of it.
import { accept, headerOf } from "../gateway/reply.ts";
import type { KitCase } from "../kit-case.ts";
import type { Stage } from "../stage.ts";
import { APP_ID, APP_MS, APP_TOKEN, appIn, askApp, deployed, freePort, OTHER_APP_ID, orderApp, reported, untilAppAnswers, wanted } from "./kit-app.ts";
import { OTHER_KEY, PACKAGE, releaseOf, UPDATE_KEY, UPDATE_PUBLIC_KEY } from "./kit-release.ts";

const openWithApp = async (stage: Stage) => {
  await stage.open();
  const port = await freePort();
  await deployed(stage, wanted({ port }));
  return port;
};
const linesOf = ({ gateway }: Stage, followId: string) => gateway.state.logs.filter(({ head }) => head["followId"] === followId);

export const appCases: readonly KitCase[] = [
  {
    id: "APPS-1",
    title: "deploys an app with its configuration and secrets, and reports it",
    rules: ["A2.1", "A4.1", "A5.1", "A5.5"],
    seconds: 10,
    run: async (stage) => {
      const port = await openWithApp(stage);
      const environment = JSON.parse((await askApp(port, "/environment")) ?? "{}") as Readonly<Record<string, string>>;
      stage.expect(
        environment["TITLE"] === "one" && environment["TOKEN"] === APP_TOKEN,
        "A2.1",
        "configuration and secret in the app's variables",
        environment,
      );
      const leaked = Object.entries(environment).filter(
        ([name, value]) => value.includes("test-shared-secret") || (name.startsWith("MOORING_") && name !== "MOORING_APP"),
      );
      stage.expect(leaked.length === 0, "A2.1", "nothing of the agent's own environment", leaked);
      const seen = await reported(
        stage,
        "A5.1",
        "a report of the running app within seconds",
        ({ state, health }) => state === "running" && health === "healthy",
      );
      stage.expect(seen.revision === 1 && seen.ports["http"] === port, "A5.1", `revision 1 at port ${port}`, seen);
      stage.expect(
        stage.gateway.state.reports.at(-1)?.version === 1,
        "A5.1",
        "the version of the order in the report",
        stage.gateway.state.reports.at(-1)?.version,
      );
      stage.expect(!JSON.stringify(stage.gateway.state.reports).includes(APP_TOKEN), "A2.4", "no secret in a report", "it is there");
    },
  },
  {
    id: "APPS-2",
    title: "brings the former revision back when an update fails",
    rules: ["A4.2", "A4.4"],
    seconds: 18,
    run: async (stage) => {
      const port = await openWithApp(stage);
      const { status, code, app } = await appIn(stage, orderApp(stage, "app.deploy", wanted({ revision: 2, title: "two", broken: true, port })), "A4.2");
      stage.expect(status === "failed" && code !== undefined, "A4.2", "failed, with the reason as code", { status, code });
      stage.expect(app.revision === 1 && app.state === "running", "A4.4", "revision 1, running, in the output", app);
      stage.expect(app.failure?.revision === 2, "A4.4", "a failure of revision 2", app.failure);
      const environment = (await askApp(port, "/environment")) ?? "";
      stage.expect(environment.includes('"TITLE":"one"'), "A4.4", "the former revision with its configuration", environment.slice(0, 200));
      await reported(
        stage,
        "A4.4",
        "a report of the former revision with the failure of the new one",
        ({ revision, failure }) => revision === 1 && failure?.revision === 2,
      );
    },
  },
  {
    id: "APPS-3",
    title: "stops, starts, restarts and removes, with the volumes kept and not",
    rules: ["A4.1"],
    seconds: 20,
    run: async (stage) => {
      const port = await openWithApp(stage);
      const states: readonly (readonly [string, Partial<Parameters<typeof wanted>[0]>, string, number | null])[] = [
        ["app.stop", { revision: 2, state: "stopped" }, "stopped", null],
        ["app.start", { revision: 3 }, "running", 2],
        ["app.restart", { revision: 3 }, "running", 3],
        ["app.remove", { revision: 4, state: "removed", keepVolumes: true }, "removed", null],
        ["app.deploy", { revision: 5 }, "running", 4],
        ["app.remove", { revision: 6, state: "removed", keepVolumes: false }, "removed", null],
        ["app.deploy", { revision: 7 }, "running", 1],
      ];
      for (const [type, change, state, starts] of states) {
        const { status, app } = await appIn(stage, orderApp(stage, type, wanted({ port, ...change })), "A4.1");
        stage.expect(status === "succeeded" && app.state === state, "A4.1", `${state} after ${type}`, { status, app });
        const lines = (await askApp(port, "/starts"))?.trim().split("\n").length ?? null;
        stage.expect(lines === starts, "A4.1", starts === null ? `no answer after ${type}` : `a volume with ${starts} starts after ${type}`, lines);
      }
    },
  },
  {
    id: "APPS-4",
    title: "carries out a desired state of which no command told, and lets it win over late commands",
    rules: ["A3.1", "A3.2", "A3.3", "A3.4", "A5.3"],
    seconds: 25,
    run: async (stage) => {
      const { state } = stage.gateway;
      const port = await openWithApp(stage);
      const other = await freePort();
      // The desired state does not name the first app any more, and the gateway does not know it.
      state.ignored = [APP_ID];
      state.secrets = { ...state.secrets, [OTHER_APP_ID]: { TOKEN: APP_TOKEN } };
      state.desired = { ...state.desired, version: 5, apps: [wanted({ appId: OTHER_APP_ID, port: other, revision: 3, title: "desired" })] };
      // Each crash makes a report, and the second one that is behind makes the agent read.
      for (let n = 0; n < 3 && (await askApp(other, "/health")) === null; n += 1) {
        const reports = state.reports.length;
        await untilAppAnswers(stage, "A6.1", port);
        await askApp(port, "/crash");
        await stage.due("A5.1", "a report after a crash of an app", () => state.reports.length > reports, APP_MS);
        await reported(stage, "A6.1", "the crashed app running again", ({ appId, state: now }) => appId === APP_ID && now === "running");
      }
      await reported(
        stage,
        "A3.2",
        "the app of the desired state, running",
        ({ appId, state: now, revision }) => appId === OTHER_APP_ID && now === "running" && revision === 3,
      );
      await untilAppAnswers(stage, "A3.4", port);
      const late = stage.queue(
        "app.deploy",
        { app: wanted({ appId: OTHER_APP_ID, port: other, revision: 2, title: "late" }), desiredVersion: 4 },
        { lane: `app:${OTHER_APP_ID}` },
      );
      await stage.final(late, "A3.3", APP_MS);
      const environment = (await askApp(other, "/environment")) ?? "";
      stage.expect(environment.includes('"TITLE":"desired"'), "A3.3", "the app as the newer desired state has it", environment.slice(0, 200));
      await stage.kill();
      const calls = stage.gateway.calls.length;
      const reports = state.reports.length;
      await stage.open();
      await stage.due("A5.1", "a report at start", () => state.reports.length > reports, APP_MS);
      stage.expect(state.reports.at(-1)?.version === 5, "A3.1", "version 5 in the first report after a restart", state.reports.at(-1)?.version);
      const reads = stage.gateway.calls.slice(calls).filter(({ path }) => path === "/v1/agent/desired-state");
      stage.hint(
        reads.every((call) => headerOf(call, "if-none-match") !== undefined || reads.length === 1),
        "A3.2",
        "If-None-Match when it reads again",
        reads.length,
      );
    },
  },
  {
    id: "APPS-5",
    title: "refuses what it does not understand, and leaves everything else alone",
    rules: ["A2.2", "A2.3"],
    seconds: 15,
    run: async (stage) => {
      const port = await openWithApp(stage);
      const pid = await askApp(port, "/pid");
      const strange: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
        ["an unknown kind", wanted({ appId: OTHER_APP_ID, port: 1, spec: { kind: "teleport" } })],
        ["an unknown state", { ...wanted({ appId: OTHER_APP_ID, port: 1 }), state: "levitating" }],
        ["a program that leads out of the folder", wanted({ appId: OTHER_APP_ID, port: 1, spec: { program: "../../../../bin/sh" } })],
        ["a missing property", { ...wanted({ appId: OTHER_APP_ID, port: 1 }), config: {} }],
        ["a volume that leads out of the folder", wanted({ appId: OTHER_APP_ID, port: 1, spec: { volumes: [{ name: "../../up", variable: "DATA_DIR" }] } })],
      ];
      for (const [what, app] of strange) {
        const ack = await stage.final(stage.queue("app.deploy", { app, desiredVersion: 1 }, { lane: `app:${OTHER_APP_ID}` }), "A2.2", APP_MS);
        stage.expect(ack.status === "failed" || ack.status === "rejected", "A2.2", `${what} refused`, ack);
      }
      stage.expect((await askApp(port, "/pid")) === pid, "A2.2", "the other app as it was", await askApp(port, "/pid"));
    },
  },
  {
    id: "APPS-6",
    title: "sends the end of a log, follows it, masks secrets, and stops when nobody watches",
    rules: ["A2.4", "A7.1", "A7.2", "A7.3", "A7.5"],
    seconds: 15,
    run: async (stage) => {
      const { state } = stage.gateway;
      const port = await openWithApp(stage);
      await askApp(port, "/log");
      const tail = await stage.final(stage.queue("app.logs", { appId: APP_ID, followId: "flw_tail", tail: 10, since: null }), "A7.5", APP_MS);
      stage.expect(tail.status === "succeeded", "A7.5", "succeeded once the gateway has the lines", tail);
      const sent = linesOf(stage, "flw_tail").flatMap(({ lines }) => lines);
      stage.expect(sent.length > 0 && sent.length <= 10, "A7.1", "at most the 10 lines that were asked for", sent.length);
      stage.expect(
        linesOf(stage, "flw_tail")[0]?.head["n"] === 1 && linesOf(stage, "flw_tail").at(-1)?.head["done"] === true,
        "A7.2",
        "chunks from n 1 to done",
        linesOf(stage, "flw_tail").map(({ head }) => head),
      );
      const follow = await stage.final(stage.queue("app.logs.follow", { appId: APP_ID, followId: "flw_follow", seconds: 60, since: null }), "A7.5", APP_MS);
      stage.expect(follow.status === "succeeded", "A7.5", "succeeded as soon as it has begun", follow);
      await askApp(port, "/log");
      await stage.due("A7.3", "the new lines", () => linesOf(stage, "flw_follow").some(({ lines }) => lines.some((line) => line.includes("line 19"))), APP_MS);
      state.watched = false;
      await askApp(port, "/log");
      const chunks = linesOf(stage, "flw_follow").length;
      await stage.due(
        "A7.3",
        "a chunk whose answer says that nobody watches",
        () => linesOf(stage, "flw_follow").length > chunks || linesOf(stage, "flw_follow").some(({ head }) => head["done"] === true),
        APP_MS,
      );
      await stage.pass(1_000);
      const ended = linesOf(stage, "flw_follow").length;
      await askApp(port, "/log");
      await stage.pass(2_500);
      stage.expect(linesOf(stage, "flw_follow").length <= ended, "A7.3", "no further chunk when nobody watches", linesOf(stage, "flw_follow").length - ended);
      const numbers = linesOf(stage, "flw_follow").map(({ head }) => Number(head["n"]));
      stage.expect(
        numbers.every((n, at) => n === at + 1 || n === numbers[at - 1]),
        "A7.1",
        "n from 1, rising by one",
        numbers,
      );
      const all = JSON.stringify(state.logs);
      for (const secret of [APP_TOKEN, Buffer.from(APP_TOKEN).toString("base64")])
        stage.expect(!all.includes(secret), "A2.4", "the secret masked in each line", secret);
    },
  },
  {
    id: "APPS-7",
    title: "starts a crashed app again and tells of it; apps outlive the agent",
    rules: ["A5.1", "A6.1", "A6.3"],
    seconds: 15,
    run: async (stage) => {
      const port = await openWithApp(stage);
      await askApp(port, "/crash");
      const seen = await reported(stage, "A6.1", "a report of a restart", ({ restarts, state }) => restarts >= 1 && state === "running");
      stage.expect(seen.revision === 1, "A6.1", "the same revision", seen);
      await untilAppAnswers(stage, "A6.1", port);
      const pid = await askApp(port, "/pid");
      const reports = stage.gateway.state.reports.length;
      await stage.kill();
      stage.hint((await askApp(port, "/pid")) === pid, "A6.3", "an app that outlives the agent", await askApp(port, "/pid"));
      await stage.open();
      await stage.due("A5.1", "a report at start", () => stage.gateway.state.reports.length > reports, APP_MS);
      await reported(stage, "A5.1", "the running app in it", ({ state }) => state === "running");
      stage.hint((await askApp(port, "/pid")) === pid, "A6.3", "an agent that adopts the apps of its former life", await askApp(port, "/pid"));
    },
  },
  {
    id: "APPS-8",
    title: "takes releases that are signed with its own key only, and gives up one that does not run",
    rules: ["A8.1", "A8.2"],
    seconds: 25,
    env: { MOORING_UPDATE_KEY: UPDATE_PUBLIC_KEY },
    run: async (stage) => {
      const { conduct, sessions } = stage.gateway;
      const first = await stage.open();
      const own = first.hello?.agentVersion ?? "1.0.0";
      let offered: object = {};
      let fetched = 0;
      conduct.onCall = ({ path }) => {
        if (path === "/v1/agent/updates/latest") return accept(offered);
        if (path !== "/v1/agent/updates/package") return null;
        fetched += 1;
        return { ...accept(null), headers: { ...accept(null).headers, "content-type": "application/octet-stream" }, text: PACKAGE };
      };
      const refused: readonly (readonly [string, object])[] = [
        ["a release signed with another key", releaseOf("999.0.0", OTHER_KEY.privateKey)],
        ["an older version", releaseOf("0.0.1", UPDATE_KEY.privateKey)],
        ["a package of another sum", releaseOf("999.0.0", UPDATE_KEY.privateKey, { sha256: "0".repeat(64) })],
      ];
      for (const [what, release] of refused) {
        offered = release;
        const ack = await stage.final(stage.queue("agent-update", {}), "A8.1", APP_MS);
        stage.expect(ack.status === "failed" || ack.status === "rejected", "A8.1", `${what} refused`, ack);
      }
      stage.expect(sessions.length === 1 && first.closed === null, "A8.1", "the same session after three refusals", sessions.length);
      offered = releaseOf("999.0.0", UPDATE_KEY.privateKey);
      const before = fetched;
      const order = stage.queue("agent-update", {});
      await stage.due("A8.1", "the package of a good release", () => fetched > before, APP_MS);
      // It does not run, so the former version comes back and says so.
      const back = await stage.session(1, { rule: "A8.2", ms: 60_000 });
      stage.expect(back.hello?.agentVersion === own, "A8.2", `version ${own} again`, back.hello?.agentVersion);
      const ack = await stage.final(order, "A8.2", APP_MS);
      stage.expect(ack.status === "failed", "A8.2", "failed", ack);
    },
  },
];
