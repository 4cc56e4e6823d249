// The socket over which the agent's own command line asks the agent that runs: who may open it, what it answers, and that nothing said to it ends the agent.
import { once } from "node:events";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { askAgent, followApp, serveStatus, socketPath } from "../../../agent-sim/cli/status-socket.ts";
import { ReportedApp } from "../../../protocol/records/apps/app-spec.ts";
import { agentStatus } from "./agent-status.ts";

let folder: string;
let server: ReturnType<typeof serveStatus>;
let state: string;
let following: number;
const lines = ["first", "second", "third"];
const restarted = (appId: string): ReportedApp =>
  ReportedApp.parse({ appId: "app_01J9ZQ3E8W6Y2V7K4M5N6P7Q8R", revision: appId.length, state: "running", health: "healthy" });
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "status-socket-"));
  [state, following] = ["ready", 0];
  const status = () => agentStatus("http://gw", state);
  const tail = async (appId: string, count: number) => (appId === "app_1" ? lines.slice(-count) : Promise.reject(new Error("this app is not on the device")));
  const follow = async function* (appId: string, signal: AbortSignal) {
    following += 1;
    try {
      yield* lines;
      // An app that logs nothing more, and one that ends.
      if (appId === "app_1") await once(signal, "abort");
    } finally {
      following -= 1;
    }
  };
  const restart = async (appId: string) => (appId === "app_1" ? restarted(appId) : Promise.reject(new Error("this app is not on the device")));
  server = serveStatus(folder, { status, tail, follow, restart }, () => undefined);
  await once(server as NonNullable<typeof server>, "listening");
});
afterEach(async () => {
  server?.closeAllConnections();
  server?.close();
  await rm(folder, { recursive: true });
});

const raw = (path: string, method = "GET"): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request({ socketPath: socketPath(folder), path, method })
      .once("response", resolve)
      .once("error", reject)
      .end();
  });

test("only its user may open it", async () => expect((await stat(socketPath(folder))).mode & 0o077).toBe(0));

test("tells of the agent, of its health, and of an app's last lines", async () => {
  expect(await askAgent(folder, "/status")).toMatchObject({ code: 200, body: { deviceId: "dev_1", state: "ready" } });
  expect(await askAgent(folder, "/healthz")).toMatchObject({ code: 200 });
  state = "waiting";
  expect(await askAgent(folder, "/healthz")).toMatchObject({ code: 503, body: { state: "waiting" } });
  expect(await askAgent(folder, "/apps/app_1/logs?lines=2")).toEqual({ code: 200, body: { lines: ["second", "third"] } });
  expect(await askAgent(folder, "/apps/app_2/logs")).toEqual({ code: 404, body: { error: "this app is not on the device" } });
});

test("restarts an app by a POST only, and says why it does not", async () => {
  const post = { method: "POST" } as const;
  expect(await askAgent(folder, "/apps/app_1/restart", post)).toEqual({ code: 200, body: { state: "running", health: "healthy" } });
  expect(await askAgent(folder, "/apps/app_2/restart", post)).toEqual({ code: 409, body: { error: "this app is not on the device" } });
  expect(await askAgent(folder, "/apps/app_1/restart")).toMatchObject({ code: 404 });
});

test("follows an app until it ends, or until nobody reads any more", async () => {
  const printed: string[] = [];
  await followApp(folder, "app_ends", (text) => printed.push(text));
  expect(printed.join("")).toBe("first\nsecond\nthird\n");
  const response = await raw("/apps/app_1/follow");
  await once(response, "data");
  expect(following).toBe(1);
  response.destroy();
  await expect.poll(() => following).toBe(0);
});

test("at most eight follow at once", async () => {
  const all = await Promise.all(Array.from({ length: 9 }, () => raw("/apps/app_1/follow")));
  expect(all.map(({ statusCode }) => statusCode).sort()).toEqual([...Array.from({ length: 8 }, () => 200), 429]);
  for (const each of all) each.destroy();
});

test.each(["/", "/apps/%E0%A4%A/logs", "/apps/%E0%A4%A/follow", "/apps/../follow", "//", "/status?x=%", "/apps/__proto__/logs", `/${"x".repeat(10_000)}`])(
  "%j is answered, and the agent goes on",
  async (path) => {
    expect((await raw(path)).statusCode).toBeGreaterThan(199);
    expect((await raw(path, "POST")).statusCode).toBe(400);
    expect(await askAgent(folder, "/status")).toMatchObject({ code: 200 });
  },
);

test("without an agent there is no answer", async () => expect(await askAgent(join(folder, "nothing"), "/status")).toBeNull());
