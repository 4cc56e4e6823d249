// Connections through the proxies of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY), where the process was started to use them. Node 22.21 and newer can.
import http from "node:http";
import https from "node:https";

/** Node's own switch. Simulators leave it unset: their gateway is near. */
export const PROXY_SWITCH = "NODE_USE_ENV_PROXY";
const PROXIES = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] as const;

/** The variable that names a proxy; null without one. */
export const proxyVariable = (env: NodeJS.ProcessEnv): string | null => PROXIES.find((name) => env[name]) ?? null;

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
export const canUseProxies = major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21);

export const createConnections = (secure: boolean, options: http.AgentOptions = {}): http.Agent => {
  // Older type definitions do not know it, and older versions of Node ignore it.
  const all = { ...options, ...(process.env[PROXY_SWITCH] === "1" ? { proxyEnv: process.env } : {}) };
  return secure ? new https.Agent(all) : new http.Agent(all);
};
/** For a single connection; undefined: the direct one. */
export const proxyTo = (url: string): http.Agent | undefined =>
  process.env[PROXY_SWITCH] === "1" ? createConnections(/^(?:https|wss):/.test(url)) : undefined;
