// Connects to an address that somebody else chose. What is judged here is what is used: there is no second look-up between.
import { once } from "node:events";
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { buildConnector } from "undici";
import { OutboundError, type OutboundFailure } from "../../core/ports/outbound.ts";
import type { JudgeAddress } from "./address.ts";
import type { FindAddresses } from "./names.ts";
import { portOf } from "./url.ts";

export interface ConnectDeps {
  readonly findAddresses: FindAddresses;
  /** Null trusts every address: the operator named it. */
  readonly judgeAddress: JudgeAddress | null;
  /** For tests. */
  readonly ca?: Buffer | undefined;
  /** For the name, the connection and TLS together: several calls may wait for one connection, so it has a deadline of its own. */
  readonly timeoutMs: number;
}

/** The connection of one client, which later calls reuse. */
export interface Wire {
  address: string | null;
  /** The calls that wait for it or use it. */
  calls: readonly { readonly isOver: boolean }[];
}

/** The number of addresses of a name that are tried. */
const MAX_TRIED = 8;

/** Throws if one of the addresses is blocked: whoever controls a name could mix public and private ones. */
export const refuseBlocked = (addresses: readonly string[], port: number, judge: JudgeAddress | null): void => {
  for (const address of addresses) {
    const refusal = judge?.(address, port) ?? null;
    if (refusal !== null) throw new OutboundError("BLOCKED", refusal, { address });
  }
};

/** Node asks this for the addresses of a name, and never for those of a literal. */
const handOver =
  (addresses: readonly string[]): LookupFunction =>
  (_name, options, done) => {
    const all = addresses.map((address) => ({ address, family: isIP(address) }));
    const [first] = all;
    if (options.all === true) done(null, all);
    else done(null, first?.address ?? "", first?.family);
  };

const ready = async (socket: Socket, event: "connect" | "secureConnect", signal: AbortSignal): Promise<void> => {
  // An error between this wait and the client's own listeners would end the process.
  socket.on("error", () => undefined);
  await once(socket, event, { signal });
};

const failure = (code: OutboundFailure, cause: unknown, signal: AbortSignal, address: string | null): OutboundError => {
  if (cause instanceof OutboundError) return cause;
  if (signal.aborted) return new OutboundError("TIMEOUT", "no connection in time", { address });
  return new OutboundError(code, cause instanceof Error && cause.message !== "" ? cause.message : "no connection", { address, cause });
};

const connectPlain = async (addresses: readonly string[], { hostname, ...options }: buildConnector.Options, signal: AbortSignal): Promise<Socket> => {
  const socket = connectTcp({ host: hostname, port: portOf(options), lookup: handOver(addresses.slice(0, MAX_TRIED)), autoSelectFamily: true });
  try {
    await ready(socket, "connect", signal);
    return socket.setNoDelay(true);
  } catch (error) {
    socket.destroy();
    throw failure("CONNECT", error, signal, addresses[0] ?? null);
  }
};

const secure = async (socket: Socket, { hostname }: buildConnector.Options, { ca, signal }: Pick<ConnectDeps, "ca"> & { readonly signal: AbortSignal }) => {
  const address = socket.remoteAddress ?? null;
  // A server name must not be an address; the certificate is checked against `host`.
  const name = isIP(hostname) === 0 ? { servername: hostname } : {};
  const tls = connectTls({ socket, host: hostname, ...name, ALPNProtocols: ["http/1.1"], ...(ca === undefined ? {} : { ca }) });
  try {
    await ready(tls, "secureConnect", signal);
    return tls;
  } catch (error) {
    tls.destroy();
    socket.destroy();
    throw failure("TLS", error, signal, address);
  }
};

const open = async (deps: ConnectDeps, options: buildConnector.Options, wire: Wire): Promise<Socket> => {
  const { hostname, protocol } = options;
  const ended = new AbortController();
  const { signal } = ended;
  const timer = setTimeout(() => ended.abort(), deps.timeoutMs);
  try {
    const addresses = isIP(hostname) === 0 ? await deps.findAddresses(hostname, signal) : [hostname];
    const port = portOf(options);
    refuseBlocked(addresses, port, deps.judgeAddress);
    const socket = await connectPlain(addresses, options, signal);
    wire.address = socket.remoteAddress ?? null;
    try {
      refuseBlocked([wire.address ?? ""], port, deps.judgeAddress);
    } catch (error) {
      socket.destroy();
      throw error;
    }
    return protocol === "https:" ? await secure(socket, options, { ca: deps.ca, signal }) : socket;
  } catch (error) {
    throw failure("CONNECT", error, signal, wire.address);
  } finally {
    clearTimeout(timer);
  }
};

export const createConnect =
  (deps: ConnectDeps, wire: Wire): buildConnector.connector =>
  (options, done) => {
    // The client connects anew after each call that was given up, for nobody.
    if (wire.calls.every(({ isOver }) => isOver)) return done(new Error("nobody waits for the connection"), null);
    open(deps, options, wire).then(
      (socket) => done(null, socket),
      (error: Error) => done(error, null),
    );
  };
