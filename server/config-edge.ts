// The listener that carries bytes, as settings: visitors of tunnels and domains, carriers of agents, backup repositories.
import { join } from "node:path";
import { z } from "zod";
import { integer, portRanges } from "./config-values.ts";

/** A host name of several labels, or localhost. */
const DOMAIN = /^(?=.{1,190}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/;

export const edgeSettings = {
  EDGE_PORT: integer(8082, 0, 65_535).describe(
    "port of the edge, which carries the bytes of tunnels, domains, agents' carriers and backups; 0 takes a free one",
  ),
  EDGE_HOST: z.string().min(1).default("127.0.0.1").describe("address of the edge"),
  EDGE_HTTP_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .optional()
    .describe("a second port of the edge, without TLS, usually 80: challenges of certificates, and with TLS a redirect to https for all else"),
  EDGE_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("URL at which agents reach the edge, whose scheme and port visitors use, too; default http(s)://, the host of PUBLIC_URL and EDGE_PORT"),
  EDGE_TLS_CERT_FILE: z
    .string()
    .min(1)
    .optional()
    .describe("PEM certificate with its chain, for *.TUNNEL_DOMAIN; the edge then serves HTTPS and reloads changed files within 10 s"),
  EDGE_TLS_KEY_FILE: z.string().min(1).optional().describe("PEM private key of EDGE_TLS_CERT_FILE, without a passphrase"),
  BACKUP_DIR: z
    .string()
    .min(1)
    .optional()
    .describe(
      "folder of the backups that this installation keeps for its devices, off for none; default DATA_DIR/backups, and none with REDIS_URL, because all nodes must share it",
    ),
  NODE_URL: z
    .url({ protocol: /^http$/ })
    .optional()
    .describe(
      "URL at which other nodes reach this node's internal listener, for visitors of tunnels whose agent is connected here; default http://INTERNAL_HOST:INTERNAL_PORT",
    ),
  TUNNEL_DOMAIN: z
    .string()
    .regex(DOMAIN, "must be a host name in lower case, without a port")
    .default("localhost")
    .describe("domain of the tunnels' host names, as in <app>-k3f9.localhost; all its names must lead to the edge"),
  TUNNEL_TCP_PORTS: portRanges.describe(
    "ports of EDGE_HOST for tunnels of TCP, such as 20000-20099, at most 1,000; default none, and then there are no such tunnels",
  ),
};

/** The folder of the repositories that this installation keeps; null: none. A second node would not see a folder of the first. */
export const backupFolderOf = ({ BACKUP_DIR, DATA_DIR, REDIS_URL }: BackupConfig): string | null => {
  if (BACKUP_DIR === "off") return null;
  return BACKUP_DIR ?? (REDIS_URL === undefined ? join(DATA_DIR, "backups") : null);
};
interface BackupConfig {
  readonly BACKUP_DIR?: string | undefined;
  readonly DATA_DIR: string;
  readonly REDIS_URL?: unknown;
}

type Given = Readonly<Record<string, string | undefined>>;

/** The ports of our own listeners, with their defaults. A tunnel that got one of them would never open, or keep us from starting. */
const ownPorts = ({ PORT = "8080", INTERNAL_PORT = "8081", EDGE_PORT = "8082", EDGE_HTTP_PORT = "" }: Given): ReadonlySet<number> =>
  new Set([PORT, INTERNAL_PORT, EDGE_PORT, EDGE_HTTP_PORT].map(Number));

interface Ports {
  readonly PORT: number;
  readonly INTERNAL_PORT: number;
  readonly EDGE_PORT: number;
  readonly EDGE_HTTP_PORT?: number | undefined;
  readonly TUNNEL_TCP_PORTS: readonly number[];
}

/** The port of a worker's internal listener: they count up from INTERNAL_PORT and leave out what other listeners have. 0: any free one. */
export const internalPortOf = ({ PORT, INTERNAL_PORT, EDGE_PORT, EDGE_HTTP_PORT = 0, TUNNEL_TCP_PORTS }: Ports, worker: number): number => {
  if (INTERNAL_PORT === 0) return 0;
  const taken = new Set([PORT, EDGE_PORT, EDGE_HTTP_PORT, ...TUNNEL_TCP_PORTS]);
  let port = INTERNAL_PORT;
  for (let left = worker; left > 0; ) {
    port += 1;
    if (!taken.has(port)) left -= 1;
  }
  return port;
};

/** Scripts of a tunnel's page must never share a site or a cookie with the console. */
export const edgeRelations = (given: Given): readonly string[] => {
  const { EDGE_TLS_CERT_FILE: cert, EDGE_TLS_KEY_FILE: key, TUNNEL_DOMAIN: domain, PUBLIC_URL: url } = given;
  const host = url !== undefined && URL.canParse(url) ? new URL(url).hostname : undefined;
  const taken = (portRanges.safeParse(given["TUNNEL_TCP_PORTS"]).data ?? []).filter((tcpPort) => ownPorts(given).has(tcpPort));
  const holds = domain !== undefined && host !== undefined && (host === domain || host.endsWith(`.${domain}`));
  return [
    ...(cert !== undefined && key === undefined ? ["EDGE_TLS_KEY_FILE: is required with EDGE_TLS_CERT_FILE"] : []),
    ...(key !== undefined && cert === undefined ? ["EDGE_TLS_CERT_FILE: is required with EDGE_TLS_KEY_FILE"] : []),
    ...(taken.length > 0 ? [`TUNNEL_TCP_PORTS: must not name ports of the gateway itself: ${taken.join(", ")}`] : []),
    ...(holds ? ["TUNNEL_DOMAIN: must not hold the host of PUBLIC_URL; take a domain of its own, so that apps and the console share no cookies"] : []),
  ];
};
