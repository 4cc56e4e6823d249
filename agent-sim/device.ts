// `npm run agent`: runs the reference agent as one device, with its identity from pairing, and logs what it does.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { uptime } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { z } from "zod";
import {
  AGENT_VERSION,
  createAgent,
  createApps,
  createHandlers,
  createHttp,
  enrollDevice,
  type IssuedIdentity,
  LONGEST_WAIT_MS,
  noop,
  openFileJournal,
  openFileKeys,
  type PairedDevice,
  pairByApproval,
  pause,
  readBootId,
  type ShownCode,
  StoredIdentity,
  sayWhileWaiting,
  succeedInstance,
  systemTime as time,
  toPairedDevice,
} from "./agent/index.ts";
import { serveStatus } from "./cli/status-socket.ts";
import { lockAll } from "./device-locks.ts";
import { type DeviceHost, HOST_KINDS, openDeviceHost } from "./host/open.ts";
import { type AgentLog, createAgentLog, LOG_FORMATS } from "./log.ts";
import { BadOptions } from "./options.ts";
import { launchAgent, REACHED_GATEWAY, RESTART_CODE } from "./update/launcher.ts";
import { createUpdater, type UpdaterOptions } from "./update/updater.ts";
import { openVersions } from "./update/versions.ts";
import { watchEventLoop } from "./watchdog.ts";

export const DEVICE_HELP = `Runs the reference agent as one device.

  npm run agent -- --identity FILE | --pair NAME [--enroll TOKEN] [--identity FILE] [--host process] [--data DIR] [--seconds N] [--signature 2] [--url URL]

  --identity FILE   unchanged response of POST /v1/pairing/activate or auto-activate (with --pair NAME: NAME.json here)
  --pair NAME       without FILE: request a pairing code under this name, wait until a person approves it, and write FILE
  --enroll TOKEN    with --pair: an enrollment token approves it, and nobody has to
  --host KIND       what runs the device's apps: simulated (nothing runs, the default), process (the small programs that come with the agent,
                    as processes of this machine) or compose (containers, by docker compose 2)
  --data DIR        the folder for the apps, their data and their logs (default: FILE.data)
  --seconds N       connect at once and stop after this many seconds (default: run until Ctrl-C)
  --signature 2     sign requests with v2 (default: 1)
  --url URL         the gateway (default: API_URL of the identity, else http://127.0.0.1:8080)
  --update-key KEY  take new versions of the agent that are signed with this key (npm run agent:release), by the command agent-update,
                    or by itself if they are mandatory; a new version that does not reach the gateway is given up
  --channel NAME    the channel of these versions (default: stable)
  --trial N         the seconds that a new version has to reach the gateway (default: 120)
  --socks-port N    where programs of this machine find the SOCKS proxy to mesh routes, on 127.0.0.1 (default: 1080; 0: a free port)
  --log-format F    text (the default) or json

The apps of a process host outlive the agent; the next start adopts them.
The journal beside the identity (FILE.journal) keeps a command from running twice, even after a restart. One process at a time can use it, and the folder of the data.
`;

const DEFAULT_URL = "http://127.0.0.1:8080";
const POLL_SOCKETS = 2;
/** A whole site starts together after a power cut, not when one agent is restarted. */
const MACHINE_STARTS_WITHIN_S = 600;
const RESTART_WINDOW_MS = 1_000;
/** Whatever its children do. The exit of this process kills those that are left. */
const STOPPED_WITHIN_MS = 9_000;

/** Runs until the device has stopped, and resolves to the exit code. */
export const runDevice = async (args: readonly string[]): Promise<number> => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      identity: { type: "string" },
      seconds: { type: "string" },
      url: { type: "string" },
      pair: { type: "string" },
      enroll: { type: "string" },
      signature: { type: "string", default: "1" },
      host: { type: "string", default: "simulated" },
      data: { type: "string" },
      "update-key": { type: "string" },
      channel: { type: "string", default: "stable" },
      trial: { type: "string", default: "120" },
      "socks-port": { type: "string", default: "1080" },
      "log-format": { type: "string", default: "text" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const { pair, url, seconds, identity: path = pair === undefined ? undefined : fileOf(pair) } = values;
  if (values.help || path === undefined) {
    process.stdout.write(DEVICE_HELP);
    return values.help ? 0 : 2;
  }
  const kind = HOST_KINDS.find((each) => each === values.host);
  if (kind === undefined) throw new BadOptions(`--host: one of ${HOST_KINDS.join(", ")}`);
  const format = LOG_FORMATS.find((each) => each === values["log-format"]);
  if (format === undefined) throw new BadOptions(`--log-format: one of ${LOG_FORMATS.join(", ")}`);
  const say = createAgentLog(format, time);
  const socksPort = Number(values["socks-port"]);
  if (!Number.isInteger(socksPort) || socksPort < 0 || socksPort > 65_535) throw new BadOptions("--socks-port: a port, or 0");
  const folder = resolve(values.data ?? `${path}.data`);
  const { "update-key": publicKey, channel } = values;
  const versions = publicKey === undefined ? null : openVersions(join(folder, "agent"));
  // A process that was started by the launcher has a channel to it.
  if (versions !== null && process.send === undefined)
    return launchAgent({ versions, installed: process.argv[1] ?? "", args, trialMs: Number(values.trial) * 1_000, time, say });
  const pairs = pair !== undefined && !existsSync(path);
  if (pairs) await pairInto(path, { name: pair, url: url ?? DEFAULT_URL, enrollmentToken: values.enroll, say });
  const identity = StoredIdentity.parse(JSON.parse(await readFile(path, "utf8")));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const unlock = await lockAll([path, join(realpathSync(folder), "agent")]);
  try {
    return await runAgent(toPairedDevice(identity), {
      identity,
      host: openDeviceHost({ kind, folder, time, seed: 1, deviceId: toPairedDevice(identity).deviceId, socksPort, say }),
      updates: versions === null || publicKey === undefined ? null : { versions, publicKey, channel },
      path,
      folder,
      url,
      say,
      signatureVersion: values.signature === "2" ? 2 : 1,
      seconds,
      atOnce: pairs || seconds !== undefined,
    });
  } finally {
    unlock();
  }
};

/** In the current folder, whatever the name contains. */
const fileOf = (name: string): string => `${name.replaceAll(/[^\w.-]+/g, "-").replace(/^\.+/, "")}.json`;

const pairInto = async (
  path: string,
  { name, url, enrollmentToken, say }: { readonly name: string; readonly url: string; readonly enrollmentToken: string | undefined; readonly say: AgentLog },
): Promise<void> => {
  const device = { url, name, fingerprint: `sim-${randomUUID()}`, platform: process.platform };
  const requestOf = ({ code, comparison, portalUrl }: ShownCode): string => `approve ${code} at ${portalUrl} if it shows ${comparison}`;
  const identity = await sayWhileWaiting(
    {
      on: enrollmentToken === undefined ? "the gateway and a person's approval" : "the gateway",
      at: url,
      work: (why) => {
        const onCode = (shown: ShownCode): void => {
          say(requestOf(shown));
          why(requestOf(shown));
        };
        if (enrollmentToken !== undefined) return enrollDevice({ ...device, enrollmentToken, onCode, onRetry: why });
        return pairByApproval({ ...device, time, onCode, onRetry: why });
      },
    },
    time,
    (line) => say(line),
  );
  await writeFile(path, JSON.stringify(identity), { mode: 0o600, flag: "wx" });
  say(`paired as ${identity.device_id}`);
};

interface Start {
  readonly identity: z.infer<typeof IssuedIdentity>;
  /** Path of the identity. Journal and keys are stored beside it. */
  readonly path: string;
  /** The agent's data. */
  readonly folder: string;
  readonly url: string | undefined;
  readonly say: AgentLog;
  readonly host: DeviceHost;
  readonly updates: Pick<UpdaterOptions, "versions" | "publicKey" | "channel"> | null;
  readonly signatureVersion: 1 | 2;
  readonly seconds: string | undefined;
  /** Somebody watches, so it does not wait for its turn among machines that start together. */
  readonly atOnce: boolean;
}

const runAgent = async (
  member: PairedDevice,
  { identity, path, folder, url: given, say, host, updates, signatureVersion, seconds, atOnce }: Start,
): Promise<number> => {
  const { connect, infrastructure_secrets: secrets } = identity;
  const url = given ?? secrets["API_URL"] ?? DEFAULT_URL;
  const http = createHttp(url, POLL_SOCKETS);
  const ending = new AbortController();
  // An agent without its launcher makes way for the next one.
  for (const event of ["SIGINT", "SIGTERM", "disconnect"]) process.once(event, () => ending.abort());
  let code = 0;
  const restart = (): void => {
    code = RESTART_CODE;
    ending.abort();
  };
  const updater = updates === null ? null : createUpdater({ ...updates, time, random: Math.random, say, restart });
  const firstWindowMs = atOnce ? 0 : Math.min(uptime() < MACHINE_STARTS_WITHIN_S ? LONGEST_WAIT_MS : RESTART_WINDOW_MS, connect.coldStartMs ?? 0);
  const now = (): string => new Date(time.wallMs()).toISOString();
  let [connectedSince, lastHeartbeat]: (string | null)[] = [null, null];
  const bootId = readBootId();
  const instances = succeedInstance(`${path}.instance`, bootId);
  const agent = createAgent({
    instanceId: instances.instanceId,
    formerInstanceId: instances.formerInstanceId,
    url,
    http,
    time,
    random: Math.random,
    bootId,
    deviceId: member.deviceId,
    identity: member,
    // `--url` also applies to the socket.
    socketUrl: given === undefined ? connect.url : undefined,
    keys: openFileKeys(`${path}.keys`, member.secret),
    fingerprint: member.fingerprint,
    heartbeatSec: null,
    mode: "socket",
    signatureVersion,
    firstWindowMs,
    journal: openFileJournal(`${path}.journal`, time.wallMs),
    handlers: { ...createHandlers({ apps: createApps({ time, random: Math.random }), time }), ...host.handlers, ...updater?.handlers },
    on: {
      ready: () => {
        connectedSince = now();
        say(`connected to ${url} as ${member.deviceId}, version ${AGENT_VERSION}`);
        process.send?.(REACHED_GATEWAY);
      },
      away: () => {
        connectedSince = null;
      },
      heartbeat: () => {
        lastHeartbeat = now();
      },
      polled: instances.polled,
      executed: (commandId, type) => say(`runs ${type} ${commandId}`),
      settled: ({ commandId, status, result }) => say(`acknowledged ${commandId}: ${status ?? "?"} (${result})`),
      alarm: (text) => say(text, "warn"),
    },
  });
  const status = () => ({
    version: AGENT_VERSION,
    deviceId: member.deviceId,
    gateway: url,
    state: agent.state,
    connectedSince: connectedSince ?? null,
    lastHeartbeat: lastHeartbeat ?? null,
    unconfirmed: agent.unconfirmed,
    clockOffsetMs: agent.clockOffsetMs,
    host: host.kind,
    apps: host.apps.report(),
  });
  const answers = serveStatus(folder, { status, ...host.apps }, say);
  const stopWatching = watchEventLoop(time);
  agent.start();
  host.start(agent, firstWindowMs);
  updater?.start(agent);
  const cancel = seconds === undefined ? noop : time.after(Number(seconds) * 1_000, () => ending.abort());
  if (!ending.signal.aborted) await once(ending.signal, "abort");
  cancel();
  const stopped = async (): Promise<void> => {
    updater?.stop();
    answers?.close();
    await agent.stop();
    await host.close();
    http.close();
    await stopWatching();
  };
  await Promise.race([stopped(), pause(time, STOPPED_WITHIN_MS)]);
  say("stopped");
  if (process.connected) process.disconnect();
  return code;
};
