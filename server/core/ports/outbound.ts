// Calls to addresses that others chose: one client for everything that leaves the service, bounded in time and size, that reaches only public addresses.

/** Why a call brought no answer. BLOCKED: the address is not public and not allowed; no connection was made. */
export type OutboundFailure = "BLOCKED" | "DNS" | "CONNECT" | "TLS" | "TIMEOUT" | "TOO_LARGE" | "PROTOCOL";

export interface OutboundCall {
  readonly url: string;
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** From the look-up of the name to the last byte of the answer; 15 s unless told. */
  readonly timeoutMs?: number;
  /** What is kept of the answer's body; the rest is not read. 64 KiB unless told. */
  readonly maxBodyBytes?: number;
  readonly signal?: AbortSignal;
  /** Connections are shared within one key only: name the tenant. */
  readonly owner: string;
}

export interface OutboundAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** There was more than `maxBodyBytes`. */
  readonly truncated: boolean;
  /** The address that was reached. */
  readonly address: string | null;
  readonly durationMs: number;
}

export class OutboundError extends Error {
  override readonly name = "OutboundError";
  readonly code: OutboundFailure;
  readonly address: string | null;

  constructor(code: OutboundFailure, message: string, options: { readonly address?: string | null; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.address = options.address ?? null;
  }
}

export interface Outbound {
  /** Follows no redirect: a 3xx is an answer like any other. Throws OutboundError. */
  send(call: OutboundCall): Promise<OutboundAnswer>;
  /** Why this URL may not be called, as far as is known before a connection; null if it may. Resolves the name once. With `owner` a refusal counts as a blocked call. */
  refusal(url: string, owner?: string): Promise<string | null>;
}
