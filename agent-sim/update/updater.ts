// Updates the agent to a signed release: fetches, checks and unpacks it, and asks for a restart, in which the launcher tries the new version.
import { randomUUID } from "node:crypto";
import { arch, platform } from "node:os";
import { z } from "zod";
import { type SignedRelease, SignedText } from "../../protocol/records/devices/agent-release.ts";
import {
  AGENT_VERSION,
  type Agent,
  between,
  type CommandHandlers,
  callWithRetry,
  createHttp,
  HandlerFailure,
  type HttpAnswer,
  hasSucceeded,
  NoAnswer,
  noop,
  type Time,
} from "../agent/index.ts";
import { HostFailure, toHostFailure } from "../host/host.ts";
import { checkPackage, checkRelease, type OfferedRelease, UpdateRefused } from "./release.ts";
import type { AgentVersions } from "./versions.ts";

const EVERY_MS = 6 * 3_600_000;
const DOWNLOAD_MS = 900_000;
/** An event that the gateway has not taken by then is told after the next start. */
const TELL_MS = 600_000;
/** Nobody has to hear of these unless they ordered the update. */
const ORDINARY: ReadonlySet<string> = new Set(["NO_ANSWER", "OLDER_VERSION"]);
const Latest = z.object({ data: z.object({ release: z.unknown(), signed: SignedText.optional() }) });

export interface UpdaterOptions {
  readonly versions: AgentVersions;
  readonly publicKey: string;
  readonly channel: string;
  readonly time: Time;
  readonly random: () => number;
  readonly say: (text: string) => void;
  /** Ends the agent, so that the launcher starts the version on trial. */
  readonly restart: () => void;
}

export interface Updater {
  readonly handlers: CommandHandlers;
  /** Tells of an update that failed, and begins to look for mandatory ones. */
  start(agent: Pick<Agent, "call">): void;
  stop(): void;
}

export const createUpdater = ({ versions, publicKey, channel, time, random, say, restart }: UpdaterOptions): Updater => {
  const stopped = new AbortController();
  let cancel = noop;
  let provideCall: (call: Agent["call"]) => void = noop;
  const connected = new Promise<Agent["call"]>((resolve) => {
    provideCall = resolve;
  });
  const own = { version: AGENT_VERSION, platform: platform(), arch: arch(), channel, publicKey };

  const get = async (url: string): Promise<HttpAnswer> => {
    if (url.startsWith("/")) return (await connected)("GET", url, undefined, { expects: "file", withinMs: DOWNLOAD_MS });
    const { origin, protocol, pathname, search } = new URL(url);
    if (!/^https?:$/.test(protocol)) throw new Error(`${protocol} is no way to fetch it`);
    const http = createHttp(origin, 1);
    // Size, checksum and signature tell whether it is the package.
    return http.call({ method: "GET", path: pathname + search, expects: "foreign", withinMs: DOWNLOAD_MS }).finally(http.close);
  };
  const fetchPackage = async ({ url, version }: SignedRelease): Promise<string> => {
    const failed = (why: string): never => {
      throw new UpdateRefused("DOWNLOAD_FAILED", `the package cannot be fetched: ${why}`, version);
    };
    const answer = await get(url).catch((error: unknown) => failed(error instanceof Error ? error.message : String(error)));
    return hasSucceeded(answer) && answer.text !== undefined ? answer.text : failed(`the answer is ${answer.status}`);
  };
  const install = (release: SignedRelease, text: string): void => {
    try {
      versions.install(release.version, checkPackage(text, release));
      versions.write({ trial: { version: release.version, sha256: release.sha256 } });
    } catch (error) {
      const failure = toHostFailure(error, "preparing");
      throw failure instanceof HostFailure ? new UpdateRefused(failure.reason, failure.message, release.version) : failure;
    }
  };
  const fetchLatest = async (): Promise<OfferedRelease> => {
    const call = await connected;
    const query = new URLSearchParams({ platform: own.platform, arch: own.arch, channel });
    const answer = await call("GET", `/v1/agent/updates/latest?${query}`).catch((error: unknown) => {
      throw error instanceof NoAnswer ? new UpdateRefused("NO_ANSWER", error.message, null) : error;
    });
    const latest = Latest.safeParse(answer.body);
    if (!hasSucceeded(answer) || !latest.success) throw new UpdateRefused("NO_ANSWER", `the gateway answered ${answer.status}`, null);
    return latest.data.data;
  };
  /** Resolves to false if there is nothing to do; else the agent restarts. */
  const update = async (isOrdered: boolean): Promise<boolean> => {
    const offered = await fetchLatest();
    const release = offered.release === null ? null : checkRelease(offered, own);
    if (release === null || !(isOrdered || release.mandatory)) return false;
    const { failed } = versions.read();
    if (failed?.version === release.version && failed.sha256 === release.sha256)
      throw new UpdateRefused("FAILED_BEFORE", `${release.version} did not run here: ${failed.message}`, release.version);
    install(release, await fetchPackage(release));
    say(`updates from ${own.version} to ${release.version}`);
    restart();
    return true;
  };
  /** Resolves to whether the gateway has taken the event. */
  const tell = async (type: string, details: Readonly<Record<string, string | null>>): Promise<boolean> => {
    say(`${type}: ${JSON.stringify(details)}`);
    const timestamp = new Date(time.wallMs()).toISOString();
    const call = await connected;
    // The key makes one event of all attempts.
    const headers = { "idempotency-key": randomUUID() };
    const send = (): Promise<HttpAnswer> => call("POST", "/v1/agent/events", { events: [{ type, severity: "warning", timestamp, details }] }, { headers });
    const retry = { time, random, untilMs: time.elapsedMs() + TELL_MS, signal: stopped.signal };
    return callWithRetry(send, retry).then(hasSucceeded, () => false);
  };
  const tellRefusal = async (error: unknown): Promise<UpdateRefused> => {
    if (!(error instanceof UpdateRefused)) throw error;
    void tell("agent.update_refused", { version: error.version, reason: error.reason, message: error.message });
    return error;
  };
  const check = async (): Promise<void> => {
    cancel = time.after(EVERY_MS * between(random, 0.9, 1.1), () => void check());
    try {
      await update(false);
    } catch (error) {
      if (!(error instanceof UpdateRefused && ORDINARY.has(error.reason))) await tellRefusal(error);
    }
  };
  return {
    handlers: {
      "agent-update": {
        long: true,
        cancelable: false,
        // The version that starts next finds the command unfinished, and says how the update ended.
        repeatable: true,
        run: async () => {
          const refused = await update(true).then((restarts) => (restarts ? new Promise<never>(noop) : null), tellRefusal);
          if (refused !== null) throw new HandlerFailure(refused.reason, { version: own.version, offered: refused.version, message: refused.message });
          return { version: own.version };
        },
      },
    },
    start: ({ call }) => {
      provideCall(call);
      const { failed } = versions.read();
      if (failed !== null && !failed.told)
        void tell("agent.update_failed", { version: failed.version, message: failed.message }).then((isTold) => {
          if (isTold) versions.write({ failed: { ...failed, told: true } });
        });
      cancel = time.after(random() * 60_000, () => void check());
    },
    stop: () => {
      stopped.abort();
      cancel();
    },
  };
};
