// How the agent's command line asks the agent that runs: HTTP over a socket in the folder of its data, which only its user may open.

import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer, request, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { z } from "zod";
import type { ReportedApp } from "../../protocol/records/apps/app-spec.ts";
import { systemTime } from "../agent/index.ts";
import { BadOptions } from "../options.ts";

export const socketPath = (data: string): string => join(data, "agent.sock");
/** A longer path is cut off by the system. */
const MAX_PATH_BYTES = 107;
const MAX_LINES = 1_000;
const MAX_FOLLOWERS = 8;
const WITHIN_MS = 5_000;
/** An app may take half an hour to be healthy; whoever waits no longer than this finds it in `apps`. */
export const RESTART_WITHIN_MS = 120_000;

export const AgentStatus = z.object({
  version: z.string(),
  deviceId: z.string(),
  gateway: z.string(),
  state: z.string(),
  connectedSince: z.string().nullable(),
  lastHeartbeat: z.string().nullable(),
  /** Results that the gateway has not confirmed. */
  unconfirmed: z.number(),
  clockOffsetMs: z.number(),
  host: z.string(),
  apps: z.array(z.object({ appId: z.string(), revision: z.number(), state: z.string(), health: z.string(), ports: z.record(z.string(), z.number()) })),
});
export type AgentStatus = z.infer<typeof AgentStatus>;

export interface Answers {
  status(): Omit<AgentStatus, "apps"> & { readonly apps: readonly ReportedApp[] };
  tail(appId: string, lines: number): Promise<readonly string[]>;
  follow(appId: string, signal: AbortSignal): AsyncIterable<string>;
  restart(appId: string): Promise<ReportedApp>;
}

const refusedWith = (code: number) => (error: unknown) => ({ code, body: { error: error instanceof Error ? error.message : String(error) } });

const answerTo = async (url: URL, { status, tail }: Answers): Promise<{ readonly code: number; readonly body: unknown }> => {
  if (url.pathname === "/healthz") {
    const { state } = status();
    return { code: state === "ready" || state === "polling" ? 200 : 503, body: { state } };
  }
  if (url.pathname === "/status") return { code: 200, body: status() };
  const appId = /^\/apps\/([\w-]+)\/logs$/.exec(url.pathname)?.[1];
  if (appId === undefined) return { code: 404, body: { error: "there is no such path" } };
  const lines = Math.min(MAX_LINES, Number(url.searchParams.get("lines")) || MAX_LINES);
  return tail(appId, lines).then((found) => ({ code: 200, body: { lines: found } }), refusedWith(404));
};

/** The only request that changes anything. */
const restartOf = async (appId: string, { restart }: Answers): Promise<{ readonly code: number; readonly body: unknown }> =>
  restart(appId).then(({ state, health }) => ({ code: 200, body: { state, health } }), refusedWith(409));

/** Writes what an app logs from now on, line by line, for as long as somebody reads it. */
const createFollowing = ({ follow }: Pick<Answers, "follow">) => {
  let followers = 0;
  return async (appId: string, outgoing: ServerResponse): Promise<void> => {
    if (followers >= MAX_FOLLOWERS) return void outgoing.writeHead(429, { connection: "close" }).end();
    followers += 1;
    const gone = new AbortController();
    outgoing.once("close", () => gone.abort());
    try {
      outgoing.writeHead(200, { "content-type": "text/plain; charset=utf-8", connection: "close" });
      outgoing.flushHeaders();
      for await (const line of follow(appId, gone.signal)) if (!outgoing.write(`${line}\n`)) await once(outgoing, "drain", { signal: gone.signal });
    } catch (error) {
      if (!gone.signal.aborted) outgoing.write(`${error instanceof Error ? error.message : String(error)}\n`);
    } finally {
      followers -= 1;
      outgoing.end();
    }
  };
};

/** Serves the socket until it is closed. One process at a time has the data, so a socket that is there already is a dead one's. */
export const serveStatus = (data: string, answers: Answers, say: (text: string) => void): Server | null => {
  const path = socketPath(data);
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) {
    say(`the path ${path} is too long for a socket; mooring-agent status will not answer`);
    return null;
  }
  rmSync(path, { force: true });
  const follow = createFollowing(answers);
  const server = createServer((incoming, outgoing) => {
    const respond = ({ code, body }: { readonly code: number; readonly body: unknown }): void =>
      void outgoing.writeHead(code, { "content-type": "application/json", connection: "close" }).end(JSON.stringify(body));
    const restarted = incoming.method === "POST" ? /^\/apps\/([\w-]+)\/restart$/.exec(incoming.url ?? "")?.[1] : undefined;
    if (restarted !== undefined) return void restartOf(restarted, answers).then(respond);
    if (incoming.method !== "GET" || !URL.canParse(incoming.url ?? "", "http://agent")) return respond({ code: 400, body: { error: "only GET" } });
    const followed = /^\/apps\/([\w-]+)\/follow$/.exec(incoming.url ?? "")?.[1];
    if (followed !== undefined) return void follow(followed, outgoing);
    void answerTo(new URL(incoming.url ?? "", "http://agent"), answers).then(respond, () => respond({ code: 500, body: { error: "failed" } }));
  });
  server.on("error", (error) => say(`mooring-agent status will not answer: ${error.message}`));
  const former = process.umask(0o077);
  server.listen(path);
  process.umask(former);
  return server;
};

/** Null: no agent runs with this data. */
export const askAgent = (
  data: string,
  path: string,
  { method = "GET", withinMs = WITHIN_MS }: { readonly method?: "GET" | "POST"; readonly withinMs?: number } = {},
): Promise<{ readonly code: number; readonly body: unknown } | null> =>
  new Promise((resolve, reject) => {
    const asked = request({ socketPath: socketPath(data), path, method });
    const cancel = systemTime.after(withinMs, () => asked.destroy(new Error("the agent does not answer")));
    asked.on("error", (error: NodeJS.ErrnoException) => {
      cancel();
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(null);
      else if (error.code === "EACCES") reject(new BadOptions(`the agent runs as another user (${socketPath(data)}); try sudo`));
      else reject(error);
    });
    asked.on("response", async (response) => {
      try {
        const text = Buffer.concat(await response.toArray()).toString();
        resolve({ code: response.statusCode ?? 0, body: JSON.parse(text) });
      } catch (error) {
        reject(error);
      } finally {
        cancel();
      }
    });
    asked.end();
  });

/** Prints what the app logs from now on. Resolves when the agent or the app ends. */
export const followApp = (data: string, appId: string, print: (text: string) => void): Promise<void> =>
  new Promise((resolve, reject) => {
    const asked = request({ socketPath: socketPath(data), path: `/apps/${encodeURIComponent(appId)}/follow` });
    asked.on("error", reject);
    asked.on("response", (response) => {
      response.setEncoding("utf8").on("data", print).once("end", resolve).once("error", reject);
    });
    asked.end();
  });
