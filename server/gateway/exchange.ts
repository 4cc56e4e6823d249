// One HTTP request and its answer, free of the library underneath: what the doors work with.
import type { LazyAbort } from "../core/lazy-abort.ts";
import type { Notes } from "./call-log.ts";

export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** Path as sent, undecoded, without the query. */
  readonly path: string;
  /** Query as sent, without "?". */
  readonly query: string;
  /** Names in lower case; several lines of one name are joined by commas, as one list. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers that may have one value only and came more than once; such a request is refused (request-head.ts). */
  readonly repeated: ReadonlySet<string>;
  /** Address of the peer of the connection. To be asked for before the first wait that may outlast the peer: afterwards it is empty if nobody had asked. */
  readonly peer: string;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
  /** Close the connection afterwards: the rest of the request is not wanted. */
  readonly close?: boolean;
}

/** A body that comes in parts, for event streams. */
export interface HttpStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ReadableStream<Uint8Array>;
}

export interface Exchange {
  readonly request: HttpRequest;
  /** Fires when the peer is gone; nothing is written after that. */
  readonly gone: LazyAbort;
  /** Fires for that, and when the listener closes: whoever streams ends then. */
  readonly ending: LazyAbort;
  /** The whole body, or null when it is larger than the limit the router gave. Rejects when the peer goes away before its end. */
  readonly body: Promise<Uint8Array | null>;
  /** For the log. */
  readonly notes: Notes;
  respond(response: HttpResponse): void;
  stream(response: HttpStream): Promise<void>;
}

/** What a door makes of a request's head, once: how much body is taken in, and who answers. */
export interface Reception {
  readonly maxBodyBytes: number;
  handle(exchange: Exchange): Promise<void>;
}

export interface HttpDoor {
  /** Decides before anything is awaited. Must not throw. */
  receive(request: HttpRequest): Reception;
}
