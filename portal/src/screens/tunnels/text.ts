// The sentences of tunnels.
import type { Tunnel, TunnelHealth } from "@mooring/client";
import { counted } from "../../ui/count.ts";

type Mode = Tunnel["access"]["mode"];

export const STATUSES = ["pending", "active", "stopped", "error"] as const;
const MODES: Readonly<Record<Mode, string>> = { private: "members", token: "whoever has the token", public: "everybody" };
const MODE_OPTIONS: readonly (readonly [Mode, string])[] = [
  ["private", "Members who sign in"],
  ["token", "Whoever has its token"],
  ["public", "Everybody"],
];
/** A connection of TCP brings nothing that says who it is. */
const TCP_MODE_OPTIONS: readonly (readonly [Mode, string])[] = [
  ["private", "The addresses below"],
  ["public", "Everybody"],
];
const SERVICES: Readonly<Record<TunnelHealth["service"], string>> = {
  reachable: "answers",
  refused: "nothing listens there",
  timeout: "does not answer in time",
  unknown: "not known",
};

const ALL_VISITORS = "Of all visitors together. Empty: no limit.";

export const text = {
  title: "Tunnels",
  one: "Tunnel",
  filter: "Filter tunnels",
  total: (count: number) => counted(count, "tunnel"),
  none: "A tunnel gives a service of a device an address, without an open port on the device.",
  noMatch: "No tunnel matches these filters.",
  create: "Open a tunnel",
  name: "Name",
  state: "State",
  access: "Open to",
  address: "Address",
  device: "Device",
  app: "its app",
  connectors: "connectors",
  openTo: ({ protocol, access: { mode } }: Pick<Tunnel, "protocol" | "access">) => (protocol === "tcp" && mode === "private" ? "its addresses" : MODES[mode]),
  open: "Open",
  openHint: "It opens when the tunnel does.",
  since: "created",
  until: "until",
  for: "for",
  servedBy: "Served by",
  servers: [
    ["device", "A device"],
    ["connectors", "Programs that have its token, on any machine"],
  ] as const,
  port: "Port on the device",
  portHint: "The service is reached at this port of the device itself.",
  protocol: "It speaks",
  protocols: [
    ["http", "HTTP"],
    ["https", "HTTPS"],
    ["tcp", "Anything over TCP"],
  ] as const,
  protocolHint: "TCP gets a port of the edge, and lets in addresses instead of people.",
  service: "Service",
  serviceHint: "As the device sees it, such as http://127.0.0.1:3000 or unix:sockets/shop.sock.",
  label: "Host name",
  labelHint: "One word, such as shop. Empty: a name that nobody guesses.",
  modeOptions: MODE_OPTIONS,
  tcpModeOptions: TCP_MODE_OPTIONS,
  allow: "Only from these addresses",
  allowHint: "One address or network a line, such as 203.0.113.0/24. Empty: from anywhere.",
  tcpAllowHint: "One address or network a line, such as 203.0.113.0/24. At least one, unless it is open to everybody.",
  from: "From",
  anywhere: "anywhere",
  expires: "Closes",
  expiresHint: "Empty: when somebody stops it.",
  hostHeader: "The service gets as host",
  hosts: [
    ["preserve", "The name that the visitor opened"],
    ["service", "Its own address"],
  ] as const,
  limits: {
    requestsPerMinute: { name: "Requests a minute", most: 1_000_000, hint: ALL_VISITORS, shown: (count: string) => `${count} requests a minute` },
    connections: { name: "Open requests at once", most: 10_000, hint: ALL_VISITORS, shown: (count: string) => `${count} open requests` },
    idleSeconds: {
      name: "Seconds without a byte",
      most: 86_400,
      hint: "Then an answer or a WebSocket ends. Empty: 100 seconds for answers, an hour for WebSockets.",
      shown: (count: string) => `${count} s without a byte`,
    },
  },
  limited: "At most",
  change: "Change",
  save: "Save",
  stop: "Stop",
  start: "Start",
  remove: "Delete the tunnel",
  removal: "Its address leads nowhere from then on, and its token is worth nothing.",
  rotate: "Replace the token",
  rotation: "Visitors and programs that have the old one are shut out within seconds.",
  token: "Token",
  tokenEnds: (hint: string) => `ends with ${hint}`,
  showToken: "Show the token",
  tokenWhat: "Whoever has it can visit the tunnel where its access says so, and can serve it. Treat it as a password.",
  visitBy: "For scripts, as a header",
  visitPage: "For browsers, once",
  close: "Close",
  unreached: "The device does not reach the service.",
  notConnected: "Nothing is connected to it now.",
  notConnectedWhat: "Visitors are served again as soon as the device or a connector is back.",
  lastSeen: "Last connected",
  stopped: "It is stopped, and serves nobody.",
  expired: "It has expired, and serves nobody.",
  waits: "The device has not said yet that it reaches the service.",
  waitsForConnector: "No connector serves it yet. Start one with the token.",
  health: "Health",
  serviceState: "Service",
  services: SERVICES,
  carriers: "Connections",
  carrier: { raw: "direct", websocket: "over WebSocket" } as const,
  connected: "connected",
  noCarrier: "None.",
  usage: "Used",
  used: (requests: number) => counted(requests, "request"),
  unused: "not yet",
  lastUsed: "last",
  who: "Who may come in",
} as const;

export type LimitName = keyof typeof text.limits;
export const LIMITS = Object.keys(text.limits) as LimitName[]; // as: an object's own keys
