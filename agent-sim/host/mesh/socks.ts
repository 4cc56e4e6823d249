// SOCKS version 5 (RFC 1928) on the consumer's loopback: CONNECT to IPv4, IPv6 and names, without a password. No BIND and no UDP. What a client sends before
// its request is understood is bounded in size and time.
import type { Socket } from "node:net";
import type { Time } from "../../agent/index.ts";

export interface SocksTarget {
  readonly host: string;
  readonly port: number;
}

export type SocksReply =
  | "succeeded"
  | "general_failure"
  | "not_allowed"
  | "network_unreachable"
  | "host_unreachable"
  | "refused"
  | "command_unknown"
  | "address_unknown";

const VERSION = 5;
const NO_AUTHENTICATION = 0;
const NO_ACCEPTABLE_METHOD = 0xff;
const CONNECT = 1;
const TYPES = { ipv4: 1, name: 3, ipv6: 4 } as const;
const REPLIES: Readonly<Record<SocksReply, number>> = {
  succeeded: 0,
  general_failure: 1,
  not_allowed: 2,
  network_unreachable: 3,
  host_unreachable: 4,
  refused: 5,
  command_unknown: 7,
  address_unknown: 8,
};
/** A greeting with all methods, and a request with the longest name. */
const MAX_BYTES = 2 + 255 + 7 + 255;
const HANDSHAKE_MS = 10_000;
const NAME = /^[\x21-\x7e]{1,255}$/;

export const replyBytes = (reply: SocksReply): Buffer => Buffer.from([VERSION, REPLIES[reply], 0, TYPES.ipv4, 0, 0, 0, 0, 0, 0]);

type Read<T> = { readonly value: T; readonly length: number } | "more" | SocksReply | "not_socks";

/** The methods that the client offers; the length of the greeting. */
export const readGreeting = (bytes: Buffer): Read<boolean> => {
  const [version, count] = bytes;
  if (version === undefined) return "more";
  if (version !== VERSION) return "not_socks";
  if (count === undefined || bytes.length < 2 + count) return "more";
  return { value: bytes.subarray(2, 2 + count).includes(NO_AUTHENTICATION), length: 2 + count };
};

const ipv6Of = (bytes: Buffer): string => Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(at * 2).toString(16)).join(":");

export const readRequest = (bytes: Buffer): Read<SocksTarget> => {
  const [version, command, , type] = bytes;
  if (version === undefined) return "more";
  if (version !== VERSION) return "not_socks";
  if (command === undefined || type === undefined) return "more";
  if (command !== CONNECT) return "command_unknown";
  const [from, length] = type === TYPES.ipv4 ? [4, 4] : type === TYPES.ipv6 ? [4, 16] : type === TYPES.name ? [5, bytes[4]] : [0, 0];
  if (from === 0) return "address_unknown";
  if (length === undefined || bytes.length < from + length + 2) return "more";
  const address = bytes.subarray(from, from + length);
  const host = type === TYPES.ipv4 ? address.join(".") : type === TYPES.ipv6 ? ipv6Of(address) : address.toString("latin1");
  const port = bytes.readUInt16BE(from + length);
  if (!NAME.test(host) || port === 0) return "address_unknown";
  return { value: { host, port }, length: from + length + 2 };
};

export interface SocksHandshakeDeps {
  readonly time: Time;
  /** Called once, with what the client sent after its request put back. It answers with `replyBytes`. */
  readonly onRequest: (target: SocksTarget, socket: Socket) => void;
}

/** Reads greeting and request of one client, and ends everything that is none. */
export const handshake = (socket: Socket, { time, onRequest }: SocksHandshakeDeps): void => {
  let held: Buffer = Buffer.alloc(0);
  let greeted = false;
  let left = false;
  const cancel = time.after(HANDSHAKE_MS, () => socket.destroy());
  const leave = (): void => {
    left = true;
    cancel();
    socket.off("data", read);
  };
  const end = (reply: Buffer | null): false => {
    leave();
    if (reply === null) socket.destroy();
    else socket.end(reply);
    return false;
  };
  const greet = (): boolean => {
    const greeting = readGreeting(held);
    if (greeting === "more") return false;
    if (typeof greeting === "string") return end(null);
    held = held.subarray(greeting.length);
    if (!greeting.value) return end(Buffer.from([VERSION, NO_ACCEPTABLE_METHOD]));
    greeted = true;
    socket.write(Buffer.from([VERSION, NO_AUTHENTICATION]));
    return true;
  };
  const take = (): false => {
    const request = readRequest(held);
    if (request === "more") return false;
    if (typeof request === "string") return end(request === "not_socks" ? null : replyBytes(request));
    leave();
    socket.pause();
    const rest = held.subarray(request.length);
    if (rest.length > 0) socket.unshift(rest);
    onRequest(request.value, socket);
    return false;
  };
  const read = (chunk: Buffer): void => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    while (greeted ? take() : greet());
    if (!left && held.length > MAX_BYTES) end(null);
  };
  socket.on("data", read);
  socket.on("error", () => socket.destroy());
  socket.on("close", leave);
};
