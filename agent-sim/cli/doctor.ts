// Looks for what keeps this machine from being a device that works, and says of each finding what to do.
import { lookup } from "node:dns/promises";
import { accessSync, constants, statfsSync } from "node:fs";
import { isIP } from "node:net";
import { connect as connectTls, type DetailedPeerCertificate } from "node:tls";
import { z } from "zod";
import {
  canUseProxies,
  createHttp,
  errorOf,
  type Http,
  hasSucceeded,
  type IssuedIdentity,
  openFileKeys,
  probeUpgrade,
  proxyVariable,
  signer,
  socketUrl,
  systemTime as time,
} from "../agent/index.ts";
import { runProgram } from "../children/index.ts";
import { identityPath, readIdentity } from "./identity-file.ts";
import type { MachineSettings } from "./settings.ts";
import { askAgent, socketPath } from "./status-socket.ts";

export interface Finding {
  readonly check: string;
  readonly verdict: "ok" | "warning" | "wrong";
  /** What was seen. */
  readonly seen: string;
  /** What to do; null if there is nothing to do. */
  readonly advice: string | null;
}

const WITHIN_MS = 10_000;
const LEAST_FREE_BYTES = 268_435_456;
const LEAST_DAYS = 14;
const DAY_MS = 86_400_000;
/** The gateway accepts no signature whose time differs more. The agent corrects it by itself, but apps do not. */
const MOST_SKEW_MS = 60_000;

type Said = Omit<Finding, "check">;
const ok = (seen: string): Said => ({ verdict: "ok", seen, advice: null });
const warning = (seen: string, advice: string): Said => ({ verdict: "warning", seen, advice });
const wrong = (seen: string, advice: string): Said => ({ verdict: "wrong", seen, advice });
const messageOf = (error: unknown): string => (error instanceof Error ? error.message || String((error as NodeJS.ErrnoException).code) : String(error));

interface Looked {
  readonly settings: MachineSettings;
  readonly url: URL | null;
  readonly identity: z.infer<typeof IssuedIdentity> | null;
  readonly http: Http | null;
  readonly env: NodeJS.ProcessEnv;
}

const checkName = async ({ url }: Looked): Promise<Said> => {
  if (url === null) return wrong("no gateway is set", "set url in the configuration file, or give --url");
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0) return ok(`${host} is an address`);
  const found = await lookup(host, { all: true });
  return ok(`${host} is ${found.map(({ address }) => address).join(", ")}`);
};

const certificateOf = (url: URL): Promise<DetailedPeerCertificate> =>
  new Promise((resolve, reject) => {
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const socket = connectTls({ host, port: Number(url.port) || 443, ...(isIP(host) === 0 ? { servername: host } : {}), timeout: WITHIN_MS });
    socket.once("secureConnect", () => {
      resolve(socket.getPeerCertificate(true));
      socket.destroy();
    });
    socket.once("timeout", () => socket.destroy(new Error("no answer")));
    socket.once("error", reject);
  });

const checkTls = async ({ url, settings, env }: Looked): Promise<Said> => {
  if (url?.protocol !== "https:")
    return url === null ? wrong("no gateway is set", "set url") : warning("the gateway is reached without TLS", "use https beyond this machine");
  if (proxyVariable(env) !== null && canUseProxies) return ok("the next check proves the certificate, through the proxy");
  const { issuer, valid_to: until } = await certificateOf(url);
  const days = Math.floor((Date.parse(until) - time.wallMs()) / DAY_MS);
  const seen = `certificate by ${String(issuer.O ?? issuer.CN ?? "an unnamed issuer")}, until ${new Date(until).toISOString().slice(0, 10)}${settings.ca === undefined ? "" : `, trusted by ${settings.ca}`}`;
  return days < LEAST_DAYS ? warning(seen, "renew the gateway's certificate") : ok(seen);
};

const checkGateway = async ({ http }: Looked): Promise<Said> => {
  if (http === null) return wrong("no gateway is set", "set url");
  const answer = await http.call({ method: "GET", path: "/v1/health", withinMs: WITHIN_MS });
  return hasSucceeded(answer) ? ok("the gateway answers") : warning(`the gateway answers ${answer.status}`, "its operator looks at /v1/health/full");
};

const checkClock = async ({ http }: Looked): Promise<Said> => {
  const answer = await http?.call({ method: "GET", path: "/v1/health", withinMs: WITHIN_MS });
  const named = z.object({ meta: z.object({ timestamp: z.string() }) }).safeParse(answer?.body).data?.meta.timestamp;
  const theirs = Date.parse(named ?? String(answer?.headers.date));
  if (Number.isNaN(theirs)) return warning("the gateway does not tell its time", "compare the clocks by hand");
  const skewMs = time.wallMs() - theirs;
  const seen = `this machine's clock is ${Math.abs(Math.round(skewMs / 1_000))} s ${skewMs > 0 ? "ahead of" : "behind"} the gateway's`;
  return Math.abs(skewMs) > MOST_SKEW_MS ? wrong(seen, "set up time synchronization (systemd-timesyncd or chrony)") : ok(seen);
};

const checkProxy = ({ env }: Looked): Said => {
  const name = proxyVariable(env);
  if (name === null) return ok("no proxy is set");
  if (!canUseProxies)
    return wrong(
      `${name} is set, and Node ${process.versions.node} cannot use it`,
      "install the agent with the Node that it brings along, or Node 22.21 or newer",
    );
  return ok(`${name} is set, and used but for NO_PROXY (${env["NO_PROXY"] ?? env["no_proxy"] ?? "not set"})`);
};

const checkIdentity = ({ identity, settings }: Looked): Said =>
  identity === null ? wrong(`this machine is not paired (${identityPath(settings.data)})`, "run: mooring-agent pair") : ok(`paired as ${identity.device_id}`);

const checkSignature = async ({ identity, http, settings }: Looked): Promise<Said> => {
  if (identity === null || http === null) return wrong("there is no identity to sign with", "run: mooring-agent pair");
  const keys = openFileKeys(`${identityPath(settings.data)}.keys`, identity.shared_secret);
  const sign = signer(settings.signature === "2" ? 2 : 1);
  const path = "/v1/agent/me";
  const who = { agentId: identity.agent_id, tenantId: identity.tenant_id, secret: keys.secret };
  const answer = await http.call({
    method: "GET",
    path,
    headers: sign(who, { method: "GET", target: path, body: "" }, new Date(time.wallMs())),
    withinMs: WITHIN_MS,
  });
  if (hasSucceeded(answer)) return ok("the gateway accepts this device's signature");
  const { code, reason } = errorOf(answer);
  if (reason === "timestamp_outside_window")
    return wrong("the gateway refuses the time of the signature", "set this machine's clock; until then the agent corrects it by itself");
  return wrong(
    `the gateway refuses this device: ${answer.status} ${code} ${reason}`.trim(),
    "see the device in the console; pair the machine again if it was removed",
  );
};

const checkUpgrade = async ({ identity, url }: Looked): Promise<Said> => {
  if (url === null) return wrong("no gateway is set", "set url");
  try {
    await probeUpgrade(identity?.connect.url ?? socketUrl(url.href), WITHIN_MS);
    return ok("upgrades to a WebSocket reach the gateway");
  } catch (error) {
    return warning(messageOf(error), "let the proxy pass WebSocket upgrades (the headers Upgrade and Connection); until then the agent polls");
  }
};

const versionBy = async (env: NodeJS.ProcessEnv, command: string, words: readonly string[]): Promise<string | null> => {
  const { outcome, code, output } = await runProgram({ command, words, env, time, withinMs: WITHIN_MS });
  return outcome === "ended" && code === 0 ? (output.trim().split("\n")[0] ?? "") : null;
};

const checkDocker = async ({ settings, env }: Looked): Promise<Said> => {
  const isNeeded = settings.host === "compose";
  const engine = await versionBy(env, "docker", ["version", "--format", "{{.Server.Version}}"]);
  if (engine === null)
    return isNeeded
      ? wrong("no Docker Engine answers this user", "install Docker, start it, and add the agent's user to the group docker")
      : ok("no Docker Engine answers; this host needs none");
  const compose = await versionBy(env, "docker", ["compose", "version", "--short"]);
  if (compose === null || !/^v?([2-9]|\d\d)\./.test(compose))
    return isNeeded ? wrong(`Docker Engine ${engine}, and no Compose 2`, "install Docker's Compose plugin") : ok(`Docker Engine ${engine}, no Compose 2`);
  return ok(`Docker Engine ${engine}, Compose ${compose}`);
};

const checkRestic = async ({ env }: Looked): Promise<Said> => {
  const version = await versionBy(env, "restic", ["version"]);
  return version === null
    ? warning("there is no restic, so the device takes no backups", "install restic 0.14 or newer (Debian: apt-get install restic)")
    : ok(version);
};

const checkData = ({ settings: { data } }: Looked): Said => {
  const { bavail, bsize } = statfsSync(data);
  accessSync(data, constants.W_OK);
  const free = bavail * bsize;
  const seen = `${data} has ${Math.floor(free / 1_048_576)} MiB free`;
  return free < LEAST_FREE_BYTES ? wrong(seen, "make room: results and apps are written there") : ok(seen);
};

const checkRunning = async ({ settings: { data } }: Looked): Promise<Said> => {
  const answer = await askAgent(data, "/healthz");
  if (answer === null) return warning(`no agent runs with ${data} (${socketPath(data)})`, "start it: systemctl start mooring-agent, or mooring-agent run");
  return answer.code === 200
    ? ok("the agent runs and is connected")
    : warning("the agent runs and is not connected", "see the checks above, and mooring-agent status");
};

/** In the order in which a connection needs them. */
const CHECKS: readonly (readonly [check: string, look: (at: Looked) => Said | Promise<Said>, advice: string])[] = [
  ["name", checkName, "check the spelling of the gateway's name and this machine's DNS servers (/etc/resolv.conf)"],
  ["tls", checkTls, "use the gateway's own name, or trust its issuer: give the certificate as --ca"],
  ["gateway", checkGateway, "check that this machine may reach the gateway's port, and that no captive portal answers for it"],
  ["clock", checkClock, "reach the gateway first"],
  ["proxy", checkProxy, "unset the proxy"],
  ["websocket", checkUpgrade, "let upgrades pass"],
  ["identity", checkIdentity, "see the message"],
  ["signature", checkSignature, "reach the gateway first"],
  ["docker", checkDocker, "install Docker"],
  ["restic", checkRestic, "install restic"],
  ["disk", checkData, "create the folder, and let the agent's user write into it"],
  ["agent", checkRunning, "start the agent"],
];

export const diagnose = async (
  settings: MachineSettings,
  { uid, env }: { readonly uid: number | null; readonly env: NodeJS.ProcessEnv },
): Promise<readonly Finding[]> => {
  const findings: Finding[] = [];
  let identity: Looked["identity"] = null;
  let refused: string | null = null;
  try {
    identity = readIdentity(identityPath(settings.data), uid);
  } catch (error) {
    refused = messageOf(error);
  }
  const given = settings.url ?? identity?.infrastructure_secrets["API_URL"];
  const url = given === undefined ? null : new URL(given);
  const looked: Looked = { settings, url, identity, http: url === null ? null : createHttp(url.href, 1), env };
  for (const [check, look, advice] of CHECKS) {
    const said = await Promise.resolve()
      .then(() => (check === "identity" && refused !== null ? wrong(refused, advice) : look(looked)))
      .catch((error: unknown) => wrong(messageOf(error), advice));
    findings.push({ check, ...said });
  }
  looked.http?.close();
  return findings;
};

const SIGNS = { ok: "ok     ", warning: "warning", wrong: "WRONG  " } as const;
export const findingLines = (findings: readonly Finding[]): string =>
  findings
    .map(({ check, verdict, seen, advice }) => `${SIGNS[verdict]} ${check.padEnd(10)} ${seen}${advice === null ? "" : `\n${" ".repeat(19)}→ ${advice}`}\n`)
    .join("");
