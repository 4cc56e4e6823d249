// The commands of `mooring-agent`.
import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { z } from "zod";
import { AGENT_VERSION, CallRefused, enrollDevice, pairByApproval, pause, type ShownCode, thisMachine, systemTime as time } from "../agent/index.ts";
import { runDevice } from "../device.ts";
import { BadOptions } from "../options.ts";
import { diagnose, findingLines } from "./doctor.ts";
import { identityPath, machineFingerprint, readIdentity, writeIdentity } from "./identity-file.ts";
import { type Invocation, SETTING_NAMES } from "./settings.ts";
import { AgentStatus, askAgent, followApp, RESTART_WITHIN_MS, socketPath } from "./status-socket.ts";
import { unpair } from "./unpair.ts";

interface Command {
  readonly usage: string;
  readonly help: string;
  /** Resolves to the exit code. */
  run(given: Invocation): Promise<number>;
}

const ONLINE_WITHIN_MS = 60_000;
const LOOK_MS = 250;

const gatewayOf = ({ resolved: { settings, file } }: Invocation): string => {
  if (settings.url === undefined) throw new BadOptions(`no gateway is set; give --url, or write url into ${file}`);
  return settings.url.replace(/\/+$/, "");
};

/** What the person at the machine can do. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  ["ENROLLMENT_TOKEN_INVALID", "the enrollment token is wrong, expired or revoked, or belongs to another gateway; create a new one in the console, under Pair"],
  ["ENROLLMENT_TOKEN_EXHAUSTED", "the enrollment token has paired as many machines as it may; create a new one in the console, under Pair"],
  [
    "DEVICE_ALREADY_PAIRED",
    "this machine is a device already, whose identity is not here; open the device's repair window in the console, or use a token that also pairs machines that are devices",
  ],
  ["PLAN_LIMIT_EXCEEDED", "the plan of the tenant has no room for another device"],
  ["TENANT_SUSPENDED", "the tenant is suspended"],
  ["PAIRING_REJECTED", "somebody rejected this machine"],
]);
const advised = (error: unknown): never => {
  const advice = error instanceof CallRefused ? ADVICE.get(error.code) : undefined;
  throw advice === undefined ? error : new Error(advice, { cause: error });
};

const pair = async (given: Invocation): Promise<number> => {
  const { resolved, flags, print, uid, env } = given;
  const { data, name = hostname() } = resolved.settings;
  const path = identityPath(data);
  const url = gatewayOf(given);
  const former = readIdentity(path, uid);
  if (former !== null) {
    const at = former.infrastructure_secrets["API_URL"]?.replace(/\/+$/, "");
    if (at !== undefined && at !== url)
      throw new BadOptions(`this machine is paired with ${at}; stop its agent and remove ${path} first to pair it with ${url}`);
    print(`this machine is paired already, as ${former.device_id}`);
    return 0;
  }
  const device = { url, name, fingerprint: machineFingerprint(data), platform: process.platform, onRetry: (why: string) => print(`waiting: ${why}`) };
  // The environment keeps the token out of the list of processes.
  const token = flags["token"] ?? env["MOORING_AGENT_TOKEN"];
  const onCode = ({ code, comparison, portalUrl }: ShownCode): void => {
    print(`Open ${portalUrl}`);
    print(`and approve the code ${code} if the page shows ${comparison}. Waiting…`);
  };
  const paired =
    typeof token === "string" && token !== "" ? enrollDevice({ ...device, onCode, enrollmentToken: token }) : pairByApproval({ ...device, time, onCode });
  const identity = await paired.catch(advised);
  writeIdentity(path, identity);
  print(`paired as ${identity.device_id}`);
  return 0;
};

const run = async ({ resolved: { settings }, uid }: Invocation): Promise<number> => {
  const path = identityPath(settings.data);
  const identity = readIdentity(path, uid);
  if (identity === null) throw new BadOptions(`this machine is not paired (${path}); run: mooring-agent pair`);
  const { url, data, host, signature, channel, "socks-port": port, "log-format": format, "update-key": key } = settings;
  const words = {
    identity: path,
    data,
    host,
    signature,
    channel,
    "socks-port": String(port),
    "log-format": format,
    url: url?.replace(/\/+$/, ""),
    "update-key": key,
  };
  const args = Object.entries(words).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));
  return runDevice(args);
};

const statusOf = async ({ resolved: { settings } }: Invocation): Promise<AgentStatus> => {
  const answer = await askAgent(settings.data, "/status");
  if (answer === null)
    throw new Error(
      `no agent runs with ${settings.data} (nobody answers at ${socketPath(settings.data)}); start it: systemctl start mooring-agent, or mooring-agent run`,
    );
  return AgentStatus.parse(answer.body);
};
const appLine = ({ appId, revision, state, health, ports }: AgentStatus["apps"][number]): string =>
  `  ${appId}  ${state}${health === "unknown" ? "" : `, ${health}`}, revision ${revision}${Object.entries(ports)
    .map(([name, port]) => `, ${name} ${port}`)
    .join("")}`;

const status = async (given: Invocation): Promise<number> => {
  const untilMs = time.elapsedMs() + (given.flags["wait"] === true ? ONLINE_WITHIN_MS : 0);
  const isConnected = ({ state }: AgentStatus): boolean => state === "ready" || state === "polling";
  const look = async (): Promise<AgentStatus> => {
    for (;;) {
      const late = time.elapsedMs() >= untilMs;
      const found = await statusOf(given).catch((error: unknown) => (late ? Promise.reject(error) : null));
      if (found !== null && (late || isConnected(found))) return found;
      await pause(time, LOOK_MS);
    }
  };
  const found = await look();
  if (given.flags["json"] === true) given.print(JSON.stringify(found));
  else {
    const { deviceId, gateway, state, connectedSince, lastHeartbeat, unconfirmed, version, host, apps } = found;
    given.print(
      `${deviceId} at ${gateway}: ${isConnected(found) ? `connected${connectedSince === null ? "" : ` since ${connectedSince}`}` : `not connected (${state})`}`,
    );
    given.print(`version ${version}, host ${host}, last heartbeat ${lastHeartbeat ?? "none yet"}, ${unconfirmed} results to confirm`);
    for (const app of apps) given.print(appLine(app));
  }
  return isConnected(found) ? 0 : 1;
};

const apps = async (given: Invocation): Promise<number> => {
  const found = await statusOf(given);
  if (given.flags["json"] === true) given.print(JSON.stringify(found.apps));
  else for (const app of found.apps) given.print(appLine(app).trim());
  return 0;
};

const namedApp = ({ words: [appId] }: Invocation): string => {
  if (appId === undefined) throw new BadOptions("name the app; see mooring-agent apps");
  return appId;
};
/** Asks the agent that runs about an app. Rejects with its sentence, or with `otherwise` if no agent runs. */
const askAboutApp = async (
  { resolved: { settings } }: Invocation,
  path: string,
  { otherwise, ...how }: NonNullable<Parameters<typeof askAgent>[2]> & { readonly otherwise: string },
): Promise<unknown> => {
  const answer = await askAgent(settings.data, path, how);
  if (answer === null) throw new Error(`no agent runs with this data; ${otherwise}`);
  if (answer.code !== 200) throw new Error(z.object({ error: z.string() }).parse(answer.body).error);
  return answer.body;
};

const logs = async (given: Invocation): Promise<number> => {
  const appId = namedApp(given);
  const path = `/apps/${encodeURIComponent(appId)}/logs?lines=${Number(given.flags["lines"]) || 100}`;
  const body = await askAboutApp(given, path, { otherwise: "its logs are below the folder of the app" });
  for (const line of z.object({ lines: z.array(z.string()) }).parse(body).lines) given.print(line);
  if (given.flags["follow"] === true) await followApp(given.resolved.settings.data, appId, (text) => given.print(text.replace(/\n$/, "")));
  return 0;
};

const restart = async (given: Invocation): Promise<number> => {
  const appId = namedApp(given);
  const body = await askAboutApp(given, `/apps/${encodeURIComponent(appId)}/restart`, {
    method: "POST",
    withinMs: RESTART_WITHIN_MS,
    otherwise: "start it: systemctl start mooring-agent, or mooring-agent run",
  });
  const { state, health } = z.object({ state: z.string(), health: z.string() }).parse(body);
  given.print(`${appId}  ${state}, ${health}`);
  return 0;
};

const doctor = async ({ resolved, uid, env, flags, print }: Invocation): Promise<number> => {
  const findings = await diagnose(resolved.settings, { uid, env });
  print(flags["json"] === true ? JSON.stringify(findings) : findingLines(findings).trimEnd());
  return findings.some(({ verdict }) => verdict === "wrong") ? 1 : 0;
};

/** What somebody needs who helps from afar. Nothing of it is secret: the identity gives its ids only, and apps' lines are masked by their host. */
const supportBundle = async ({ resolved, uid, env, flags, print }: Invocation): Promise<number> => {
  const { data } = resolved.settings;
  const answer = await askAgent(data, "/status").catch((error: unknown) => ({ body: { error: error instanceof Error ? error.message : String(error) } }));
  const running = AgentStatus.safeParse(answer?.body).data?.apps ?? [];
  const logsOf = async ({ appId }: { readonly appId: string }) =>
    [appId, (await askAgent(data, `/apps/${encodeURIComponent(appId)}/logs`))?.body ?? null] as const;
  const bundle = {
    madeAt: new Date(time.wallMs()).toISOString(),
    version: AGENT_VERSION,
    node: process.versions.node,
    machine: thisMachine.inventory(),
    settings: resolved.settings,
    from: resolved.from,
    doctor: await diagnose(resolved.settings, { uid, env }),
    status: answer?.body ?? null,
    logs: Object.fromEntries(await Promise.all(running.map(logsOf))),
  };
  const text = `${JSON.stringify(bundle, null, 2)}\n`;
  const file = flags["out"];
  if (typeof file !== "string") print(text.trimEnd());
  else {
    writeFileSync(file, text, { mode: 0o600 });
    print(`wrote ${file}; it holds no secret, but names of this machine and its networks`);
  }
  return 0;
};

const config = async ({ resolved: { settings, from, file }, flags, print }: Invocation): Promise<number> => {
  if (flags["json"] === true) print(JSON.stringify({ file, settings }));
  else for (const name of SETTING_NAMES) print(`${name.padEnd(12)} ${String(settings[name] ?? "-").padEnd(40)} ${from[name]}`);
  return 0;
};

export const agentCommands = {
  pair: { usage: "[--token T]", help: "pairs this machine, with an enrollment token (or MOORING_AGENT_TOKEN), else with a person's approval", run: pair },
  run: { usage: "", help: "runs in the foreground, as the service does", run },
  status: { usage: "[--wait]", help: "tells of the agent that runs; --wait: until it is connected, at most a minute", run: status },
  apps: { usage: "", help: "lists the apps, also while the gateway is away", run: apps },
  logs: { usage: "APP [-f] [--lines N]", help: "prints the last lines of an app; -f: and what it logs from now on", run: logs },
  restart: { usage: "APP", help: "starts an app anew, also while the gateway is away", run: restart },
  unpair: { usage: "--yes", help: "tells the gateway that this machine leaves, and forgets its identity; apps' data stay", run: unpair },
  doctor: { usage: "", help: "looks for what is wrong, and says what to do; exit code 1 if something is", run: doctor },
  "support-bundle": { usage: "[--out FILE]", help: "gathers findings, state, settings and logs for somebody who helps; no secrets", run: supportBundle },
  config: { usage: "", help: "prints what holds, and from where", run: config },
} satisfies Record<string, Command>;
