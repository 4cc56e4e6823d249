// Which services of tunnels this machine connects to: its own, those in private networks that its operator names in a file, and sockets in the agent's folder.
import { realpathSync } from "node:fs";
import { BlockList, connect as connectTcp, isIP, type Socket } from "node:net";
import { join, sep } from "node:path";
import { connect as connectTls } from "node:tls";
import { UNIX_SERVICE } from "../../protocol/records/tunnel.ts";
import { isPrivateAddress } from "./mesh/allowed.ts";

/** In the agent's folder: an address or a network a line, such as `192.168.1.0/24`. `#` begins a comment. */
export const ALLOW_FILE = "tunnels.allow";
/** In the agent's folder, and of the same form: networks that this machine offers to lead to. Without the file it offers none. */
export const ADVERTISE_FILE = "mesh.advertise";

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|::1)$/;
const SCHEMES: ReadonlySet<string> = new Set(["http:", "https:", "tcp:"]);
const MAX_BITS = { 4: 32, 6: 128 } as const;

const addLine = (list: BlockList, line: string): void => {
  const [address = "", bits] = line.split("/");
  const family = isIP(address);
  if (family !== 4 && family !== 6) return;
  const prefix = bits === undefined ? MAX_BITS[family] : Number(bits);
  if (Number.isInteger(prefix) && prefix >= 0 && prefix <= MAX_BITS[family]) list.addSubnet(address, prefix, family === 6 ? "ipv6" : "ipv4");
};
/** The lines of a file of networks, without comments. */
export const readNetworks = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.replace(/#.*/, "").trim())
    .filter((line) => line !== "");
/** What is no network names nothing. */
export const readAllowed = (text: string): BlockList => {
  const list = new BlockList();
  for (const line of readNetworks(text)) addLine(list, line);
  return list;
};

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "");

/** Beside the machine itself only private addresses of the file, whatever the gateway asks: an agent that dialed all of its network would let the gateway into it. */
export const isAllowedService = (service: string, allowed: BlockList = new BlockList()): boolean => {
  if (!URL.canParse(service)) return false;
  const url = new URL(service);
  if (!SCHEMES.has(url.protocol)) return false;
  const host = hostOf(url);
  return LOOPBACK.test(host) || (isIP(host) !== 0 && isPrivateAddress(host) && allowed.check(host, isIP(host) === 6 ? "ipv6" : "ipv4"));
};

/** The path of a socket that really lies where such services may: a link out of the folder leads nowhere. Null: there is none. */
const socketIn = (folder: string, service: string): string | null => {
  const [, name = "", rest = ""] = UNIX_SERVICE.exec(service) ?? [];
  try {
    const path = realpathSync(join(folder, name, rest));
    return name !== "" && path.startsWith(realpathSync(join(folder, name)) + sep) ? path : null;
  } catch {
    return null;
  }
};

export interface ServiceReach {
  /** What the machine's operator allows. */
  readonly networks?: BlockList;
  /** The agent's, for services that are unix sockets. */
  readonly folder?: string;
}

/** Begins to connect to a service. */
export const connectToService = (service: string, { networks, folder }: ServiceReach = {}): Socket | "not_allowed" | "unreachable" => {
  if (folder !== undefined && UNIX_SERVICE.test(service)) {
    const path = socketIn(folder, service);
    return path === null ? "unreachable" : connectTcp({ path, allowHalfOpen: true });
  }
  if (!isAllowedService(service, networks)) return "not_allowed";
  const url = new URL(service);
  const host = hostOf(url);
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  if (url.protocol !== "https:") return connectTcp({ host, port, allowHalfOpen: true });
  // The certificate of a service on this very machine names some other host, or nobody has signed it.
  return connectTls({ host, port, rejectUnauthorized: !LOOPBACK.test(host), ...(isIP(host) === 0 ? { servername: host } : {}) });
};
