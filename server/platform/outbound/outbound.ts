// The one client for calls to addresses that others chose, with the protection against SSRF: connect.ts judges every address before it connects. Connections
// are few, and only calls of one owner share them.
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { Client, type Dispatcher, Pool } from "undici";
import type { Clock } from "../../core/clock.ts";
import { type Outbound, type OutboundCall, OutboundError } from "../../core/ports/outbound.ts";
import { createBoundedCache } from "../../core/structures/bounded-cache.ts";
import { type ConnectDeps, createConnect, refuseBlocked, type Wire } from "./connect.ts";
import { Exchange } from "./exchange.ts";
import { createFindAddresses, type NamesDeps, newDnsResolver } from "./names.ts";
import { hostOf, type JudgeUrl, type OutboundGuard, portOf } from "./url.ts";

/** A call that was refused before a connection. */
export interface Blocked {
  readonly owner: string;
  readonly host: string;
  readonly address: string | null;
  readonly reason: string;
}

export interface OutboundSettings extends NamesDeps, Pick<ConnectDeps, "ca"> {
  readonly connectTimeoutMs: number;
  /** The most connections of one owner to one origin. */
  readonly connections: number;
  /** Origins with connections, over all owners; the one that was unused for longest gives way. */
  readonly origins: number;
  /** At once, over all owners. */
  readonly calls: number;
}

export interface OutboundDeps {
  /** Null trusts every URL: the operator named it. */
  readonly guard: OutboundGuard | null;
  readonly onBlocked: (blocked: Blocked) => void;
  readonly clock: Pick<Clock, "elapsed">;
  readonly settings?: Partial<OutboundSettings> | undefined;
}

export interface OpenOutbound extends Outbound {
  /** Calls under way and origins with connections. */
  figures(): { readonly calls: number; readonly origins: number };
  close(): Promise<void>;
}

const DEFAULTS: OutboundSettings = { connectTimeoutMs: 5_000, connections: 8, origins: 512, calls: 1_000, newResolver: newDnsResolver, systemLookup: lookup };
const HTTP = {
  allowH2: false,
  maxHeaderSize: 16_384,
  // The deadline of the call bounds both.
  headersTimeout: 0,
  bodyTimeout: 0,
  keepAliveTimeout: 4_000,
  keepAliveMaxTimeout: 30_000,
} as const;
/** A person waits for the answer. */
const REFUSAL_WITHIN_MS = 2_000;

/** The pool wraps the handler, and passes these on as they are. */
interface CallOptions extends Dispatcher.DispatchOptions {
  readonly exchange?: Exchange;
}

/** Tells each call which connection serves it. */
class ReachingClient extends Client {
  readonly #wire: Wire;

  constructor(origin: URL, options: Client.Options, connect: ConnectDeps) {
    const wire: Wire = { address: null, calls: [] };
    super(origin, { ...options, connect: createConnect(connect, wire) });
    this.#wire = wire;
  }

  override dispatch(options: CallOptions, handler: Dispatcher.DispatchHandler): boolean {
    const { exchange } = options;
    if (exchange !== undefined) {
      exchange.reached = this.#wire;
      this.#wire.calls = [...this.#wire.calls.filter(({ isOver }) => !isOver), exchange];
    }
    return super.dispatch(options, handler);
  }
}

const createPools = (connect: ConnectDeps, { connections, origins }: OutboundSettings) => {
  const pools = createBoundedCache<Pool>(origins, { dispose: (pool) => void pool.close().catch(() => undefined) });
  const open = (key: string, origin: string): Pool => {
    const pool = new Pool(origin, { ...HTTP, connections, factory: (url, options) => new ReachingClient(url, options, connect) });
    const dropUnused = (): void => {
      if (pool.stats.connected === 0 && pool.stats.size === 0 && pools.peek(key) === pool) pools.delete(key);
    };
    pool.on("disconnect", dropUnused).on("connectionError", dropUnused);
    pools.set(key, pool);
    return pool;
  };
  return {
    of: (owner: string, origin: string): Pool => {
      const key = `${origin} ${owner}`;
      return pools.get(key) ?? open(key, origin);
    },
    size: () => pools.size,
    close: async (): Promise<void> => {
      const all = [...pools.values()];
      pools.clear();
      await Promise.all(all.map((pool) => pool.destroy()));
    },
  };
};

/** The operator's own addresses: any http or https URL. */
const judgeTrusted: JudgeUrl = (text) => {
  const url = URL.canParse(text) ? new URL(text) : null;
  const refusal = url === null || !/^https?:$/.test(url.protocol) ? "is not an http or https URL" : null;
  return { url, refusal, address: null };
};

export const createOutbound = ({ guard, onBlocked, clock, settings: given }: OutboundDeps): OpenOutbound => {
  const settings = { ...DEFAULTS, ...given };
  const { judgeUrl, judgeAddress } = guard ?? { judgeUrl: judgeTrusted, judgeAddress: null };
  const findAddresses = createFindAddresses(settings);
  const pools = createPools({ findAddresses, judgeAddress, ca: settings.ca, timeoutMs: settings.connectTimeoutMs }, settings);
  let calls = 0;

  const check = (text: string): URL => {
    const { url, refusal, address } = judgeUrl(text);
    if (url === null || refusal !== null) throw new OutboundError("BLOCKED", refusal ?? "is not a URL", { address });
    return url;
  };
  const dispatch = (call: OutboundCall, url: URL) => {
    const exchange = new Exchange(call, clock.elapsed);
    const { method = "GET", headers = {}, body = null } = call;
    const options: CallOptions = { path: `${url.pathname}${url.search}`, method, headers, body, exchange };
    pools.of(call.owner, url.origin).dispatch(options, exchange);
    return exchange.answer;
  };
  const report = (error: unknown, text: string, owner: string): void => {
    if (!(error instanceof OutboundError) || error.code !== "BLOCKED") return;
    onBlocked({ owner, host: URL.canParse(text) ? hostOf(new URL(text)) : "", address: error.address, reason: error.message });
  };
  const resolveOnce = async (name: string, port: number): Promise<void> => {
    const ended = new AbortController();
    const timer = setTimeout(() => ended.abort(), REFUSAL_WITHIN_MS);
    try {
      // A name without an address may get one: each connection asks again.
      refuseBlocked(await findAddresses(name, ended.signal).catch(() => []), port, judgeAddress);
    } finally {
      clearTimeout(timer);
    }
  };

  return {
    send: async (call) => {
      if (calls >= settings.calls) throw new OutboundError("CONNECT", "too many calls are under way");
      calls += 1;
      try {
        return await dispatch(call, check(call.url));
      } catch (error) {
        report(error, call.url, call.owner);
        throw error;
      } finally {
        calls -= 1;
      }
    },
    refusal: async (text, owner) => {
      try {
        const url = check(text);
        const host = hostOf(url);
        if (isIP(host) === 0) await resolveOnce(host, portOf(url));
        return null;
      } catch (error) {
        if (!(error instanceof OutboundError)) throw error;
        if (owner !== undefined) report(error, text, owner);
        return error.message;
      }
    },
    figures: () => ({ calls, origins: pools.size() }),
    close: pools.close,
  };
};

/** For addresses that the operator names, which may be private and stand in /etc/hosts: the same bounds without the guard. */
export const createTrustedOutbound = (clock: OutboundDeps["clock"], settings?: Partial<OutboundSettings>): OpenOutbound =>
  createOutbound({ guard: null, onBlocked: () => undefined, clock, settings: { newResolver: null, ...settings } });
