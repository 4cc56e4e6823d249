// The ways to one service that the bench of tunnels compares: a tunnel of the gateway, a reverse proxy of nginx, and a forwarded port of ssh.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { join } from "node:path";
import { createHttp } from "../../agent-sim/agent/index.ts";
import { createAuthority } from "../kit/net/certificates.ts";
import { plainEnv, startChild } from "../kit/net/children.ts";
import { freePort } from "../kit/net/free-port.ts";
import { createCaller } from "./caller.ts";
import { type BenchTenant, createTenant, provision, startBenchGateway, waitUntil } from "./gateway.ts";
import type { BenchStage } from "./stage.ts";

const READY_MS = 30_000;
const SSHD = "/usr/sbin/sshd";
const AGENT = ["dist", "agent-sim", "main.js"];
const AGENT_SECONDS = "3600";

export interface Way {
  readonly port: number;
  /** The host that visitors ask for. */
  readonly host: string;
  readonly scheme: "http" | "https";
  /** The processes that carry the bytes, with their children. */
  readonly pids: readonly number[];
}
/** For visitors, who take any certificate. */
export const visitorAgent = ({ scheme }: Way): HttpAgent =>
  scheme === "https" ? new HttpsAgent({ keepAlive: true, rejectUnauthorized: false }) : new HttpAgent({ keepAlive: true });

const canConnect = (port: number) => async (): Promise<true | undefined> =>
  fetch(`http://127.0.0.1:${port}/small`, { signal: AbortSignal.timeout(1_000) }).then(
    ({ ok }) => ok || undefined,
    () => undefined,
  );

const startNginx = async (stage: BenchStage, name: string, server: (port: number) => string): Promise<Way> => {
  const port = await freePort();
  const folder = join(stage.folder, name);
  mkdirSync(folder);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(" ");
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const http = `http { access_log off; sendfile on; keepalive_requests 1000000; ${temporary} ${server(port)} }`;
  const file = join(folder, "nginx.conf");
  writeFileSync(file, `daemon off; master_process off; pid ${folder}/pid; error_log stderr warn; ${user}\nevents { worker_connections 1024; }\n${http}\n`);
  const child = startChild({ command: "nginx", words: ["-p", folder, "-e", "stderr", "-c", file], env: plainEnv() });
  stage.add(() => child.stop());
  await waitUntil(canConnect(port), { withinMs: READY_MS });
  return { port, host: `127.0.0.1:${port}`, scheme: "http", pids: [child.pid] };
};

/** The service itself: files below `/`. */
export const startOrigin = (stage: BenchStage, folder: string): Promise<Way> =>
  startNginx(stage, "origin", (port) => `server { listen 127.0.0.1:${port}; root ${folder}; }`);

export const startReverseProxy = (stage: BenchStage, origin: Way): Promise<Way> =>
  startNginx(
    stage,
    "proxy",
    (port) =>
      `upstream origin { server 127.0.0.1:${origin.port}; keepalive 64; }
       server { listen 127.0.0.1:${port}; location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_max_temp_file_size 0; } }`,
  );

/** Null: there is no OpenSSH server on this machine. */
export const startForwardedPort = async (stage: BenchStage, origin: Way): Promise<Way | null> => {
  if (spawnSync(SSHD, ["-?"]).error !== undefined) return null;
  const folder = join(stage.folder, "ssh");
  mkdirSync(folder, { mode: 0o700 });
  mkdirSync("/run/sshd", { recursive: true });
  const [hostKey, key] = [join(folder, "host"), join(folder, "key")];
  for (const file of [hostKey, key]) execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", file]);
  const [port, forwarded] = [await freePort(), await freePort()];
  const settings = [
    ...[`Port ${port}`, "ListenAddress 127.0.0.1", `HostKey ${hostKey}`, `AuthorizedKeysFile ${key}.pub`, "StrictModes no", "UsePAM no"],
    ...["PidFile none", "AllowTcpForwarding yes", "PermitRootLogin yes", "LogLevel ERROR"],
  ];
  const file = join(folder, "sshd_config");
  writeFileSync(file, `${settings.join("\n")}\n`);
  const server = startChild({ command: SSHD, words: ["-D", "-e", "-f", file], env: plainEnv() });
  stage.add(() => server.stop());
  const trust = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ConnectionAttempts=10"];
  const forward = ["-o", "ExitOnForwardFailure=yes", "-R", `127.0.0.1:${forwarded}:127.0.0.1:${origin.port}`];
  const client = startChild({ command: "ssh", words: ["-N", "-i", key, "-p", String(port), ...trust, ...forward, "root@127.0.0.1"], env: plainEnv() });
  stage.add(() => client.stop());
  await waitUntil(canConnect(forwarded), { withinMs: READY_MS });
  return { port: forwarded, host: `127.0.0.1:${forwarded}`, scheme: "http", pids: [server.pid, client.pid] };
};

export interface Tunnel extends Way {
  readonly deviceId: string;
  readonly tenant: BenchTenant;
  readonly gatewayUrl: string;
}

/** A gateway and the reference agent, as processes of their own. */
export const openTunnel = async (stage: BenchStage, origin: Way, { tls }: { readonly tls: boolean }): Promise<Tunnel> => {
  const authority = tls ? await createAuthority() : null;
  if (authority !== null) stage.add(authority.remove);
  const files = authority === null ? null : await authority.issue("edge", ["*.tunnels.localhost"]);
  const edgePort = await freePort();
  const env = {
    ...{ EDGE_PORT: String(edgePort), TUNNEL_DOMAIN: "tunnels.localhost" },
    ...(files === null ? {} : { EDGE_TLS_CERT_FILE: files.certFile, EDGE_TLS_KEY_FILE: files.keyFile }),
  };
  const gateway = await startBenchGateway(stage, { cpu: null, redis: false, env });
  const tenant = await createTenant(stage, { unlimited: true });
  const [member] = await provision(gateway, tenant, 1);
  if (member === undefined) throw new Error("no device was provisioned");
  const { deviceId, agentId, tenantId, secret, fingerprint } = member;
  const folder = join(stage.folder, `agent-${edgePort}`);
  mkdirSync(folder);
  const identity = join(folder, "device.json");
  const issued = { device_id: deviceId, agent_id: agentId, tenant_id: tenantId, shared_secret: secret, fingerprint };
  writeFileSync(identity, JSON.stringify(issued), { mode: 0o600 });
  const words = [join(import.meta.dirname, "../..", ...AGENT), "agent", "--identity", identity, "--host", "simulated", "--data", folder, "--url", gateway.url];
  const trust = authority === null ? {} : { NODE_EXTRA_CA_CERTS: authority.caFile };
  const agent = startChild({ command: process.execPath, words: [...words, "--seconds", AGENT_SECONDS], env: { ...plainEnv(), ...trust } });
  stage.add(() => agent.stop());
  const http = createHttp(gateway.url, 1);
  stage.add(http.close);
  const made = await createCaller(http, tenant).post(`/devices/${deviceId}/tunnels`, { targetPort: origin.port, access: { mode: "public" } });
  const host = String(made["hostname"]);
  const scheme = tls ? "https" : "http";
  const isOpen = async (): Promise<true | undefined> => {
    const found = spawnSync("curl", [
      "-skf",
      "-m",
      "2",
      "-o",
      "/dev/null",
      "--resolve",
      `${host}:${edgePort}:127.0.0.1`,
      `${scheme}://${host}:${edgePort}/small`,
    ]);
    return found.status === 0 || undefined;
  };
  await waitUntil(isOpen, { withinMs: READY_MS });
  return { port: edgePort, host: `${host}:${edgePort}`, scheme, pids: [gateway.pid, agent.pid], deviceId, tenant, gatewayUrl: gateway.url };
};
